# SPDX-License-Identifier: Apache-2.0
"""Names of objects in each output format."""

import json

import pytest

from isolate_aggregates.tools.cli import app


@pytest.mark.parametrize('output_format', ['csv', 'value', 'json', 'yaml'])
def test_only_a_table_leaves_out_names(tmp_path, capsys, output_format):
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
    app.main(['audit', '--snapshot', str(path), '-f', output_format])
    # YAML folds long lines.
    shown = ' '.join(capsys.readouterr().out.split())
    assert f'no server can land on {", ".join(hosts)}' in shown
    assert 'and 4 more' not in shown
    app.main(['audit', '--snapshot', str(path)])
    assert 'and 4 more' in ' '.join(capsys.readouterr().out.split())
