# SPDX-License-Identifier: Apache-2.0
"""``--help`` shows the help wherever it stands."""

import re

from cases import cases


@cases(
    ('words', 'said'),
    {
        'value': ('explain --flavor --help', 'explain'),
        'after values': ('explain --flavor m1 --image x --help', 'explain'),
        'after a name': ('lock show host1 --help', 'lock show'),
        'of two words': (
            'reservation create --vcpus 1 -h',
            'reservation create',
        ),
        'of the program': ('--config-file --help', '[options]'),
    },
)
def test_help_is_shown_behind_any_option(run, words, said):
    result = run(*words.split())
    assert (result.code, result.err) == (0, '')
    # The first two words are "usage:" and the program.
    assert result.out.split(maxsplit=2)[2].startswith(said)


def test_what_matters_most_comes_first(run):
    _, _, commands = run('--help').out.partition('Start with:\n')
    first = commands.partition('\n\n')[0].splitlines()
    names = [
        re.split('  +', line.strip())[0] for line in first if line[2:3] != ' '
    ]
    assert names == ['lock create', 'key add', 'explain', 'audit', 'sync']


def test_options_of_the_output_are_only_named(run):
    text = run('help', 'lock', 'list').out
    own, _, output = text.partition('\nOutput, as of all commands: ')
    assert '--max-width' not in own
    assert ' '.join(output.split()).startswith(
        '-f/--format csv|json|table|value|yaml, -c/--column, '
    )
