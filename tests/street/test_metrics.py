# SPDX-License-Identifier: Apache-2.0
"""What becomes a metric of a cloud, and what stays when it cannot be read."""

import dataclasses
import os
import pathlib
import re
import threading

from cases import cases
from oslo_utils import netutils
from pages import SOURCE, blocks
import prometheus_client
import pytest
from samples import documented, samples
import yaml

from isolate_aggregates import exception
from isolate_aggregates.aggregates import domains, rollups
from isolate_aggregates_reservations import review
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools.audit import AuditedCloud
from isolate_aggregates_tools.cloud.file import cloud_file
from isolate_aggregates_tools.commands import clouds
from isolate_aggregates_tools.compute.servers import Server, Servers
from isolate_aggregates_tools.metrics import (
    cloud,
    last_sync,
    reading,
    reservations,
    scheduler,
    textfile,
)
from isolate_aggregates_tools.metrics.slots import SlotCounter
from isolate_aggregates_tools.placement.provider import Inventory
from isolate_aggregates_tools.room.survival import Survival
from isolate_aggregates_tools.testing import make_aggregate

EXAMPLES = pathlib.Path(__file__).parents[2] / 'examples'
PAGE = SOURCE / 'admin' / 'metrics.rst'
# Suffixes of sample names, in addition to the family's name.
ENDS = {'counter': '_total', 'info': '_info'}
LICENSED = 'trait:CUSTOM_LICENSED_WINDOWS'


@pytest.fixture
def audited_of(conf):
    """Return a cloud file and its settings as the input of an audit."""

    def load(path):
        snapshot = cloud_file.load(path)
        clouds.apply_settings(conf, snapshot)
        return AuditedCloud.of(snapshot, conf)

    return load


class Cloud:
    """A cloud that can be read, until it is broken.

    :param audited: What is read.
    """

    def __init__(self, conf, audited):
        self.slots = SlotCounter(conf, list)
        self.audited = audited
        self.error = None
        self.now = 1000.0

    def reading(self, **more):
        """Return what reads it, with a clock of ours."""
        return reading.CloudReading(self._read, clock=self.clock, **more)

    def clock(self):
        """Tell the time."""
        return self.now

    def _read(self):
        self.now += 2
        if self.error:
            raise self.error
        return cloud.families(self.audited, self.slots)


@pytest.fixture
def windows(conf, audited_of):
    """The Windows licensing example."""
    return Cloud(conf, audited_of(EXAMPLES / 'windows-licensing.yaml'))


@pytest.fixture
def cloud_of(conf, audited_of, write_cloud):
    """Return the cloud of a text."""
    return lambda text: Cloud(conf, audited_of(write_cloud(text)))


# What there is in a cloud.


def test_each_lock_has_its_aggregates_hosts_and_capacity(windows):
    one = windows.reading()
    one.read()
    values = samples(one)
    prefix = 'isolate_aggregates_lock'
    assert values[f'{prefix}_aggregates', LICENSED] == 1
    assert values[f'{prefix}_hosts', LICENSED] == 2
    assert {
        (name.removeprefix(f'{prefix}_'), labels[0]): value
        for (name, *labels), value in values.items()
        if name.startswith((f'{prefix}_capacity', f'{prefix}_used'))
    } == {
        ('capacity', 'VCPU'): 32,
        ('used', 'VCPU'): 4,
        ('capacity_bytes', 'MEMORY_MB'): 128 * 2**30,
        ('used_bytes', 'MEMORY_MB'): 8 * 2**30,
        ('capacity_bytes', 'DISK_GB'): 2000 * 2**30,
        ('used_bytes', 'DISK_GB'): 80 * 2**30,
    }


