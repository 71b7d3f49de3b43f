# SPDX-License-Identifier: Apache-2.0
"""How the filters get into nova-scheduler, and what they tell its operator."""

import logging
import pathlib
import re
import subprocess
import sys

from base import ISOLATE, CloudTest, request_filter_names
import fixtures
from nova.db.api import models
from nova.scheduler import manager, request_filter
import pytest
import sqlalchemy

from isolate_aggregates import conf as ia_conf

SAMPLE = (
    pathlib.Path(__file__).parents[2]
    / 'etc/isolate-aggregates/isolate-aggregates.conf.sample'
)


class RegistrationTest(CloudTest):
    """The request filters that Nova runs."""

    HOSTS = ()
    REQUEST_FILTERS = ('isolate_tenants', 'isolate_aggregates')

    def setUp(self):
        names = request_filter_names()
        place = names.index('isolate_aggregates')
        self.before, self.after = names[:place], names[place + 1 :]
        super().setUp()

    def assert_in_place(self, *ours):
        names = request_filter_names()
        assert names == [*self.before, *ours, *self.after]

    def test_repeated_starts_install_our_filters_once(self):
        in_tree = request_filter.isolate_aggregates

        self.assert_in_place('isolate_tenants', 'isolate_aggregates')
        assert in_tree not in request_filter.ALL_REQUEST_FILTERS

        # The next worker in this process, and the next start.
        manager.SchedulerManager()
        self.assert_in_place('isolate_tenants', 'isolate_aggregates')
        self.restart_scheduler()
        self.assert_in_place('isolate_tenants', 'isolate_aggregates')

        # The in-tree filter leaves only for the one of its name.
        self.flags(request_filters=['isolate_tenants'], group=ia_conf.GROUP)
        self.restart_scheduler()
        self.assert_in_place('isolate_tenants', 'isolate_aggregates')
        assert in_tree in request_filter.ALL_REQUEST_FILTERS


class WithoutRegistrationTest(CloudTest):
    """The host filter without the request filters."""

    HOSTS = ('host1',)
    AVAILABLE = 'isolate_aggregates.nova.host_filter.IsolatedAggregatesFilter'

    def test_the_host_filter_alone_passes_no_host(self):
        message = self.refusal_of(self.flavor())
        assert message.startswith('No valid host was found')
        assert (
            'IsolatedAggregatesFilter is enabled, but '
            'isolate_aggregates.nova.all_filters is not among '
            '[filter_scheduler] available_filters; no host passes.'
        ) in self.stdlog.logger.output


class LogTest(CloudTest):
    """What an operator finds in the log."""

    REQUEST_FILTERS = ('isolate_aggregates', 'blazar_reservation')
    OPTIONS = (ISOLATE,)

    def test_the_log_has_tags_constraints_and_refusals(self):
        log = self.useFixture(
            fixtures.FakeLogger(
                'isolate_aggregates',
                logging.DEBUG,
                format='%(levelname)s %(message)s',
                nuke_handlers=False,
            )
        )
        number = self.aggregate('gpu', ['host1'], {'trait:HW_GPU': 'required'})
        server = self.boot(self.flavor())
        self.tag(number, {'trait:CUSTOM_B': 'required'})
        self.boot(self.flavor())
        self.refusal_of(self.flavor(), hints={'reservation': 'x'})

        lines = log.output.splitlines()
        assert [line for line in lines if line.startswith('WARNING')] == []
        # Only what is refused is logged, for all, with its record.
        refusal, record = [line for line in lines if 'INFO' in line]
        assert '"cause":"refused"' in record
        assert re.fullmatch(
            r'INFO Refused to schedule server [0-9a-f-]{36} of project \w+, '
            r'request req-[0-9a-f-]{36}: the hint '
            r'reservation=x names no existing reservation',
            refusal,
        )
        assert server['id'] not in refusal


NOVA_CONF = """
[DEFAULT]
transport_url = fake:/
state_path = {path}
[api_database]
connection = sqlite:///{path}/api.sqlite
[database]
connection = sqlite://
[scheduler]
workers = 1
{scheduler}
[filter_scheduler]
{available}
enabled_filters = ComputeFilter,{enabled}
[isolate_aggregates]
aggregate_source = nova
request_filters = {request_filters}
"""
NOVA = 'nova.scheduler.filters.all_filters'
OURS = 'isolate_aggregates.nova.all_filters'
BLAZARS = 'blazarnova.scheduler.filters.blazar_filter.BlazarFilter'


@pytest.fixture
def start_scheduler(tmp_path):
    """Start the program nova-scheduler; it exits, as there is no Placement.

    That is after it has loaded all filters. Returned is what it wrote.
    """
    engine = sqlalchemy.create_engine(f'sqlite:///{tmp_path}/api.sqlite')
    models.BASE.metadata.create_all(engine)
    engine.dispose()

    def start(
        available=(NOVA, OURS),
        enabled='IsolatedAggregatesFilter',
        request_filters='isolate_aggregates,blazar_reservation',
        scheduler='',
        sample='',
    ):
        conf = tmp_path / 'nova.conf'
        conf.write_text(
            NOVA_CONF.format(
                path=tmp_path,
                available='\n'.join(
                    f'available_filters = {name}' for name in available
                ),
                enabled=enabled,
                request_filters=request_filters,
                scheduler=scheduler,
            )
        )
        other = tmp_path / 'isolate-aggregates.conf'
        other.write_text(sample)
        ended = subprocess.run(
            [
                pathlib.Path(sys.executable).with_name('nova-scheduler'),
                *('--config-file', other),
                *('--config-file', conf),
            ],
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert ended.returncode == 1
        return ended.stdout + ended.stderr

    return start


@pytest.mark.parametrize(
    'available',
    [(NOVA, BLAZARS, OURS), (NOVA, OURS, BLAZARS)],
    ids=['blazar first', 'ours first'],
)
def test_options_are_shared_with_nova_and_blazar(start_scheduler, available):
    """With every value that the sample configuration shows."""
    sample = re.sub(
        r'^#(\w+ = (?!<None>).*)$', r'\1', SAMPLE.read_text(), flags=re.M
    )
    assert '\nblazar_owner = blazar:owner\n' in sample

    output = start_scheduler(
        available, 'BlazarFilter,IsolatedAggregatesFilter', sample=sample
    )

    assert (
        'Request filters of isolate-aggregates: isolate_aggregates (off by '
        '[scheduler] enable_isolated_aggregate_filtering), '
        'blazar_reservation (on)\n'
    ) in output
    assert 'MissingAuthPlugin' in output


@pytest.mark.smoke
@pytest.mark.parametrize(
    ('mistake', 'error'),
    [
        (
            {'request_filters': 'isolate_aggregates,isolate_tenant'},
            'FilterError: Request filter isolate_tenant is not installed; '
            'choose from ',
        ),
        (
            {'scheduler': 'placement_req_required_member_prefix = trait:'},
            'ConfigError: Configuration option [scheduler] '
            "placement_req_required_member_prefix has the prefix 'trait:'",
        ),
    ],
    ids=['unknown filter', 'bad prefix'],
)
def test_a_mistake_in_nova_conf_ends_nova_scheduler(
    start_scheduler, mistake, error
):
    output = start_scheduler(**mistake)

    assert f'isolate_aggregates.exception.{error}' in output
    assert 'Request filters of isolate-aggregates' not in output
