# SPDX-License-Identifier: Apache-2.0
"""Commands on the examples, a part of those of ``tools/outputs.py``."""

import importlib.util
import pathlib

import pytest

PATH = pathlib.Path(__file__).parents[2] / 'tools' / 'outputs.py'
# One of so many invocations.
PART = 20


@pytest.mark.usefixtures('without_configuration')
def test_commands_on_the_examples_end_with_a_known_status(tmp_path):
    spec = importlib.util.spec_from_file_location('outputs', PATH)
    outputs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(outputs)
    commands = list(outputs.invocations(str(tmp_path)))[::PART]
    texts = [outputs.run(argv, str(tmp_path)) for argv in commands]
    assert len(texts) > 50
    assert {text.splitlines()[0] for text in texts} <= {*'01234'}
    assert [text for text in texts if 'Traceback' in text] == []
    assert len({text for text in texts if text.startswith('0')}) > 20
