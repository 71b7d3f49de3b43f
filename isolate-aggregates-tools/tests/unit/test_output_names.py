# SPDX-License-Identifier: Apache-2.0
"""Names of objects in each output format."""

import json

import pytest


@pytest.mark.parametrize('output_format', ['csv', 'value', 'json', 'yaml'])
def test_only_a_table_leaves_out_names(run, tmp_path, output_format):
    hosts = [f'{letter}-host' for letter in 'abcdefghi']
    content = {
        'version': 1,
        'flavors': [{'name': 'plain'}],
        'providers': [{'name': host} for host in hosts],
        'aggregates': [
            {
                'name': 'locked',
                'metadata': {'trait:CUSTOM_X': 'required'},
                'hosts': hosts,
            }
        ],
    }
    path = tmp_path / 'cloud.json'
    path.write_text(json.dumps(content))
    result = run('audit', '--snapshot', str(path), '-f', output_format)
    # YAML folds long lines.
    shown = ' '.join(result.out.split())
    assert f'no server can land on {", ".join(hosts)}' in shown
    assert 'and 4 more' not in shown
    table = run('audit', '--snapshot', str(path)).out
    assert 'and 4 more' in ' '.join(table.split())
