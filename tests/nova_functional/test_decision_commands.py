# SPDX-License-Identifier: Apache-2.0
"""Requests of the night are explained in the morning, from the log.

With ``WRITE_EXAMPLES`` in the environment the files in ``examples/decisions``
are written anew.
"""

import json
import logging
import os
import pathlib
import time

from base import CONF, IMAGE, ISOLATE, LOCK, RESERVATIONS, host_of
from day_two import CommandTest
from oslo_log import formatters

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.record import LOGGER, SCHEMA
from isolate_aggregates_tools.decisions import logs

EXAMPLES = pathlib.Path(__file__).parents[2] / 'examples' / 'decisions'
OWNER, STRANGER = 'a' * 32, 'b' * 32
TRAIT = 'CUSTOM_LICENSED_WINDOWS'
LEASE = 'reservation:4d17d41a'
LOCKS = {
    'host1': f'{LOCK}=required',
    'host2': f'{LEASE}=true',
    'host3': f'filter_tenant_id={OWNER}',
}
OPERATOR = f"""\
[scheduler]
enable_isolated_aggregate_filtering = true
placement_req_required_member_prefix = reservation:
placement_req_default_forbidden_member_prefix = reservation:
[filter_scheduler]
enabled_filters = IsolatedAggregatesFilter
[{ia_conf.GROUP}]
request_filters = isolate_aggregates,reservation_prefix,isolate_tenants
reservation_key_sources = image,hint
"""