def test_each_domain_has_the_projects_that_differ(cloud_of):
    one = cloud_of("""
        aggregates:
        - name: acme-hosts
          hosts: [h]
          metadata:
            filter_tenant_id:domain:acme: acme
            filter_tenant_id:domain:acme:a: a
            filter_tenant_id:domain:acme:x: x
            filter_tenant_id:domain:acme:y: y
            filter_tenant_id:domain:right: right
            filter_tenant_id:domain:right:r: r
            filter_tenant_id:domain:gone: gone
            filter_tenant_id:domain:unread: unread
        domains:
        - {id: acme, projects: [a, b]}
        - {id: right, projects: [r]}
        - {id: gone, projects: null}
    """).reading()
    one.read()
    prefix = 'isolate_aggregates_domain_projects_'
    assert {
        (name.removeprefix(prefix), *labels): value
        for (name, *labels), value in samples(one).items()
        if name.startswith(prefix)
    } == {
        ('missing', 'acme', 'acme-hosts'): 1,
        ('left', 'acme', 'acme-hosts'): 2,
        ('missing', 'acme-hosts', 'right'): 0,
        ('left', 'acme-hosts', 'right'): 0,
    }


def test_metrics_have_one_name_per_unit(cloud_of):
    one = cloud_of("""
        aggregates:
        - {name: a, hosts: [h], metadata: {'trait:CUSTOM_A': required}}
        providers:
        - name: h
          inventories:
            NET_BW_EGR_KILOBIT_PER_SEC: 8
            NET_PACKET_RATE_KILOPACKET_PER_SEC: 3
            VGPU: 4
            CUSTOM_MEMORY_MB: 5
    """).reading()
    one.read()
    prefix = 'isolate_aggregates_lock_capacity'
    assert {
        (name.removeprefix(prefix), labels[0]): value
        for (name, *labels), value in samples(one).items()
        if name.startswith(prefix)
    } == {
        ('_bytes_per_second', 'NET_BW_EGR_KILOBIT_PER_SEC'): 1000,
        ('_packets_per_second', 'NET_PACKET_RATE_KILOPACKET_PER_SEC'): 3000,
        ('', 'VGPU'): 4,
        # Its unit is known to operators alone.
        ('', 'CUSTOM_MEMORY_MB'): 5,
    }


def test_rollups_are_verified_if_they_have_all_hosts(cloud_of):
    one = cloud_of("""
        aggregates:
        - {name: a, hosts: [h1], metadata: {'trait:CUSTOM_A': required}}
        - {name: b, hosts: [h2], metadata: {'trait:CUSTOM_A': required}}
        providers:
        - {name: h1}
        - {name: h2}
    """)
    [rollup] = rollups.rollups(one.audited.locks)
    reading = one.reading()

    def found():
        reading.read()
        return [
            samples(reading)[f'isolate_aggregates_{name}',]
            for name in ('rollups', 'rollups_complete')
        ]

    assert found() == [1, 0]
    one.audited = dataclasses.replace(
        one.audited,
        snapshot=dataclasses.replace(
            one.audited.snapshot,
            providers=tuple(
                dataclasses.replace(
                    node, aggregates=node.aggregates | {rollup.uuid}
                )
                for node in one.audited.snapshot.providers
            ),
        ),
    )
    assert found() == [1, 1]


def test_servers_are_counted_by_location(windows):
    def server(name, host, flavor='m1.small', image='debian-12'):
        return Server(
            name,
            name,
            'p',
            'ACTIVE',
            host,
            windows.audited.snapshot.flavor(flavor),
            image,
        )

    one = windows.reading()
    one.read()
    # They were not read, so there are no metrics of them.
    assert not any('servers' in key[0] for key in samples(one))

    images = {i.name: i for i in windows.audited.snapshot.images}
    placed = (
        server('a', 'linux-1'),
        server('b', 'win-1', 'win.small'),
        server('c', 'win-1'),
        # Its image is gone, which may have had the key.
        server('d', 'win-2', image='gone'),
        # Without a host, and in a cell that is down.
        server('e', None),
        Server('f', 'f', '', 'UNKNOWN'),
    )
    windows.audited = dataclasses.replace(
        windows.audited, servers=Servers(placed, images, True)
    )
    one.read()
    assert {
        key[1]: value
        for key, value in samples(one).items()
        if key[0] == 'isolate_aggregates_servers'
    } == {'allowed': 2, 'misplaced': 1, 'unknown': 2}


