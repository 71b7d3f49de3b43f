# SPDX-License-Identifier: Apache-2.0
"""The program that records what servers were placed with."""

import subprocess
import sys

from nova.db.api import models as api_models
from nova.db.main import models
import pytest
import sqlalchemy as sa

from isolate_aggregates.nova import manage


@pytest.fixture
def run(tmp_path):
    """Return a function that runs the program with empty databases."""
    urls = {
        name: f'sqlite:///{tmp_path}/{name}.sqlite'
        for name in ('api_database', 'database')
    }
    for name, base in (
        ('api_database', api_models.BASE),
        ('database', models.BASE),
    ):
        base.metadata.create_all(sa.create_engine(urls[name]))

    def run(*arguments, more='', **changed):
        path = tmp_path / 'nova.conf'
        path.write_text(
            ''.join(
                f'[{name}]\nconnection = {url}\n'
                for name, url in (urls | changed).items()
            )
            + more,
            'utf-8',
        )
        return subprocess.run(
            [
                *(sys.executable, '-m', manage.__name__),
                *('--config-file', path, *arguments),
            ],
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_it_says_what_it_has_done(run):
    for name, verb in (('record', 'recorded'), ('forget', 'changed')):
        done = run(name)
        assert (done.returncode, done.stdout) == (0, f'0 servers {verb}.\n')
        assert 'Traceback' not in done.stderr


@pytest.mark.parametrize('count', ['0', '-1', 'x'])
def test_a_number_that_makes_no_sense_is_refused(run, count):
    done = run('record', f'--max-count={count}')
    assert done.returncode in (2, 127)
    assert 'max-count' in done.stderr
    assert 'Traceback' not in done.stderr


def test_a_database_that_cannot_be_read_is_an_error(run):
    done = run('record', api_database='sqlite:////does/not/exist.sqlite')
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(
        "Nova's database cannot be read: "
    )
    assert 'Traceback' not in done.stderr


def test_a_database_without_tables_says_what_makes_them(run, tmp_path):
    done = run('record', api_database=f'sqlite:///{tmp_path}/empty.sqlite')
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(
        "Nova's database cannot be read: it has no table "
    )
    assert 'run nova-manage api_db sync' in done.stderr


def test_a_line_that_cannot_be_read_is_named_and_not_quoted(run):
    done = run('record', more='password S3CRET\n')
    assert done.returncode == 127
    assert 'nova.conf cannot be read: line 5: ' in done.stderr
    assert 'S3CRET' not in done.stderr
    assert 'Traceback' not in done.stderr


def test_files_without_a_database_are_named(run):
    done = run('record', api_database='')
    assert done.returncode == 127
    assert '[api_database] connection is not set' in done.stderr
    assert 'nova.conf; name those of nova-scheduler' in done.stderr


def test_a_file_that_cannot_be_read_is_an_error(run):
    done = run('record', more='nonsense')
    assert done.returncode == 127
    assert 'nova.conf' in done.stderr
    assert 'Traceback' not in done.stderr
