# SPDX-License-Identifier: Apache-2.0
"""What becomes a metric of a cloud, and what stays when it cannot be read."""

import pathlib
import re
import threading

from pages import SOURCE, blocks
import prometheus_client
import pytest
from samples import samples
import yaml

from isolate_aggregates import exception
from isolate_aggregates.cli import base
from isolate_aggregates.cloud import file as cloud_file
from isolate_aggregates.inspect.audit import AuditedCloud
from isolate_aggregates.inspect.metrics import (
    cloud,
    reading,
    scheduler,
    textfile,
)

EXAMPLES = pathlib.Path(__file__).parents[2] / 'examples'
PAGE = SOURCE / 'admin' / 'metrics.rst'
# What names have in the text beside those of their families.
ENDS = {'counter': '_total', 'info': '_info'}
LICENSED = 'trait:CUSTOM_LICENSED_WINDOWS'


@pytest.fixture
def audited_of(conf):
    """Return a cloud file and its settings as what an audit looks at."""

    def load(path):
        snapshot = cloud_file.load(path)
        base.apply_settings(conf, snapshot)
        return AuditedCloud.of(snapshot, conf)

    return load


class Cloud:
    """A cloud that can be read, until it is broken.

    :param audited: What is read.
    """

    def __init__(self, audited):
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
        return cloud.families(self.audited)


@pytest.fixture
def windows(audited_of):
    """The Windows licensing example."""
    return Cloud(audited_of(EXAMPLES / 'windows-licensing.yaml'))


# What there is in a cloud.


def test_each_lock_has_its_aggregates_hosts_and_capacity(windows):
    one = windows.reading()
    one.read()
    found = samples(one)
    prefix = 'isolate_aggregates_lock'
    assert found[f'{prefix}_aggregates', LICENSED] == 1
    assert found[f'{prefix}_hosts', LICENSED] == 2
    assert {
        name.removeprefix(f'{prefix}_'): value
        for (name, *labels), value in found.items()
        if labels == ['VCPU', LICENSED]
    } == {'capacity': 32, 'used': 4, 'free': 28}


def test_findings_are_counted_by_kind_and_severity(audited_of, write_cloud):
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
    one = Cloud(audited_of(path)).reading()
    one.read()
    found = {
        tuple(labels): value
        for (name, *labels), value in samples(one).items()
        if name == 'isolate_aggregates_audit_findings'
    }
    audited = audited_of(path)
    expected = {}
    for finding in cloud.audit(audited):
        key = tuple(sorted((finding.kind, finding.severity.label)))
        expected[key] = expected.get(key, 0) + 1
    assert found == expected
    assert len(found) > 1
    assert max(found.values()) > 1


@pytest.mark.parametrize(
    'name',
    [
        pytest.param('x"} 1 evil{a="', id='what ends a label'),
        pytest.param('back\\slash\\n', id='a backslash'),
        pytest.param('für ☃', id='other letters'),
    ],
)
def test_names_of_locks_stay_in_their_label(audited_of, write_cloud, name):
    metadata = {f'trait:{name}': 'required'}
    path = write_cloud(
        yaml.safe_dump({'aggregates': [{'name': 'a', 'metadata': metadata}]})
    )
    one = Cloud(audited_of(path)).reading()
    one.read()
    found = samples(one)
    assert found['isolate_aggregates_lock_aggregates', f'trait:{name}'] == 1
    assert not any(key[0] == 'evil' for key in found)


def test_names_of_locks_are_no_orders_to_a_terminal(audited_of, write_cloud):
    metadata = {'trait:X\n1\x1b[31m': 'required'}
    path = write_cloud(
        yaml.safe_dump({'aggregates': [{'name': 'a', 'metadata': metadata}]})
    )
    one = Cloud(audited_of(path)).reading()
    one.read()
    shown = r'trait:X\n1\x1b[31m'
    assert samples(one)['isolate_aggregates_lock_aggregates', shown] == 1


# When a cloud cannot be read.


def test_before_the_first_reading_there_are_no_values(windows):
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


def test_a_reading_that_fails_keeps_the_values_and_they_age(windows):
    one = windows.reading()
    one.read()
    before = samples(one)
    assert before[('isolate_aggregates_up',)] == 1
    assert before[('isolate_aggregates_snapshot_age_seconds',)] == 2

    windows.now = 1500
    windows.error = exception.ServiceUnreachable('Nova', None, 'is away.')
    with pytest.raises(exception.ServiceUnreachable):
        one.read()
    failed = samples(one)
    changed = {key[0] for key in failed if failed[key] != before.get(key)}
    assert changed == {
        'isolate_aggregates_up',
        'isolate_aggregates_last_failure_timestamp_seconds',
        'isolate_aggregates_snapshot_age_seconds',
    }
    assert failed.keys() >= before.keys()
    assert failed[('isolate_aggregates_up',)] == 0
    assert failed[('isolate_aggregates_snapshot_age_seconds',)] == 502
    assert failed[('isolate_aggregates_snapshot_timestamp_seconds',)] == 1000

    windows.error = None
    one.read()
    after = samples(one)
    assert after[('isolate_aggregates_up',)] == 1
    assert after[('isolate_aggregates_snapshot_timestamp_seconds',)] == 1502
    assert after[('isolate_aggregates_snapshot_duration_seconds',)] == 2


