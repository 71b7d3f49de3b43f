# SPDX-License-Identifier: Apache-2.0
"""Parsers and their help, whichever formatter they are given."""

import argparse

from cases import cases
from cliff import command

from isolate_aggregates_tools.cli import usage


@cases(
    'formatter',
    {
        # What cliff leaves to argparse from Python 3.14 on.
        'of argparse': argparse.HelpFormatter,
        'of cliff': command._argparse.SmartHelpFormatter,
        'ours': usage.HelpFormatter,
    },
)
def test_help_is_wrapped_but_not_at_hyphens(formatter, monkeypatch):
    monkeypatch.setenv('COLUMNS', '50')
    given = argparse.ArgumentParser('program', formatter_class=formatter)
    given.add_argument('--one', help=f'{"x" * 25} --a-long-option')
    text = usage.Parser.like(given).format_help()
    assert '--a-long-option' in text.split()
