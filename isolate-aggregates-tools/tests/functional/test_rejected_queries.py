# SPDX-License-Identifier: Apache-2.0
"""What commands answer if Placement does not answer a query with 200."""

import json

import pytest


@pytest.mark.parametrize(
    ('spec', 'unknown'),
    [
        ('trait:CUSTOM_NEW: required', 'trait CUSTOM_NEW'),
        ('resources:CUSTOM_NEW: 1', 'resource class CUSTOM_NEW'),
    ],
)
def test_all_commands_answer_alike_if_a_requested_name_does_not_exist(
    run, tmp_path, spec, unknown
):
    cloud = tmp_path / 'cloud.yaml'
    cloud.write_text(
        'version: 1\n'
        'providers: [{name: cn1, inventories: {VCPU: 8}}]\n'
        'flavors:\n'
        f'- {{name: f, vcpus: 1, extra_specs: {{{spec}}}}}\n',
        encoding='utf-8',
    )
    arguments = ['--snapshot', str(cloud), '--flavor', 'f']
    beginnings = {
        'explain': '0 of 1 host may be used.',
        'candidate list': '0 hosts may be used. Use explain to see why.',
        'capacity list': 'No more servers of this flavor fit.',
    }
    for command, beginning in beginnings.items():
        result = run(*command.split(), *arguments)
        assert (result.code, result.err) == (4, '')
        assert result.out.lstrip().startswith(beginning)
        document = json.loads(
            run(*command.split(), *arguments, '-f', 'json').out
        )
        rejected = document.get('summary', document)['rejected']
        assert 'as invalid (400): ' in rejected
        assert unknown.rpartition(' ')[2] in rejected
        assert rejected in result.out.replace('\n', ' ')


def test_an_amount_that_no_database_can_compare_is_one_sentence(run, tmp_path):
    cloud = tmp_path / 'cloud.yaml'
    cloud.write_text(
        'version: 1\n'
        'providers: [{name: cn1, inventories: {VCPU: 8}}]\n'
        'flavors:\n'
        "- {name: f, extra_specs: {'resources:VCPU': '99999999999999999999'}}"
        '\n',
        encoding='utf-8',
    )
    result = run(
        'candidate', 'list', '--snapshot', str(cloud), '--flavor', 'f'
    )
    assert (result.code, result.err.count('\n')) == (1, 1)
    assert 'too large to convert to SQLite INTEGER' in result.err