def test_a_clock_that_was_put_back_makes_no_age_below_nothing(windows):
    one = windows.reading()
    one.read()
    windows.now = 10
    assert samples(one)[('isolate_aggregates_snapshot_age_seconds',)] == 0


def test_reading_goes_on_after_any_failure_until_it_is_stopped(caplog):
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


def test_a_file_keeps_what_was_known(windows, tmp_path):
    path = str(tmp_path / 'isolation.prom')
    one = windows.reading(tells_age=False)
    one.read()
    registry = prometheus_client.CollectorRegistry()
    for collector in (one, reading.Build()):
        registry.register(collector)
    textfile.write(path, registry)

    again = windows.reading(known=textfile.known(path), tells_age=False)
    kept = samples(again)
    assert kept.pop(('isolate_aggregates_up',)) == 0
    was = samples(one)
    assert was.pop(('isolate_aggregates_up',)) == 1
    assert kept == was
    assert list(tmp_path.iterdir()) == [pathlib.Path(path)]


@pytest.mark.parametrize(
    'text', [b'{{{', b'\xff', b'a{b="c} 1\n'], ids=['none', 'bytes', 'cut off']
)
def test_a_file_that_makes_no_sense_is_told_and_left(text, tmp_path, caplog):
    path = tmp_path / 'isolation.prom'
    path.write_bytes(text)
    assert textfile.known(str(path)) == reading.Known()
    [record] = caplog.records
    assert f'The metrics in {path} cannot be kept: ' in record.getMessage()


def test_a_file_that_cannot_be_written_is_an_error(tmp_path):
    path = tmp_path / 'missing' / 'isolation.prom'
    registry = prometheus_client.CollectorRegistry()
    with pytest.raises(exception.MetricsError) as caught:
        textfile.write(str(path), registry)
    assert str(caught.value) == (
        f'The metrics cannot be written to {path}: No such file or directory.'
    )


# The page.


def documented():
    """Return the metrics of the tables, with their labels."""
    rows = re.findall(
        r'^   \* - ``(isolate_\w+)``\n     - ?(.*)$',
        PAGE.read_text('utf-8'),
        re.MULTILINE,
    )
    return {
        name: {label for label in labels.split(', ') if label}
        for name, labels in rows
    }


def test_the_page_has_each_metric_with_its_labels(windows, workers):
    windows.audited = AuditedCloud.of(windows.audited.snapshot, workers.conf)
    one = windows.reading()
    windows.error = exception.ServiceError('Nova', None, 'is strange.')
    with pytest.raises(exception.ServiceError):
        one.read()
    windows.error = None
    one.read()
    given = {}
    for collector in (one, reading.Build(), workers.collector):
        for family in collector.collect():
            name = family.name + ENDS.get(family.type, '')
            labels = given.setdefault(name, set())
            for sample in family.samples:
                labels |= set(sample.labels) - {'le'}
    # The example is clean, so there is no finding to see labels of.
    given['isolate_aggregates_audit_findings'] = {'kind', 'severity'}
    assert documented() == given


def test_the_file_of_the_page_is_what_is_written(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    example = EXAMPLES / 'windows-licensing.yaml'
    path = tmp_path / 'isolation.prom'
    written = run(
        'exporter', '--snapshot', str(example), '--textfile', str(path)
    )
    assert written == type(written)(0, '', '')
    [shown] = [b.text for b in blocks(PAGE) if b.caption == 'isolation.prom']
    real = path.read_text('utf-8')
    for part in re.split(r'^\.\.\.\n', shown, flags=re.MULTILINE):
        assert part in real


def test_the_alerts_of_the_page_are_rules_over_metrics_that_there_are():
    [shown] = [
        b.text for b in blocks(PAGE) if b.caption == 'isolation-rules.yml'
    ]
    rules = [
        rule
        for group in yaml.safe_load(shown)['groups']
        for rule in group['rules']
    ]
    assert len(rules) == 6
    known = documented()
    for rule in rules:
        assert set(rule) == {'alert', 'expr', 'for', 'labels', 'annotations'}
        assert re.fullmatch(r'\d+[mh]', rule['for'])
        assert rule['expr'].count('(') == rule['expr'].count(')')
        names = re.findall(r'isolate_aggregates_\w+', rule['expr'])
        assert names
        for name in names:
            assert name.removesuffix('_bucket') in known
        used = re.findall(r'[{,](\w+)[=!]', rule['expr'])
        told = re.findall(r'\$labels\.(\w+)', rule['annotations']['summary'])
        labels = set().union(
            *(known[name.removesuffix('_bucket')] for name in names)
        )
        assert set(used + told) <= labels


@pytest.fixture
def workers(count_into, conf):
    """A worker that has counted, and what reads that."""

    class Counted:
        collector = scheduler.Workers(str(count_into))

    Counted.conf = conf
    Counted.metrics = scheduler.WorkerMetrics(['isolate_aggregates'])
    # The exact figures are the matter of the tests of the workers.
    Counted.metrics.timer('isolate_aggregates', 0.001)
    return Counted
