# SPDX-License-Identifier: Apache-2.0
"""A cloud with hosts for reservations, made by the commands of an operator."""

from day_two import CommandTest
from nova.tests import fixtures as nova_fixtures

OWNER = nova_fixtures.PROJECT_ID
STRANGER = 'b' * 32
TRAIT = 'CUSTOM_RESERVATION_HOST'
# Of hosts, not of a reservation.
MARKER = 'CUSTOM_RESERVATION_HOSTS'
SIZE = ('--vcpus', '1', '--ram', '64', '--disk', '1')
TAKEN = {'VCPU': 1, 'MEMORY_MB': 64, 'DISK_GB': 1}


class ReservationTest(CommandTest):
    """A cloud whose best hosts, host1 and host2, are for reservations."""

    HOSTS = ('host1', 'host2', 'host3')
    POOL = ('host1', 'host2')

    def setUp(self):
        super().setUp()
        self.config.write_text(
            ''.join(
                f'[{group}]\n{option} = '
                f'{",".join(value) if isinstance(value, list) else value}\n'
                for group, option, value in self.OPTIONS
            )
        )
        # Nova's fixtures do not expect the notifications of a forced delete.
        self.stub_out('nova.rpc.LegacyValidatingNotifier.fatal', False)
        self.done('host', 'set', '--enable', *self.POOL)

    def done(self, *arguments):
        """Run a command that must not fail; return its document."""
        result = self.run_command('reservation', *arguments, '-f', 'json')
        assert (result.code, result.err) == (0, ''), result
        return result.document

    def refused(self, *arguments):
        """Run a command that must fail; return its one sentence."""
        result = self.run_command('reservation', *arguments)
        assert result.code == 1, result
        assert result.err.count('\n') == 1, result
        return result.err

    def reserve(self, *arguments):
        """Reserve slots for the owner; return the id, that of the flavor."""
        document = self.done('create', '--project', OWNER, *SIZE, *arguments)
        assert (document['state'], document['missing']) == ('active', 0)
        return document['id']

    def slots(self, reservation):
        """Return slots and those in use, by host."""
        return {
            host: (on['slots'], on['used'])
            for host, on in self.done('show', reservation)['hosts'].items()
        }

    def compute(self, host, **service):
        """Change the compute service of a host."""
        [found] = self.admin_api.get_services('nova-compute', host)
        self.admin_api.put_service(found['id'], service)

    def break_host(self, host):
        """Let a host break."""
        self.computes[host].stop()
        self.compute(host, forced_down=True)

    def allocation(self, consumer):
        """Return what a consumer has, by the name of the provider."""
        names = {
            entry['uuid']: entry['name']
            for entry in self.placement.get(
                '/resource_providers', version='1.39'
            ).body['resource_providers']
        }
        return {
            names[provider]: found['resources']
            for provider, found in self._get_allocations_by_server_uuid(
                consumer
            ).items()
        }

    def with_slot(self, host, reservation):
        """Return the allocation of a server of a reservation on a host."""
        return {host: TAKEN, f'blazar_{host}': {self.class_of(reservation): 1}}

    @staticmethod
    def class_of(reservation):
        return f'CUSTOM_RESERVATION_{reservation.upper().replace("-", "_")}'

    def leftovers(self):
        """Return all that belongs to any reservation."""
        classes = self.placement.get('/resource_classes', version='1.39').body[
            'resource_classes'
        ]
        return [
            name
            for name in (
                *(entry['name'] for entry in classes),
                *(f['name'] for f in self.admin_api.get_flavors()),
            )
            if name.startswith(('CUSTOM_RESERVATION_', 'reservation:'))
            and name != MARKER
        ]

    def is_gone(self, server):
        """Return whether a server no longer exists in Nova."""
        listed = self.admin_api.get_servers(detail=False)
        return server['id'] not in [other['id'] for other in listed]

    def end(self, reservation):
        """End a reservation, which may take a while."""
        result = self.run_command('reservation', 'end', reservation, '--yes')
        assert result.code in (0, 3), result

        def is_over():
            self.done('reconcile')
            assert self.leftovers() == []

        self._wait_for_assert(is_over)
