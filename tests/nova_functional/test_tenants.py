# SPDX-License-Identifier: Apache-2.0
"""What a tenant cannot take: foreign hosts, and hosts behind a trait."""

from base import ISOLATE, OTHER_IMAGE, RESERVATIONS, CloudTest, host_of
from day_two import CommandTest
from nova.scheduler import utils as scheduler_utils
import pytest

from isolate_aggregates import conf as ia_conf
from isolate_aggregates_tools import identity

LICENSED = 'CUSTOM_LICENSED_WINDOWS'
OWNER, FRIEND, STRANGER = 'a' * 32, 'b' * 32, 'c' * 32


class TenantsTest(CloudTest):
    """Aggregates that name their projects."""

    REQUEST_FILTERS = ('isolate_tenants',)

    def test_an_aggregate_takes_servers_of_the_projects_it_names_only(self):
        number = self.aggregate(
            'theirs',
            ['host1'],
            {'filter_tenant_id': f'x,{OWNER}', 'filter_tenant_id_2': FRIEND},
        )
        flavor = self.flavor()

        hosts = {
            project: self.host_for(flavor, project=project)
            for project in (OWNER, FRIEND, STRANGER)
        }

        assert hosts == {OWNER: 'host1', FRIEND: 'host1', STRANGER: 'host2'}

        # Now there is no other host.
        self.admin_api.add_host_to_aggregate(number, 'host2')

        message = self.refusal_of(flavor, project=STRANGER)
        assert message.startswith('No valid host was found')


class BesideInTreeTest(CloudTest):
    """Nova's own isolation, which no filter of ours replaces here."""

    REQUEST_FILTERS = ('isolate_tenants',)
    # It holds a query with one forbidden aggregate, but not with three.
    OPTIONS = (ISOLATE, (ia_conf.GROUP, 'max_query_length', 200))

    def test_a_refusal_for_length_names_what_the_in_tree_filter_forbids(self):
        self.aggregate('theirs', ['host1'], {'filter_tenant_id': OWNER})
        flavor = self.flavor()
        assert self.host_for(flavor, project=STRANGER) == 'host2'

        for name in ('gpu', 'licensed', 'windows'):
            self.aggregate(name, (), {f'trait:CUSTOM_{name}': 'required'})

        reason = self.refusal_of(flavor, project=STRANGER)
        assert 'more than [isolate_aggregates] max_query_length' in reason
        assert reason.endswith(
            'other request filters forbid aggregates gpu, licensed, windows '
            'in it'
        )


class Domains:
    """A Keystone with one domain.

    :param projects: The ids of the projects, which a test may change.
    """

    def __init__(self, projects):
        self.projects = projects

    def domain(self, name):
        """Return the domain."""
        return identity.Domain('acme-id', name, frozenset(self.projects))

    def domain_of_id(self, domain_id):
        """Return the domain."""
        return self.domain('acme')


class DomainTest(CommandTest):
    """An aggregate that is reserved for a domain."""

    REQUEST_FILTERS = ('isolate_tenants',)

    def setUp(self):
        super().setUp()
        self.domains = Domains({OWNER, FRIEND})
        self.stub_out(
            'isolate_aggregates_tools.cloud.live.live_cloud.KeystoneClient',
            lambda _: self.domains,
        )
        # Nova's own filter reads the same tags, and compares whole values.
        self.flags(
            limit_tenants_to_placement_aggregate=True, group='scheduler'
        )

    def hosts(self):
        return {
            project: self.host_for(self.small, project=project)
            for project in (OWNER, FRIEND, STRANGER)
        }

    def test_servers_of_all_its_projects_land_there_and_no_others(self):
        self.small = self.flavor()
        self.aggregate('theirs', ['host1'])
        assert (
            self.run_command(
                'lock', 'create', 'theirs', '--domain', 'acme'
            ).code
            == 0
        )
        assert self.hosts() == {
            OWNER: 'host1',
            FRIEND: 'host1',
            STRANGER: 'host2',
        }

        self.domains.projects = {OWNER, STRANGER}
        assert self.run_command('sync', '--yes').code == 0
        assert self.hosts() == {
            OWNER: 'host1',
            FRIEND: 'host2',
            STRANGER: 'host1',
        }

        self.domains.projects = set()
        assert self.run_command('sync', '--yes').code == 0
        assert set(self.hosts().values()) == {'host2'}

        assert self.run_command('sync', '--yes').code == 0
        unlock = ('lock', 'delete', 'theirs', '--domain', 'acme')
        assert self.run_command(*unlock).code == 0
        aggregate = self.admin_api.api_get('/os-aggregates').body['aggregates']
        assert aggregate[0]['metadata'] == {}


class StolenTraitTest(CloudTest):
    """A tenant's image that claims the trait of licensed hosts."""

    OPTIONS = (ISOLATE,)

    @pytest.mark.slow
    def test_the_trait_of_an_image_opens_nothing_if_only_flavors_count(self):
        self.give_trait('host1', LICENSED)
        self.aggregate(
            'licensed', ['host1'], {f'trait:{LICENSED}': 'required'}
        )
        plain = self.flavor()
        licensed = self.flavor({f'trait:{LICENSED}': 'required'})
        stolen = self.image({f'trait:{LICENSED}': 'required'})

        # As in Nova.
        assert self.host_for(plain) == 'host2'
        assert self.host_for(plain, image=stolen) == 'host1'

        self.flags(trait_sources=['flavor'], group=ia_conf.GROUP)
        self.restart_scheduler()

        assert self.host_for(plain) == 'host2'
        assert self.host_for(licensed) == 'host1'
        # The trait of the image is still wanted, and only host1 has it.
        message = self.refusal_of(plain, image=stolen)
        assert message.startswith('No valid host was found')


class PretendedRebuildTest(CloudTest):
    """A hint for which Nova skips request filters and Placement.

    Until OSSA-2026-022 was fixed, tenants could give it for a new server.
    Nova keeps it with the server, for all that is done to it later.
    """

    REQUEST_FILTERS = ('reservation_prefix',)
    OPTIONS = RESERVATIONS

    def setUp(self):
        super().setUp()
        self.hints = {'_nova_check_type': 'rebuild'}
        build = scheduler_utils.build_filter_properties
        self.stub_out(
            'nova.scheduler.utils.build_filter_properties',
            lambda hints, *args: build({**hints, **self.hints}, *args),
        )

    def test_a_server_that_pretends_to_be_rebuilt_gets_no_host(self):
        self.aggregate('theirs', ['host1'], {'reservation:1': 'true'})
        # Only Placement knows that no host has a slot of this reservation.
        slot = {'resources:CUSTOM_RESERVATION_OF_MINE': '1'}

        message = self.refusal_of(self.flavor(slot))

        assert message.startswith('No valid host was found')
        assert 'scheduler hint _nova_check_type' in self.log()

        self.hints = {}
        server = self.boot(self.flavor())
        server = self._rebuild_server(server, OTHER_IMAGE)
        assert host_of(server) == 'host2'
