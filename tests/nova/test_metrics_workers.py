# SPDX-License-Identifier: Apache-2.0
"""The metrics of nova-scheduler's workers."""

import pathlib
import shutil
import time

from cases import cases
from function_filter import FunctionFilter
from prometheus_client import values
import pytest
from samples import samples

from isolate_aggregates import exception
from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.filters.constraints import Destination
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.nova import worker_metrics
from isolate_aggregates.nova.messages import Observer
from isolate_aggregates.request import Flavor
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.metrics import scheduler
from isolate_aggregates_tools.request import Request
from isolate_aggregates_tools.request.constraints import RequireRootTrait

PREFIX = 'isolate_aggregates_scheduler'
FILTERS = ('isolate_aggregates', 'isolate_tenants')
REQUEST = Request(Flavor('small'))


def read(directory):
    """Return the exporter's metrics of a directory."""
    return {
        (name.removeprefix(f'{PREFIX}_'), *labels): value
        for (name, *labels), value in samples(
            scheduler.Workers(str(directory))
        ).items()
    }


def refusals(directory):
    """Return the refusals that are more than none."""
    return {
        tuple(labels): value
        for (name, *labels), value in read(directory).items()
        if name == 'refusals_total' and value
    }


@cases(
    ('error', 'labels'),
    {
        'by a filter': (
            exception.RequestRefused(['no']),
            ('filter', 'isolate_tenants'),
        ),
        'for length': (
            exception.QueryNotShortened(['too long']),
            ('', 'query_length'),
        ),
        'by a filter that failed': (
            exception.FilterError('isolate_tenants', 'failed.'),
            ('filter_error', 'isolate_tenants'),
        ),
        'without aggregates': (
            exception.AggregatesUnreadable('away', None),
            ('', 'aggregates_unreadable'),
        ),
        'without Glance': (
            exception.ServiceDenied('Glance', None, 'said no.'),
            ('', 'service'),
        ),
        'else': (errors.InvalidRequest('nonsense'), ('', 'other')),
    },
)
def test_a_refusal_is_counted_by_its_reason(count_into, error, labels):
    metrics = worker_metrics.WorkerMetrics(FILTERS, str(count_into))
    assert refusals(count_into) == {}
    metrics.refused('isolate_tenants', error)
    assert refusals(count_into) == {labels: 1}
    assert read(count_into)[('requests_total',)] == 1


def test_all_labels_of_refusals_exist_from_the_start(count_into):
    metrics = worker_metrics.WorkerMetrics(FILTERS, str(count_into))
    there = set(read(count_into))
    # A forced host is refused by no filter.
    metrics.refused('', exception.RequestRefused(['x']))
    for name in FILTERS:
        for kind in (exception.RequestRefused, exception.QueryNotShortened):
            metrics.refused(name, kind(['x']))
        metrics.refused(name, exception.FilterError(name, 'failed.'))
        metrics.refused(name, exception.ServiceError('Glance', None, 'x'))
    assert set(read(count_into)) == there
    # In addition to the sums: causes of failures and effects of shadow, too.
    assert len(there) < 60 + 30 * len(FILTERS)


def test_a_request_that_passes_is_counted_with_its_time(count_into):
    metrics = worker_metrics.WorkerMetrics(FILTERS, str(count_into))
    metrics.passed(time.monotonic() - 20, Destination(), is_shortened=False)
    metrics.passed(time.monotonic(), Destination(), is_shortened=True)
    counts = read(count_into)
    assert counts[('requests_total',)] == 2
    assert counts[('queries_shortened_total',)] == 1
    assert counts[('request_duration_seconds_count',)] == 2
    assert counts[('request_duration_seconds_bucket', '3.0')] == 1
    assert counts[('request_duration_seconds_sum',)] >= 20
    assert refusals(count_into) == {}


def test_a_filter_that_excludes_hosts_is_counted(count_into):
    metrics = worker_metrics.WorkerMetrics(FILTERS, str(count_into))
    destination = Destination()
    for constraint in (
        RequireRootTrait('CUSTOM_A', 'one'),
        RequireRootTrait('CUSTOM_B', 'another'),
    ):
        destination.add(constraint, 'isolate_aggregates')
    metrics.passed(time.monotonic(), destination, is_shortened=False)
    counts = read(count_into)
    assert counts['requests_narrowed_total', 'isolate_aggregates'] == 1
    assert counts['requests_narrowed_total', 'isolate_tenants'] == 0


def test_hosts_excluded_after_placement_are_counted_by_their_share(count_into):
    metrics = worker_metrics.WorkerMetrics(FILTERS, str(count_into))
    for number in (0, 1, 60, 100):
        metrics.excluded(number, 100)
    counts = read(count_into)
    name = 'excluded_after_placement_ratio'
    assert {
        share: counts[f'{name}_bucket', share]
        for share in ('0.01', '0.5', '0.9', '1.0')
    } == {'0.01': 2, '0.5': 2, '0.9': 3, '1.0': 4}
    assert counts[(f'{name}_sum',)] == pytest.approx(1.61)


def test_each_reading_of_the_aggregates_that_fails_is_counted(count_into):
    metrics = worker_metrics.WorkerMetrics(FILTERS, str(count_into))
    assert read(count_into)[('aggregate_read_failures_total',)] == 0
    metrics.unreadable()
    assert read(count_into)[('aggregate_read_failures_total',)] == 1


