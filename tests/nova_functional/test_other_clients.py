# SPDX-License-Identifier: Apache-2.0
"""What other clients do with a real Nova and a real Placement.

The page "Other tools" tells what few expect of them, with their versions.
"""

from osc_lib import clientmanager
from page_cloud import PageTest
import pytest

TRAITS = ('CUSTOM_A', 'CUSTOM_B')
LOCK = {'trait:CUSTOM_A': 'required'}


@pytest.mark.slow
class OpenStackClientTest(PageTest):
    """An operator in front of a terminal."""

    def setUp(self):
        super().setUp()
        # Nothing here depends on the filters.
        self.paths_read.append('/os-aggregates')
        terminal = self.new_terminal()
        terminal.__enter__()
        self.addCleanup(terminal.__exit__, None, None, None)

    def openstack(self, line, code=0):
        """Run a command of the client; return what it prints."""
        # Each is a process of its own elsewhere.
        for member in vars(clientmanager.ClientManager).values():
            if isinstance(member, clientmanager.ClientCache):
                member._handle = None
        typed = self.terminal.type(f'openstack {line}')
        assert typed.code == code, typed.output
        return typed.output

    def hosts_of(self, options, version='1.39'):
        """Return the hosts that a listing of providers has."""
        listed = self.openstack(
            f'--os-placement-api-version {version} resource provider list '
            f'{options} -f value -c name'
        )
        return set(listed.split())

    def test_lists_of_traits_are_not_what_they_look_like(self):
        for host, trait in zip(self.HOSTS, TRAITS, strict=True):
            self.give_trait(host, trait)
        # Any of them, where a comma means all of them elsewhere.
        assert self.hosts_of('--required CUSTOM_A,CUSTOM_B') == {*self.HOSTS}
        assert self.hosts_of('--required CUSTOM_A --required CUSTOM_B') == (
            set()
        )
        # The second one is required.
        assert self.hosts_of('--forbidden CUSTOM_A,CUSTOM_B') == {'host2'}
        assert self.hosts_of('--forbidden CUSTOM_A --forbidden CUSTOM_B') == (
            set()
        )

    def test_aggregates_cannot_be_forbidden(self):
        self.aggregate('win', ['host1'], LOCK)
        [aggregate] = self.admin_api.api_get('/os-aggregates').body[
            'aggregates'
        ]
        uuid = aggregate['uuid']
        assert self.hosts_of(f'--member-of {uuid}') == {'host1'}
        for version in ('1.29', '1.39'):
            for value in (f'!{uuid}', f'!in:{uuid}'):
                said = self.openstack(
                    f'--os-placement-api-version {version} resource provider '
                    f"list --member-of '{value}'",
                    code=1,
                )
                assert 'HTTP 400' in said

    def test_an_aggregate_is_shown_without_its_uuid_when_a_host_joins(self):
        self.aggregate('win')
        said = self.openstack('aggregate add host win host1 -f json')
        assert '"uuid": null' in said
        assert '"uuid": null' not in self.openstack(
            'aggregate show win -f json'
        )

    def test_a_refused_property_of_a_flavor_is_no_failure(self):
        said = self.openstack(
            'flavor create --ram 64 --disk 1 --vcpus 1 --property a/b=c small'
        )
        assert 'Failed to set flavor properties' in said
        said = self.openstack('flavor show small -f json')
        assert '"properties": {}' in said
        said = self.openstack('flavor set --property a/b=c small', code=1)
        assert 'Failed to set flavor properties' in said

    def test_a_server_cannot_be_unpinned(self):
        self.aggregate('west', ['host1'], zone='west')
        server = self.boot(self.flavor(), zone='west')['id']
        ended = [
            self.terminal.type(f'openstack {line} {server}')
            for line in (
                'server set --pinned-availability-zone east',
                'server unset --pinned-availability-zone',
                '--os-compute-api-version 2.104 server unset '
                '--pinned-availability-zone',
            )
        ]
        found = self.admin_api.api_get(f'/servers/{server}').body['server']
        assert found['pinned_availability_zone'] == 'west', ended
        assert [each.code for each in ended] == [1, 1, 1], ended