def test_findings_are_counted_by_kind_and_severity(
    conf, audited_of, write_cloud
):
    path = write_cloud("""
        settings:
          scheduler: {enable_isolated_aggregate_filtering: true}
        aggregates:
        - name: first
          hosts: [h1]
          metadata: {'trait:CUSTOM_A': required}
        - name: second
          hosts: [h2]
          metadata: {'trait:CUSTOM_B': required, 'trait:CUSTOM_C': Required}
        providers:
        - name: h1
        - name: h2
    """)
    one = Cloud(conf, audited_of(path)).reading()
    one.read()
    found = {
        tuple(labels): value
        for (name, *labels), value in samples(one).items()
        if name == 'isolate_aggregates_audit_findings'
    }
    audited_cloud = audited_of(path)
    expected = {}
    for finding in cloud.audit(audited_cloud):
        key = tuple(sorted((finding.kind, finding.severity.label)))
        expected[key] = expected.get(key, 0) + 1
    assert found == expected
    assert len(found) > 1
    assert max(found.values()) > 1


@cases(
    'name',
    {
        'what ends a label': 'x"} 1 evil{a="',
        'a backslash': 'back\\slash\\n',
        'other letters': 'für ☃',
    },
)
def test_lock_names_are_escaped_in_labels(cloud_of, name):
    metadata = {f'trait:{name}': 'required'}
    one = cloud_of(
        yaml.safe_dump({'aggregates': [{'name': 'a', 'metadata': metadata}]})
    ).reading()
    one.read()
    values = samples(one)
    assert values['isolate_aggregates_lock_aggregates', f'trait:{name}'] == 1
    assert not any(key[0] == 'evil' for key in values)


def test_control_characters_in_lock_names_are_escaped(cloud_of):
    metadata = {'trait:X\n1\x1b[31m': 'required'}
    one = cloud_of(
        yaml.safe_dump({'aggregates': [{'name': 'a', 'metadata': metadata}]})
    ).reading()
    one.read()
    shown = r'trait:X\n1\x1b[31m'
    assert samples(one)['isolate_aggregates_lock_aggregates', shown] == 1


# When a cloud cannot be read.


def test_before_the_first_reading_metrics_are_absent(windows):
    assert samples(windows.reading()) == {('isolate_aggregates_up',): 0}


def test_a_first_reading_that_fails_gives_no_zeros(windows):
    one = windows.reading()
    windows.error = exception.ServiceUnreachable('Nova', None, 'is away.')
    with pytest.raises(exception.ServiceUnreachable):
        one.read()
    assert samples(one) == {
        ('isolate_aggregates_up',): 0,
        ('isolate_aggregates_last_failure_timestamp_seconds',): 1000,
    }


def test_a_reading_that_fails_keeps_the_values_and_their_time(windows):
    one = windows.reading()
    one.read()
    before = samples(one)
    assert before[('isolate_aggregates_up',)] == 1

    windows.now = 1500
    windows.error = exception.ServiceUnreachable('Nova', None, 'is away.')
    with pytest.raises(exception.ServiceUnreachable):
        one.read()
    failed = samples(one)
    changed = {key[0] for key in failed if failed[key] != before.get(key)}
    assert changed == {
        'isolate_aggregates_up',
        'isolate_aggregates_last_failure_timestamp_seconds',
    }
    assert failed.keys() >= before.keys()
    assert failed[('isolate_aggregates_up',)] == 0
    assert failed[('isolate_aggregates_snapshot_timestamp_seconds',)] == 1000

    windows.error = None
    one.read()
    after = samples(one)
    assert after[('isolate_aggregates_up',)] == 1
    assert after[('isolate_aggregates_snapshot_timestamp_seconds',)] == 1502
    assert after[('isolate_aggregates_snapshot_duration_seconds',)] == 2