def test_a_filter_is_timed_even_when_it_fails(count_into):
    metrics = worker_metrics.WorkerMetrics(FILTERS, str(count_into))

    def failing(request, aggregates):
        raise exception.FilterError('isolate_tenants', 'failed.')

    pipeline = Pipeline(
        {'isolate_tenants': FunctionFilter(failing)}, metrics.timer
    )
    for _ in range(2):
        with pytest.raises(exception.FilterError):
            pipeline.evaluate(REQUEST, AggregateIndex())
    count = 'filter_duration_seconds_count'
    assert read(count_into)[count, 'isolate_tenants'] == 2


def test_without_metrics_no_time_is_taken():
    assert Observer().timer is None


def test_a_worker_that_cannot_count_continues(count_into, monkeypatch, caplog):
    pids = [1]
    value_class = values.MultiProcessValue(lambda: pids[-1])
    monkeypatch.setattr(values, 'ValueClass', value_class)
    metrics = worker_metrics.WorkerMetrics(FILTERS, str(count_into))
    pipeline = Pipeline(
        {'isolate_tenants': FunctionFilter(lambda *_: ())}, metrics.timer
    )

    # Forked, with the directory gone.
    pids.append(2)
    shutil.rmtree(count_into)
    for _ in range(2):
        pipeline.evaluate(REQUEST, AggregateIndex())
        metrics.passed(time.monotonic(), Destination(), True)
        for name in ('isolate_tenants', ''):
            metrics.refused(name, exception.RequestRefused(['no']))

    [record] = caplog.records
    assert record.getMessage().startswith(
        'Nothing is counted for Prometheus: '
    )
    assert 'No such file or directory' in record.getMessage()


def test_metrics_of_other_plugins_are_omitted(count_into):
    import prometheus_client

    prometheus_client.Counter('other', 'x', registry=None).inc()
    worker_metrics.WorkerMetrics(FILTERS, str(count_into))
    values = samples(scheduler.Workers(str(count_into)))
    assert values
    assert {
        name for name, *_ in values if not name.startswith(PREFIX)
    } == set()


# Where nothing can be counted or read.


def test_another_directory_in_the_environment_is_named(count_into, tmp_path):
    with pytest.raises(exception.ConfigError) as caught:
        worker_metrics.WorkerMetrics(FILTERS, str(tmp_path))
    assert str(caught.value) == (
        'Configuration option [isolate_aggregates] '
        f'scheduler_metrics_directory is {tmp_path}, but '
        'PROMETHEUS_MULTIPROC_DIR in the environment of nova-scheduler is '
        f'{count_into}; set both to the same directory, or remove the '
        'variable.'
    )


def test_prometheus_client_can_be_imported_before_the_setup(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(values, 'ValueClass', values.MutexValue)
    # Set first, so that monkeypatch removes it again.
    monkeypatch.setenv('PROMETHEUS_MULTIPROC_DIR', str(tmp_path))
    for _ in range(2):
        metrics = worker_metrics.WorkerMetrics(FILTERS, str(tmp_path))
        metrics.passed(time.monotonic(), Destination(), False)
    # The second in the same process counts on.
    assert read(tmp_path)['requests_total',] == 2


def test_a_directory_that_is_missing_is_named(count_into):
    count_into.rmdir()
    with pytest.raises(exception.ConfigError) as caught:
        worker_metrics.WorkerMetrics(FILTERS, str(count_into))
    assert str(caught.value) == (
        'Configuration option [isolate_aggregates] '
        f'scheduler_metrics_directory is {count_into}, where nothing can be '
        'written: No such file or directory.'
    )


def broken(directory):
    """Put something else into the place of a file."""
    (directory / 'counter_1.db').write_bytes(b'\x40' + 63 * b'\0')


def foreign(directory):
    """Put a text into the place of a file."""
    (directory / 'counter_1.db').write_text('These are no numbers.' * 9)


def cut_off(directory):
    """Leave a file with nothing in it."""
    (directory / 'counter_1.db').touch()


@pytest.mark.parametrize('damage', [broken, foreign])
def test_a_broken_file_of_an_earlier_worker_is_named(
    count_into, monkeypatch, damage
):
    """In a container, the pids are the same after a restart."""
    damage(count_into)
    monkeypatch.setattr(
        values, 'ValueClass', values.MultiProcessValue(lambda: 1)
    )
    with pytest.raises(exception.ConfigError) as caught:
        worker_metrics.WorkerMetrics(FILTERS, str(count_into))
    assert str(count_into) in str(caught.value)


@cases(
    ('damage', 'cause'),
    {
        'missing': (pathlib.Path.rmdir, 'it is not a directory'),
        'broken': (broken, ''),
        'a text': (foreign, ''),
        'empty file': (cut_off, ''),
    },
)
def test_unreadable_counts_are_not_zero(tmp_path, caplog, damage, cause):
    damage(tmp_path)
    assert read(tmp_path) == {('up',): 0}
    [record] = caplog.records
    assert record.getMessage().startswith(
        f'The counts of nova-scheduler in {tmp_path} cannot be read: {cause}'
    )


def test_an_empty_directory_can_be_read(tmp_path):
    assert read(tmp_path) == {('up',): 1}
