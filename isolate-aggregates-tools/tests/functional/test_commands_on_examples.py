# SPDX-License-Identifier: Apache-2.0
"""Commands on the examples, those of ``tools/outputs.py``."""

import importlib.util
import json
import pathlib

import jsonschema
from published_schemas import of_package
import pytest

from isolate_aggregates_tools.cli.exit_status import ExitStatus

SCHEMAS = of_package('isolate_aggregates_tools')
PATH = pathlib.Path(__file__).parents[3] / 'tools' / 'outputs.py'
# One of so many invocations.
PART = 20
ANSWERED = {'0', '3', '4', '7'}


@pytest.fixture
def outputs():
    """Return the module with the invocations."""
    spec = importlib.util.spec_from_file_location('outputs', PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def command_of(argv):
    """Return the name of the command, which has one word or two."""
    name = ' '.join(argv[:2])
    return name if name in SCHEMAS else argv[0]


def check_document(argv, text):
    """Check that JSON has the schema of its command."""
    code, _, rest = text.partition('\n--- out\n')
    if (
        'json' not in argv
        or command_of(argv) not in SCHEMAS
        or code not in ANSWERED
    ):
        return False
    document, _, errors = rest.partition('\n--- err\n')
    if not document and errors.startswith(('Request refused', 'nova-api')):
        return False
    jsonschema.validate(json.loads(document), SCHEMAS[command_of(argv)])
    return True


@pytest.mark.usefixtures('without_configuration')
def test_commands_on_the_examples_end_with_a_known_status(outputs, tmp_path):
    commands = list(outputs.invocations(str(tmp_path)))[::PART]
    texts = [outputs.run(argv, str(tmp_path)) for argv in commands]
    assert len(texts) > 50
    known = {f'{status:d}' for status in ExitStatus}
    assert {text.splitlines()[0] for text in texts} <= known
    assert [text for text in texts if 'Traceback' in text] == []
    assert len({text for text in texts if text.startswith('0')}) > 20
    assert sum(map(check_document, commands, texts)) > 10


@pytest.mark.slow
@pytest.mark.usefixtures('without_configuration')
def test_all_json_of_commands_on_the_examples_has_a_schema(outputs, tmp_path):
    checked = set()
    for argv in outputs.invocations(str(tmp_path)):
        is_first_file = '--init' in argv
        if 'json' in argv or is_first_file:
            text = outputs.run(argv, str(tmp_path))
            if check_document(argv, text):
                checked.add(command_of(argv))
    # It runs another program; its own test compares its document.
    assert checked == SCHEMAS.keys() - {'rehearse'}