def test_reading_continues_after_any_failure_until_stopped(caplog):
    stopped = threading.Event()
    errors = [
        exception.ServiceError('Nova', None, 'is strange.'),
        ValueError('a bug'),
        None,
        reading.Stopped(),
    ]

    def read():
        error = errors.pop(0)
        if error:
            raise error
        return []

    one = reading.CloudReading(read)
    reading.keep_reading(one, 0, stopped)
    assert errors == []
    assert [record.getMessage() for record in caplog.records] == [
        'Nova is strange.',
        'The cloud cannot be read.',
    ]
    stopped.set()
    # There is nothing left to read, so it would fail.
    reading.keep_reading(one, 0, stopped)


# Files.


def test_metrics_in_a_file_are_kept(windows, tmp_path):
    path = str(tmp_path / 'isolation.prom')
    one = windows.reading()
    one.read()
    registry = prometheus_client.CollectorRegistry()
    for collector in (one, reading.Build()):
        registry.register(collector)
    textfile.write(path, registry)

    again = windows.reading(last=textfile.last_reading(path))
    kept = samples(again)
    assert kept.pop(('isolate_aggregates_up',)) == 0
    was = samples(one)
    assert was.pop(('isolate_aggregates_up',)) == 1
    assert kept == was
    assert list(tmp_path.iterdir()) == [pathlib.Path(path)]


# The parser of prometheus-client fails on it with an IndexError.
GARBLED = b'a{b="c", ="d"} 5{0\n'


@pytest.mark.parametrize(
    'text',
    [b'{{{', b'\xff', b'a{b="c} 1\n', GARBLED],
    ids=['none', 'bytes', 'cut off', 'garbled'],
)
def test_an_invalid_file_is_reported_and_ignored(text, tmp_path, caplog):
    path = tmp_path / 'isolation.prom'
    path.write_bytes(text)
    assert textfile.last_reading(str(path)) == reading.LastReading()
    [record] = caplog.records
    assert f'The metrics in {path} cannot be kept: ' in record.getMessage()


def test_a_file_that_cannot_be_written_is_an_error(tmp_path):
    path = tmp_path / 'missing' / 'isolation.prom'
    registry = prometheus_client.CollectorRegistry()
    with pytest.raises(tools_errors.MetricsError) as caught:
        textfile.write(str(path), registry)
    assert str(caught.value) == (
        f'The metrics cannot be written to {path}: No such file or directory.'
    )


def test_what_is_no_file_is_not_replaced(tmp_path):
    """As /dev/null and /dev/stdout would be, for the superuser."""
    path = tmp_path / 'pipe'
    os.mkfifo(path)
    with pytest.raises(tools_errors.MetricsError) as caught:
        textfile.write(str(path), prometheus_client.CollectorRegistry())
    assert str(caught.value) == (
        f'The metrics cannot be written to {path}: Not a regular file.'
    )
    assert path.is_fifo()


# What sync writes.


def test_the_last_success_of_sync_is_read_from_its_file(tmp_path):
    path = tmp_path / 'sync.prom'
    one = last_sync.LastSync(str(path))
    # Never is not long ago.
    assert samples(one) == {('isolate_aggregates_sync_up',): 0}
    last_sync.write(str(path), 1500.5)
    known = {
        ('isolate_aggregates_sync_last_success_timestamp_seconds',): 1500.5,
        ('isolate_aggregates_sync_up',): 1,
    }
    assert samples(one) == known


