# SPDX-License-Identifier: Apache-2.0
"""The commands ``capacity`` and ``snapshot diff`` on cloud files."""

import json
import pathlib

import pytest

from isolate_aggregates.cli import app

WINDOWS = 'examples/windows-licensing.yaml'


def test_capacity_counts_in_total_and_by_host(capsys):
    arguments = ['capacity', '--snapshot', WINDOWS, '--flavor', 'm1.large']
    assert app.main([*arguments, '--image', 'debian-12', '-f', 'json']) == 0
    document = json.loads(capsys.readouterr().out)
    assert document['total'] == 11
    assert {h['name']: h['servers'] for h in document['hosts']} == {
        'linux-1': 4,
        'linux-2': 7,
    }


def test_capacity_of_a_refused_request_is_an_error(capsys):
    arguments = ['--snapshot', 'examples/reservations.yaml']
    assert app.main(['capacity', *arguments, '--flavor', 'ended.small']) == 1
    assert 'Request refused' in capsys.readouterr().err


def test_diff_shows_what_changed(capsys, tmp_path):
    other = tmp_path / 'other.yaml'
    text = pathlib.Path(WINDOWS).read_text(encoding='utf-8')
    other.write_text(text.replace('vcpus: 4', 'vcpus: 5'), encoding='utf-8')
    assert app.main(['snapshot', 'diff', WINDOWS, str(other)]) == 0
    out = capsys.readouterr().out
    assert '| flavor | m1.large | vcpus | 4      | 5     |' in out


@pytest.mark.parametrize('places', [(0, 1), (1, 0)])
def test_diff_of_a_file_that_is_not_there_is_an_error(capsys, places):
    files = [WINDOWS, 'nonexistent.yaml']
    assert app.main(['snapshot', 'diff', *(files[n] for n in places)]) == 1
    assert capsys.readouterr().err == (
        'Cloud file nonexistent.yaml: can not be read: No such file or '
        'directory.\n'
    )