class Night(CommandTest):
    """host1 is licensed, host2 reserved, host3 is of a tenant."""

    REQUEST_FILTERS = (
        'isolate_aggregates',
        'reservation_prefix',
        'isolate_tenants',
    )
    HOSTS = ('host1', 'host2', 'host3')
    OPTIONS = (
        ISOLATE,
        *RESERVATIONS,
        (ia_conf.GROUP, 'reservation_key_sources', ['image', 'hint']),
    )

    def setUp(self):
        super().setUp()
        self.reach_placement()
        self.flags(instances=500, cores=-1, ram=-1, group='quota')
        self.config.write_text(OPERATOR)
        self.log_file = self.config.parent / 'nova-scheduler.log'
        handler = logging.FileHandler(self.log_file)
        handler.setLevel(logging.INFO)
        handler.setFormatter(
            formatters.ContextFormatter(
                config=CONF, datefmt=CONF.log_date_format
            )
        )
        for name in (LOGGER, 'isolate_aggregates.nova', 'nova.scheduler'):
            logger = logging.getLogger(name)
            logger.addHandler(handler)
            self.addCleanup(logger.removeHandler, handler)
        # It writes what it is and how it is configured.
        self.restart_scheduler()
        self.licensed = self.aggregate(
            'licensed', ['host1'], {LOCK: 'required'}
        )
        self.aggregate(
            'lease', ['host2'], {LEASE: 'true', 'blazar:owner': OWNER}
        )
        self.aggregate('theirs', ['host3'], {'filter_tenant_id': OWNER})
        self.give_trait('host1', TRAIT)
        self.small = self.sized('small')
        self.windows = self.sized(
            'windows.large', {LOCK: 'required'}, disk=900
        )

    def sized(self, name, specs=None, disk=1):
        return self._create_flavor(
            name=name, vcpu=1, memory_mb=64, disk=disk, ephemeral=0,
            extra_spec=specs,
        )  # fmt: skip

    def records(self):
        return [
            json.loads(line[line.index('{') :])
            for line in self.log_file.read_text().splitlines()
            if LOGGER in line and f'"{SCHEMA}"' in line
        ]

    def request_of(self, server):
        """Return the id of the request, when its record is there."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            for record in self.records():
                if record['server'] == server['id']:
                    return record['request']
            time.sleep(0.1)
        raise AssertionError(f'no record of {server["id"]}')

    def fails(self, flavor, **request):
        return self.request_of(self.boot(flavor, status='ERROR', **request))

    def forced(self, host):
        server = self._build_server(
            image_uuid=IMAGE, flavor_id=self.small, networks='none',
            az=f'nova:{host}',
        )  # fmt: skip
        made = self.admin_api.post_server({'server': server})
        return self.request_of(self._wait_for_state_change(made, 'ERROR'))

    def explained(self, request, *more):
        done = self.run_command(
            'explain', '--request', request, '--log', str(self.log_file),
            *more,
        )  # fmt: skip
        assert done.code in {0, 4}, done.err
        return done

    def save(self, name, *snapshots):
        """Write the examples if that is asked for, and check that they fit."""
        if 'WRITE_EXAMPLES' in os.environ:
            EXAMPLES.mkdir(exist_ok=True)
            (EXAMPLES / name).write_text(self.log_file.read_text())
            for path in snapshots:
                (EXAMPLES / path.name).write_text(path.read_text())
        assert shapes(self.log_file)
        assert shapes(EXAMPLES / name) == shapes(self.log_file)


def shapes(path):
    """Return what is alike in records of the same requests."""
    return sorted(
        (
            record['result'],
            record.get('cause', ''),
            record['flavor']['name'],
            sorted(record),
        )
        for record in logs.records([str(path)], logs.NotRead())
    )


class TheNextMorning(Night):
    """What was decided, and what is different now."""

    def test_what_was_is_told_and_what_is_different(self):
        plain = self.fails(self.small)
        assert host_of(self.boot(self.windows)) == 'host1'
        full = self.fails(self.windows)
        foreign = self.fails(
            self.small, hints={LEASE: 'true'}, project=STRANGER
        )
        nowhere = self.fails(self.small, zone='nova', project=STRANGER)
        forced = self.forced('host2')

        self.tag(self.licensed, {LOCK: None})

        self._of_the_lock(self.explained(plain))
        self._of_the_forced_host(self.explained(forced, '-f', 'json').document)
        past = self.explained(full, '-f', 'json').document
        [record] = past['records']
        assert record['cause'] == 'full'
        assert past['now']['summary']['candidates'] == 0
        past = self.explained(foreign)
        assert past.code == 4
        assert 'a request filter refused it (refused).' in past.out
        past = self.explained(nowhere, '-f', 'json').document
        assert past['records'][0]['keys']['zone'] == 'nova'

        morning = self.config.parent / 'morning.yaml'
        done = self.run_command('snapshot', 'save', '--output', str(morning))
        assert done.code == 0, done.err
        self._of_the_lock(self.explained(plain, '--snapshot', str(morning)))
        self._of_all()
        self._of_the_headers()
        self.save('nova-scheduler.log', morning)

    def _of_the_lock(self, done):
        assert done.code == 0
        assert (
            'It got no host: request filters closed all hosts that would have '
            'served it (locked).'
        ) in done.out
        assert (
            f'host1: closed by {LOCK}=required on aggregate licensed '
            '(isolate_aggregates)'
        ) in done.out
        assert (
            f'aggregate licensed ({LOCK}=required) is no longer forbidden'
        ) in done.out
        assert '1 of 3 hosts may be used.' in done.out

    def _of_the_forced_host(self, past):
        """Its zone and host are asked for again."""
        [record] = past['records']
        assert record['keys']['forced'] == ['host2']
        assert past['not_asked'] is None
        hosts = past['now']['hosts']
        assert {host['verdict'] for host in hosts} == {'excluded'}
        [host2] = [host for host in hosts if host['name'] == 'host2']
        assert any('lease' in each for each in host2['reasons']), host2[
            'reasons'
        ]

    def _of_the_headers(self):
        """The line of a record has the id of its own request."""
        for line in self.log_file.read_text().splitlines():
            header, _, text = line.partition('{')
            if f'"{SCHEMA}"' in text:
                assert json.loads('{' + text)['request'] in header

    def _of_all(self):
        done = self.run_command(
            'decision', 'list', str(self.log_file), '-f', 'json'
        )
        assert done.code == 0, done.err
        document = done.document
        assert document['results'] == {'no_host': 4, 'refused': 1}
        assert document['not_read'] == []
        sums = {
            (each['by'], each['name']): each['requests']
            for each in document['sums']
        }
        assert sums['cause', 'locked'] == 3
        assert sums['cause', 'full'] == sums['cause', 'refused'] == 1
        assert sums['lock', f'{LOCK}=required'] == 2
        assert sums['lock', f'{LEASE}=true'] == 3
        assert sums['project', STRANGER] == 2
        assert sums['flavor', 'small'] == 4

    def test_a_flavor_that_is_gone_is_no_error(self):
        request = self.fails(self.small)
        self.admin_api.delete_flavor(self.small)
        done = self.explained(request)
        assert done.code == 0
        assert 'It cannot be asked again now. There is no flavor' in done.out

    def test_what_was_is_told_if_the_cloud_cannot_be_asked(self):
        request = self.fails(self.small)
        path = self.config.parent / 'nowhere.yaml'
        done = self.run_command(
            'explain', '--request', request, '--log', str(self.log_file),
            '--snapshot', str(path),
        )  # fmt: skip
        assert done.code == 1
        assert 'request filters closed all hosts' in done.out
        assert str(path) in done.err


class AWeekInShadow(Night):
    """What would have changed."""

    OPTIONS = (*Night.OPTIONS, (ia_conf.GROUP, 'mode', 'shadow'))

    def test_requests_that_would_have_had_no_host_are_listed(self):
        placed = self.boot(self.small)
        request = self.request_of(placed)
        self.boot(self.windows)
        unknown = self.sized('ended.lease', {'reservation:none': 'true'})
        refused = self.request_of(self.boot(unknown))

        done = self.run_command(
            'decision', 'list', str(self.log_file), '--shadow', '-f', 'json'
        )
        document = done.document
        assert document['effects'] == {'no_host': 1, 'refused': 1}
        listed = {each['request']: each for each in document['without_host']}
        assert listed[request]['locks'] == [LOCKS[host_of(placed)]]
        assert listed[request]['flavor'] == 'small'
        assert 'reservation:none' in listed[refused]['reason']
        done = self.run_command(
            'decision', 'list', str(self.log_file), '--shadow'
        )
        assert request in done.out
        self.save('shadow.log')
