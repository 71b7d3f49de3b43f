# SPDX-License-Identifier: Apache-2.0
"""What a real nova-scheduler counts, as the exporter reads it."""

from base import ISOLATE, CloudTest
import fixtures
import prometheus_client
from prometheus_client import parser, values

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.nova import worker_metrics
from isolate_aggregates_tools.metrics import scheduler

PREFIX = 'isolate_aggregates_scheduler'
VARIABLE = 'PROMETHEUS_MULTIPROC_DIR'


def samples(text, prefix):
    """Return samples as Prometheus reads them."""
    return {
        (
            sample.name.removeprefix(prefix),
            *sorted(sample.labels.values()),
        ): sample.value
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
    }


class MetricsTest(CloudTest):
    """A scheduler that counts, with two filters."""

    REQUEST_FILTERS = ('isolate_aggregates', 'blazar_reservation')
    OPTIONS = (ISOLATE,)

    def setUp(self):
        self.directory = self.useFixture(fixtures.TempDir()).path
        # Both are changed for the whole process.
        self.useFixture(fixtures.EnvironmentVariable(VARIABLE))
        self.useFixture(
            fixtures.MonkeyPatch(
                'prometheus_client.values.ValueClass', values.MutexValue
            )
        )
        self.OPTIONS = (
            *self.OPTIONS,
            (ia_conf.GROUP, worker_metrics.OPTION, self.directory),
        )
        super().setUp()

    def counted(self):
        """Return what has been counted, as Prometheus reads it."""
        registry = prometheus_client.CollectorRegistry()
        registry.register(scheduler.Workers(self.directory))
        text = prometheus_client.generate_latest(registry).decode()
        return samples(text, f'{PREFIX}_')

    def test_a_placement_and_a_refusal_are_counted(self):
        refused = ('refusals_total', 'blazar_reservation', 'filter')
        passed = ('request_duration_seconds_count',)
        times = 'filter_duration_seconds_count'
        before = self.counted()
        assert before[('up',)] == 1
        assert before[refused] == before[('requests_total',)] == 0

        self.aggregate('gpu', ['host1'], {'trait:HW_GPU': 'required'})
        assert self.host_for(self.flavor()) == 'host2'
        placed = self.counted()
        assert placed[('requests_total',)] == 1
        assert placed[passed] == 1
        assert placed[times, 'isolate_aggregates'] == 1
        narrowed = 'requests_narrowed_total'
        assert placed[narrowed, 'isolate_aggregates'] == 1
        assert placed[narrowed, 'blazar_reservation'] == 0
        assert placed[('request_duration_seconds_sum',)] > 0
        assert placed[refused] == 0

        self.refusal_of(self.flavor(), hints={'reservation': 'x'})
        found = self.counted()
        assert found[('requests_total',)] == 2
        assert found[passed] == 1
        assert found[refused] == 1
        assert found[times, 'isolate_aggregates'] == 2
        assert found[times, 'blazar_reservation'] == 2

        # The next worker in this process counts on.
        self.restart_scheduler()
        self.host_for(self.flavor())
        assert self.counted()[('requests_total',)] == 3


class TooLongTest(MetricsTest):
    """Room for one aggregate in a query."""

    OPTIONS = (
        *MetricsTest.OPTIONS,
        (ia_conf.GROUP, 'max_query_length', 60),
    )
    test_a_placement_and_a_refusal_are_counted = None

    def test_a_refusal_for_length_is_counted_as_such(self):
        for number in range(4):
            host = self.HOSTS[number % 2]
            self.aggregate(f'{number}', [host], {'trait:HW_GPU': 'required'})
        self.refusal_of(self.flavor())
        found = self.counted()
        assert found['refusals_total', '', 'query_length'] == 1
        assert found['refusals_total', 'filter', 'isolate_aggregates'] == 0


class WithoutDirectoryTest(CloudTest):
    """The option with a directory that does not exist."""

    HOSTS = ('host1',)

    def test_a_scheduler_that_cannot_count_schedules(self):
        self.useFixture(fixtures.EnvironmentVariable(VARIABLE))
        self.flags(scheduler_metrics_directory='/gone', group=ia_conf.GROUP)
        self.restart_scheduler()
        self.host_for(self.flavor())
        assert (
            'Nothing is counted for Prometheus: Configuration option '
            f'[{ia_conf.GROUP}] {worker_metrics.OPTION} is /gone, where '
        ) in self.stdlog.logger.output
