# SPDX-License-Identifier: Apache-2.0
"""The configurations of logging on the page about records are run."""

import json
import pathlib
import shutil
import subprocess
import sys

import pages
import pytest

from isolate_aggregates_tools.decisions import logs

PAGE = pages.path('admin/decisions.rst')
EXAMPLE = pages.ROOT / 'examples' / 'decisions' / 'nova-scheduler.log'
LINE = '2026-11-28 10:58:19.986 7 INFO isolate_aggregates.decisions '
# More than rsyslog takes for two lines.
SECONDS = 3

# What nova-scheduler does, with the name of the file that it is given.
_PROGRAM = """
import sys
from oslo_config import cfg
from oslo_log import log

conf = cfg.ConfigOpts()
log.register_options(conf)
conf(['--log-config-append', sys.argv[1]], default_config_files=[])
log.setup(conf, 'nova')
log.getLogger('nova.scheduler').info('A message of Nova')
log.getLogger('isolate_aggregates.decisions').info('%s', sys.argv[2])
"""


def block(caption):
    """Return the text of a block of the page."""
    [found] = [
        each.text for each in pages.blocks(PAGE) if each.caption == caption
    ]
    return found


@pytest.fixture
def record():
    """Return a record that a nova-scheduler has written, and its text."""
    found = next(logs.records([str(EXAMPLE)], logs.NotRead()))
    return found, json.dumps(found, separators=(',', ':'))


def test_a_handler_of_its_own_writes_nothing_but_records(tmp_path, record):
    found, text = record
    target, config = tmp_path / 'decisions.log', tmp_path / 'logging.conf'
    place = '/var/log/nova/decisions.log'
    assert place in block('logging.conf')
    config.write_text(block('logging.conf').replace(place, str(target)))
    result = subprocess.run(
        [sys.executable, '-c', _PROGRAM, str(config), text],
        capture_output=True,
        text=True,
        check=True,
    )
    assert 'A message of Nova' in result.stderr
    assert 'schema' not in result.stderr
    assert len(target.read_text().splitlines()) == 1
    not_read = logs.NotRead()
    assert list(logs.records([str(target)], not_read)) == [found]


def test_records_are_read_from_the_journal(tmp_path, record):
    """That of a journal file, which a tool of systemd writes."""
    found, text = record
    remote = pathlib.Path('/lib/systemd/systemd-journal-remote')
    if not remote.exists() or not shutil.which('journalctl'):
        pytest.skip('systemd-journal-remote is not installed')
    line = (
        f'2026-11-28 10:58:19.986 7 INFO isolate_aggregates.decisions {text}'
    )
    entries = tmp_path / 'entries'
    entries.write_text(
        '\n\n'.join(
            f'__REALTIME_TIMESTAMP=179587986500000{number}\n'
            f'_BOOT_ID={"0" * 31}1\nMESSAGE={line}\nLOGGER_NAME={logger}'
            for number, logger in enumerate(
                ('isolate_aggregates.decisions', 'nova.scheduler')
            )
        )
        + '\n\n'
    )
    journal, exported = tmp_path / 'x.journal', tmp_path / 'x.json'
    subprocess.run([remote, '-o', journal, entries], check=True)
    with exported.open('w') as stream:
        subprocess.run(
            ['journalctl', '--file', journal, '-o', 'json'],
            stdout=stream,
            check=True,
        )
    not_read = logs.NotRead()
    assert list(logs.records([str(exported)], not_read)) == [found]


def test_records_are_read_from_rsyslog(tmp_path, record):
    found, text = record
    rsyslogd = shutil.which('rsyslogd', path='/usr/sbin')
    if not rsyslogd:
        pytest.skip('rsyslog is not installed')
    log = tmp_path / 'nova-scheduler.log'
    target = tmp_path / 'decisions.log'
    line = (
        f'2026-11-28 10:58:19.986 7 INFO isolate_aggregates.decisions {text}'
    )
    log.write_text(f'2026-11-28 10:58:19.986 7 INFO nova.x [-] x\n{line}\n')
    config = tmp_path / 'rsyslog.conf'
    config.write_text(
        f'$WorkDirectory {tmp_path}\nmodule(load="builtin:omfile")\n'
        + block('nova-decisions.conf').replace('/var/log/nova', str(tmp_path))
    )
    with subprocess.Popen(
        [rsyslogd, '-n', '-f', config, '-i', tmp_path / 'pid']
    ) as process:
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.terminate()
    not_read = logs.NotRead()
    assert list(logs.records([str(target)], not_read)) == [found]