@pytest.mark.parametrize('text', [b'', b'{{{', b'\xff', b'other 1\n', GARBLED])
def test_a_file_not_written_by_sync_is_reported(text, tmp_path, caplog):
    path = tmp_path / 'sync.prom'
    path.write_bytes(text)
    one = last_sync.LastSync(str(path))
    assert samples(one) == {('isolate_aggregates_sync_up',): 0}
    messages = {record.getMessage() for record in caplog.records}
    [message] = messages
    assert message.startswith(
        f'The metrics that sync wrote to {path} cannot be '
    )


def test_metrics_of_sync_are_not_kept(tmp_path):
    path = tmp_path / 'all.prom'
    last_sync.write(str(path), 1500.5)
    assert textfile.last_reading(str(path)).families == []


# The page.


def test_the_page_has_each_metric_with_its_labels(windows, workers, tmp_path):
    path = str(tmp_path / 'sync.prom')
    last_sync.write(path, 1.0)
    node, *others = windows.audited.snapshot.providers
    amounts = {
        f'NET_{what}_PER_SEC': Inventory(1)
        for what in ('BW_EGR_KILOBIT', 'PACKET_RATE_KILOPACKET')
    }
    node = dataclasses.replace(
        node, inventories={**node.inventories, **amounts}
    )
    snapshot = windows.audited.snapshot
    windows.audited = AuditedCloud.of(
        dataclasses.replace(
            snapshot,
            aggregates=(
                *snapshot.aggregates,
                make_aggregate('acme', domains.tag('acme')),
            ),
            providers=(node, *others),
            domains={'acme': frozenset()},
        ),
        workers.conf,
        servers=Servers((), {}, True),
    )
    one = windows.reading()
    windows.error = exception.ServiceError('Nova', None, 'is strange.')
    with pytest.raises(exception.ServiceError):
        one.read()
    windows.error = None
    one.read()
    given = {}
    for collector in (
        one,
        reading.Build(),
        workers.collector,
        last_sync.LastSync(path),
    ):
        for family in collector.collect():
            name = family.name + ENDS.get(family.type, '')
            labels = given.setdefault(name, set())
            for sample in family.samples:
                labels |= set(sample.labels) - {'le'}
    # The example has no servers.
    [survival] = cloud.survival_families(
        Survival(1, (), (), {'no lock': 0}, 0, 0, ())
    )
    given[survival.name] = {*survival.samples[0].labels}
    for family in reservations.families(review.summary()):
        given[family.name] = {
            label for sample in family.samples for label in sample.labels
        }
    # The example has no findings, so there are no labels to check.
    given['isolate_aggregates_audit_findings'] = {'kind', 'severity'}
    assert documented(PAGE.read_text('utf-8')) == given


def test_the_file_on_the_page_is_the_written_one(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    example = EXAMPLES / 'windows-licensing.yaml'
    path = tmp_path / 'isolation.prom'
    written = run(
        'exporter', '--snapshot', str(example), '--output', str(path)
    )
    assert written == type(written)(0, '', '')
    [shown] = [b.text for b in blocks(PAGE) if b.caption == 'isolation.prom']
    real = path.read_text('utf-8')
    for part in re.split(r'^\.\.\.\n', shown, flags=re.MULTILINE):
        assert part in real


@pytest.fixture
def workers(count_into, conf, monkeypatch):
    """A worker that has counted, and what reads that."""
    # Nova asks for it when it is imported, with a socket.
    monkeypatch.setattr(netutils, 'get_my_ipv4', lambda: '127.0.0.1')
    worker_metrics = pytest.importorskip(
        'isolate_aggregates.nova.worker_metrics', exc_type=ImportError
    )

    class Counted:
        collector = scheduler.Workers(str(count_into))

    Counted.conf = conf
    Counted.metrics = worker_metrics.WorkerMetrics(
        ['isolate_aggregates'], str(count_into)
    )
    # The exact figures are the matter of the tests of the workers.
    Counted.metrics.timer('isolate_aggregates', 0.001)
    return Counted
