# SPDX-License-Identifier: Apache-2.0
"""Reservations of cloud files that were not saved by this release."""

ID = '4d17d41a-830d-47b2-91c7-4f9fc0ae611e'
FILE = f"""
version: 1
flavors:
- name: reservation:{ID}
  id: {ID}
  vcpus: 1
"""


def test_flavors_of_reservations_without_records_are_not_none(run, tmp_path):
    path = tmp_path / 'cloud.yaml'
    path.write_text(FILE)
    result = run('reservation', 'show', 'course', '--snapshot', str(path))
    assert (result.code, result.out) == (1, '')
    assert 'flavors of reservations but not their records' in result.err


def test_a_file_without_reservations_has_none(run, tmp_path):
    path = tmp_path / 'cloud.yaml'
    path.write_text('version: 1\n')
    result = run('reservation', 'list', '--snapshot', str(path))
    assert (result.code, result.err) == (0, '')
    assert 'There are no reservations.' in result.out
