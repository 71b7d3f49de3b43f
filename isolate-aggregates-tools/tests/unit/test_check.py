# SPDX-License-Identifier: Apache-2.0
"""``check`` answers yes or no, with one reason and the exit status."""

import json

import pytest

WINDOWS = 'examples/windows-licensing.yaml'
EXAMPLES = (WINDOWS, 'examples/reservations.yaml', 'examples/campus.yaml')


def test_the_answer_is_yes(run):
    result = run(
        *('check', '--flavor', 'win.small', '--host', 'win-1'),
        *('--snapshot', WINDOWS),
    )
    assert (result.code, result.out, result.err) == (0, 'yes\n', '')


def test_the_answer_is_no_with_one_reason(run):
    result = run(
        *('check', '--flavor', 'm1.small', '--host', 'win-1'),
        *('--snapshot', WINDOWS),
    )
    assert (result.code, result.err) == (4, '')
    assert result.out == (
        'no: in aggregate win-hosts, locked by trait CUSTOM_LICENSED_WINDOWS, '
        'which flavor m1.small does not require\n'
    )


@pytest.mark.parametrize(
    ('host', 'code', 'document'),
    [
        (
            'win-1',
            4,
            {
                'verdict': 'excluded',
                'reason': 'in aggregate win-hosts, locked by trait '
                'CUSTOM_LICENSED_WINDOWS, which flavor m1.small does not '
                'require',
            },
        ),
        ('linux-1', 0, {'verdict': 'candidate', 'reason': None}),
    ],
)
def test_the_answer_is_a_document_for_programs(run, host, code, document):
    result = run(
        *('check', '--flavor', 'm1.small', '--host', host),
        *('--snapshot', WINDOWS, '-f', 'json'),
    )
    assert (result.code, result.err) == (code, '')
    assert json.loads(result.out) == {
        'schema': 'isolate-aggregates/check/1',
        'host': host,
        **document,
    }


def test_a_host_that_does_not_exist_is_no_answer(run):
    result = run(
        *('check', '--flavor', 'm1.small', '--host', 'win-9'),
        *('--snapshot', WINDOWS),
    )
    assert (result.code, result.out) == (1, '')
    assert "'win-9'" in result.err


@pytest.mark.parametrize('missing', ['--host', '--flavor'])
def test_both_are_required(run, missing):
    words = {'--host': 'win-1', '--flavor': 'm1.small'}
    del words[missing]
    [given] = words.items()
    result = run('check', *given, '--snapshot', WINDOWS)
    assert result.code == 2
    assert missing in result.err


@pytest.mark.parametrize('example', EXAMPLES)
def test_it_agrees_with_explain_on_every_host(run, example):
    explained = json.loads(
        run(
            *('explain', '--flavor', 'm1.small', '--snapshot', example),
            *('-f', 'json'),
        ).out
    )['hosts']
    assert explained
    for host in explained:
        result = run(
            *('check', '--flavor', 'm1.small', '--host', host['name']),
            *('--snapshot', example),
        )
        said = f'no: {host["reasons"][0]}\n' if host['reasons'] else 'yes\n'
        assert result.out == said
        assert result.code == (4 if host['reasons'] else 0)
