# SPDX-License-Identifier: Apache-2.0
"""The commands in the comment of each example have the stated results."""

import json
import pathlib
import re
import shlex

import pytest

ROOT = pathlib.Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / 'examples').glob('*.yaml'))

# "isolate-aggregates candidate list ...  -> win-1, win-2 (with a remark)"
_PROMISE = re.compile(r'^ +isolate-aggregates (.+?) +-> (.+?)(?: \(.*\))?$')


def promises(path):
    """Return each command in the comment with its expected result."""
    lines = path.read_text('utf-8').splitlines()
    comment = [line[1:] for line in lines[: lines.index('version: 1')]]
    commands = '\n'.join(comment).replace('\\\n', ' ').splitlines()
    return [m.groups() for line in commands if (m := _PROMISE.match(line))]


PROMISES = [
    pytest.param(
        shlex.split(command),
        outcome,
        id=f'{path.stem}: {" ".join(shlex.split(command)[3:])}',
    )
    for path in EXAMPLES
    for command, outcome in promises(path)
]


@pytest.mark.parametrize('path', EXAMPLES, ids=lambda path: path.stem)
def test_each_arrow_in_an_example_is_tested(path):
    arrows = path.read_text('utf-8').count('->')
    assert arrows > 0
    assert len(promises(path)) == arrows


@pytest.mark.parametrize(
    ('arguments', 'outcome'),
    [row for row in PROMISES if row.values[1] != 'refused'],
)
def test_the_command_gives_the_hosts_that_the_comment_names(
    run, monkeypatch, arguments, outcome
):
    monkeypatch.chdir(ROOT)
    result = run(*arguments, '-f', 'json')
    assert result.code == 0, result.err
    hosts = [host['name'] for host in json.loads(result.out)['hosts']]
    assert hosts == outcome.split(', ')


@pytest.mark.parametrize(
    ('arguments', 'outcome'),
    [row for row in PROMISES if row.values[1] == 'refused'],
)
def test_a_refused_command_gives_the_reason_in_one_sentence(
    run, monkeypatch, arguments, outcome
):
    monkeypatch.chdir(ROOT)
    result = run(*arguments, '-f', 'json')
    assert result.code == 4
    assert result.out == ''
    assert re.fullmatch(r'Request refused: [^\n]+\.\n', result.err)
