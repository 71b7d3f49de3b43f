# SPDX-License-Identifier: Apache-2.0
"""What a program says about configuration files and output."""

import os
import sys

from oslo_config import cfg
import pytest

from isolate_aggregates import programs
from isolate_aggregates.exception import IsolateAggregatesError

PASSWORD = 'S3CRET'


@pytest.fixture
def said(tmp_path, monkeypatch):
    """Return a function that reads a file, and returns what is wrong."""
    monkeypatch.setenv('HOME', str(tmp_path))

    def said(*arguments):
        with pytest.raises(IsolateAggregatesError) as caught:
            programs.read(cfg.ConfigOpts(), arguments, 'nova', 'nova-compute')
        return str(caught.value)

    return said


@pytest.mark.parametrize('is_default', [False, True])
def test_a_line_is_named_and_never_quoted(said, tmp_path, is_default):
    path = tmp_path / '.nova' / 'nova.conf'
    path.parent.mkdir()
    path.write_text(f'[keystone_authtoken]\npassword {PASSWORD}\n')
    arguments = [] if is_default else [f'--config-file={path}']
    assert said(*arguments) == (
        f"The configuration {path} cannot be read: line 2: No ':' or '=' "
        'found in assignment.'
    )


@pytest.mark.parametrize('is_in_directory', [False, True])
def test_a_file_of_another_encoding_is_named(said, tmp_path, is_in_directory):
    (tmp_path / 'a.conf').write_text('[DEFAULT]\n')
    path = tmp_path / 'b.conf'
    path.write_bytes('# für Nova'.encode('latin-1'))
    arguments = (
        ['--config-dir', str(tmp_path)]
        if is_in_directory
        else ['--config-file', str(path)]
    )
    assert said(*arguments) == (
        f'The configuration {path} cannot be read: it is not UTF-8 text.'
    )


@pytest.mark.parametrize(
    ('option', 'name', 'why'),
    [
        ('--config-file', 'missing', 'No such file or directory'),
        ('--config-file', '', 'Is a directory'),
        ('--config-dir', 'missing', 'No such file or directory'),
        ('--config-dir', 'a.conf', 'Not a directory'),
    ],
)
def test_the_wrong_kind_of_file_is_named(said, tmp_path, option, name, why):
    (tmp_path / 'a.conf').touch()
    path = tmp_path / name
    assert said(option, str(path)) == (
        f'The configuration {path} cannot be read: {why}.'
    )


def test_a_file_without_permission_is_named(said, tmp_path):
    path = tmp_path / 'a.conf'
    path.touch(0)
    if os.access(path, os.R_OK):
        pytest.skip('the superuser may read everything')
    assert said('--config-file', str(path)) == (
        f'The configuration {path} cannot be read: Permission denied.'
    )


@pytest.mark.parametrize('is_read', [True, False])
def test_output_that_cannot_be_written_is_one_sentence(
    monkeypatch, capsys, is_read
):
    reader, writer = os.pipe()
    os.close(reader)
    with (
        open('/dev/full', 'w') as full,
        open(writer, 'w') as unread,
        monkeypatch.context() as patch,
    ):
        patch.setattr(sys, 'stdout', full if is_read else unread)
        # It is in a buffer until the end.
        ended = programs.run(lambda words: len(words) or print('x'), [], 9)
    why = 'No space left on device' if is_read else 'Broken pipe'
    said = f'The output cannot be written: {why}.\n'
    assert (ended, capsys.readouterr().err) == (9, said)


@pytest.mark.parametrize('error', [KeyboardInterrupt, ZeroDivisionError])
def test_what_was_printed_before_an_interruption_is_not_lost(capsys, error):
    def program(words):
        print('so far')
        raise error

    with pytest.raises(error):
        programs.run(program, [], 9)
    assert capsys.readouterr().out == 'so far\n'
