# SPDX-License-Identifier: Apache-2.0
"""The cloud of a test, and the blazar-manager in it."""

import contextlib
import datetime
import itertools
import pathlib
import subprocess
import sys
import time

from blazar import config as blazar_config
from blazar import context
from blazar.db import api as db_api
from oslo_utils import timeutils
import requests

from isolate_aggregates_reservations import names

OWNER, STRANGER = 'a' * 32, 'b' * 32
SERVICE_PROJECT = 'f' * 32
MARKER = 'CUSTOM_RESERVATION_HOSTS'
HOSTS = ('host1', 'host2', 'host3')
# That of Nova's Glance fixture.
IMAGE = '155d900f-4e14-4e4c-a73d-069cbf4541e6'

# More than anything takes here, also on a busy machine.
SECONDS = 300


@contextlib.contextmanager
def services(log):
    """Run Nova, Placement and Keystone in a process; yield their address."""
    program = pathlib.Path(__file__).with_name('cloud_process.py')
    port = log.with_name('port')
    with log.open('wb') as output:
        process = subprocess.Popen(
            [sys.executable, str(program), str(port)],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
        )
        while not port.exists():
            assert process.poll() is None, log.read_text()
            time.sleep(0.1)
        try:
            yield f'127.0.0.1:{port.read_text()}'
        finally:
            process.stdin.close()
            process.wait()


def configure(endpoint, folder):
    """Configure Blazar for a cloud; return its configuration."""
    host, _, port = endpoint.partition(':')
    path = folder / 'blazar.conf'
    path.write_text(
        f"""
[DEFAULT]
os_auth_host = {host}
os_auth_port = {port}
os_auth_prefix = identity
os_region_name = RegionOne
transport_url = fake:/

[database]
connection = sqlite:///{folder}/blazar.sqlite

[manager]
minutes_before_end_lease = 0

[physical:host]
enable_polling_monitor = true
"""
    )
    conf = blazar_config.CONF
    conf([], project='blazar', default_config_files=[str(path)])
    return conf


class Cloud:
    """Nova and Placement as operators and users see them."""

    def __init__(self, endpoint):
        self.root = f'http://{endpoint}'

    def call(self, method, path, json=None, token='admin-none', accept=None):
        """Call an API and return its response."""
        result = requests.request(
            method,
            f'{self.root}/{path}',
            json=json,
            headers={
                'X-Auth-Token': token,
                'X-OpenStack-Nova-API-Version': '2.87',
                'OpenStack-API-Version': 'placement 1.39',
            },
            timeout=SECONDS,
        )
        if result.status_code != accept:
            result.raise_for_status()
        return result.json() if result.content else None

    def hold_deletions(self, hold):
        """Let the deletion of servers wait, or no longer."""
        self.call('POST', 'control/deletions', {'hold': hold})

    # Servers.

    def boot(self, project, flavor, status='ACTIVE', hint=None):
        """Create a server as a user; return it once it has a status."""
        document = self.call(
            'POST',
            'compute/servers',
            _request(flavor, hint),
            token=f'user-{project}',
        )
        return self.wait(document['server']['id'], status)

    def wait(self, server, status):
        """Wait until a server has a status."""
        until = time.monotonic() + SECONDS
        while True:
            answer = self.call('GET', f'compute/servers/{server}')['server']
            if answer['status'] == status:
                return answer
            # It does not get well by itself.
            assert answer['status'] != 'ERROR', answer['fault']
            assert time.monotonic() < until, answer
            time.sleep(0.1)

    def is_refused(self, project, flavor):
        """Return whether a user has no access to a flavor."""
        result = requests.post(
            f'{self.root}/compute/servers',
            json=_request(flavor),
            headers={
                'X-Auth-Token': f'user-{project}',
                'X-OpenStack-Nova-API-Version': '2.87',
            },
            timeout=SECONDS,
        )
        return result.status_code == 400

    def servers(self):
        """Return the ids of all servers."""
        answer = self.call('GET', 'compute/servers?all_tenants=1')
        return [server['id'] for server in answer['servers']]

    def delete(self, server):
        """Delete a server as an operator."""
        self.call('DELETE', f'compute/servers/{server["id"]}', accept=404)

    def wait_until_gone(self):
        """Wait until there are no servers."""
        until = time.monotonic() + SECONDS
        while self.servers():
            assert time.monotonic() < until
            time.sleep(0.1)

    def allocations(self, server):
        """Return the amounts of a server by name of the provider."""
        answer = self.call('GET', f'placement/allocations/{server}')
        names = {uuid: name for name, uuid in self.providers().items()}
        return {
            names[uuid]: allocation['resources']
            for uuid, allocation in answer['allocations'].items()
        }

    def plain_flavor(self, vcpus=1):
        """Create a public flavor."""
        name = f'plain-{vcpus}'
        body = {'name': name, 'id': name, 'ram': 64, 'vcpus': vcpus}
        self.call(
            'POST', 'compute/flavors', {'flavor': {**body, 'disk': 1}},
            accept=409,
        )  # fmt: skip
        return name

    # What reservations have.

    def providers(self):
        """Return the uuids of the resource providers by name."""
        answer = self.call('GET', 'placement/resource_providers')
        return {p['name']: p['uuid'] for p in answer['resource_providers']}

    def slots(self, reservation):
        """Return total and reserved slots of a reservation by host."""
        name = class_of(reservation)
        found = {}
        for provider, uuid in sorted(self.providers().items()):
            path = f'placement/resource_providers/{uuid}/inventories'
            inventory = self.call('GET', path)['inventories'].get(name)
            if inventory:
                found[provider.removeprefix('blazar_')] = (
                    inventory['total'],
                    inventory['reserved'],
                )
        return found

    def flavors(self):
        """Return the ids of the flavors of reservations."""
        answer = self.call('GET', 'compute/flavors/detail?is_public=None')
        return [
            flavor['id']
            for flavor in answer['flavors']
            if flavor['name'].startswith('reservation:')
        ]

    def classes(self):
        """Return the resource classes of reservations."""
        answer = self.call('GET', 'placement/resource_classes')
        return [
            entry['name']
            for entry in answer['resource_classes']
            if entry['name'].startswith('CUSTOM_RESERVATION_')
        ]

    def aggregates(self):
        """Return the names of the aggregates of reservations."""
        aggregates = self.call('GET', 'compute/os-aggregates')['aggregates']
        return [a['name'] for a in aggregates if a['name'] != 'freepool']

    def groups(self):
        """Return the names of the server groups."""
        path = 'compute/os-server-groups?all_projects=True'
        answer = self.call('GET', path)['server_groups']
        return [group['name'] for group in answer]

    def left(self):
        """Return everything in the cloud that belongs to reservations."""
        # Hosts keep the class that marks them, and what was reserved is kept.
        classes = [name for name in self.classes() if name != MARKER]
        flavors = [f for f in self.flavors() if not names.archive_of(f)]
        return flavors + classes + self.aggregates() + self.groups()

    # Hosts.

    def create_freepool(self):
        """Create the aggregate that Blazar needs."""
        aggregates = self.call('GET', 'compute/os-aggregates')['aggregates']
        if not aggregates:
            self.call(
                'POST',
                'compute/os-aggregates',
                {'aggregate': {'name': 'freepool'}},
            )

    def take_from_freepool(self, host):
        """Take a host out of the aggregate."""
        path = 'compute/os-aggregates'
        for aggregate in self.call('GET', path)['aggregates']:
            if host in aggregate['hosts']:
                self.call(
                    'POST',
                    f'{path}/{aggregate["id"]}/action',
                    {'remove_host': {'host': host}},
                )

    def resize(self, server, flavor):
        """Ask for another flavor as the user of a server."""
        self.call(
            'POST',
            f'compute/servers/{server["id"]}/action',
            {'resize': {'flavorRef': flavor}},
            token=f'user-{server["tenant_id"]}',
        )

    def force_down(self, host, down=True):
        """Let Nova take a host for failed, or no longer."""
        path = 'compute/os-services?binary=nova-compute'
        for service in self.call('GET', path)['services']:
            if service['host'] == host:
                self.call(
                    'PUT',
                    f'compute/os-services/{service["id"]}',
                    {'forced_down': down},
                )

    def tidy(self):
        """Take away what tests left, and the hosts of Blazar."""
        self.hold_deletions(False)
        for host in HOSTS:
            self.force_down(host, False)
        for server in self.servers():
            self.call('DELETE', f'compute/servers/{server}', accept=404)
        self.wait_until_gone()
        for flavor in self.flavors():
            self.call('DELETE', f'compute/flavors/{flavor}')
        for name, uuid in self.providers().items():
            if name.startswith('blazar_'):
                self.call('DELETE', f'placement/resource_providers/{uuid}')
        for name in self.classes():
            self.call('DELETE', f'placement/resource_classes/{name}')
        for host in HOSTS:
            self.take_from_freepool(host)
        path = 'compute/os-aggregates'
        for aggregate in self.call('GET', path)['aggregates']:
            self.call('DELETE', f'{path}/{aggregate["id"]}')


class Blazar:
    """A blazar-manager, and the clock on its wall.

    :param manager: The manager.
    :param cloud: The cloud it is in.
    """

    def __init__(self, manager, cloud):
        self.manager = manager
        self.cloud = cloud
        self.now = timeutils.utcnow().replace(second=0, microsecond=0)
        timeutils.set_time_override(self.now)
        self._numbers = itertools.count()

    @property
    def plugin(self):
        """The plugin for instance reservations."""
        return self.manager.plugins['virtual:instance']

    def add_host(self, name):
        """Give Blazar a host."""
        with context.BlazarContext():
            return self.manager.plugins['physical:host'].create_computehost(
                {'name': name, 'trust_id': SERVICE_PROJECT}
            )

    def at(self, minutes):
        """Return a time, in minutes from now, as users of Blazar write it."""
        time = self.now + datetime.timedelta(minutes=minutes)
        return time.strftime('%Y-%m-%d %H:%M')

    def reserve(
        self,
        amount,
        vcpus=1,
        affinity=None,
        start=0,
        end=60,
        project=OWNER,
        **values,
    ):
        """Create a lease with a reservation; return the id of both."""
        reservation = {
            'resource_type': 'virtual:instance',
            'amount': amount,
            'vcpus': vcpus,
            'memory_mb': 64,
            'disk_gb': 1,
            'affinity': affinity,
            'resource_properties': '',
            **values,
        }
        return self._lease(reservation, start, end, project)

    def reserve_hosts(self, number, start=0, end=30):
        """Create a lease with whole hosts; return the id of both."""
        reservation = {
            'resource_type': 'physical:host',
            'min': number,
            'max': number,
            'hypervisor_properties': '',
            'resource_properties': '',
        }
        return self._lease(reservation, start, end, OWNER)

    def _lease(self, reservation, start, end, project):
        with context.BlazarContext():
            lease = self.manager.create_lease(
                {
                    'name': f'lease-{next(self._numbers)}',
                    'user_id': 'user',
                    'trust_id': project,
                    'start_date': self.at(start),
                    'end_date': self.at(end),
                    'reservations': [reservation],
                    'events': [],
                }
            )
        return lease['id'], lease['reservations'][0]['id']

    def update(self, lease, **values):
        """Update a lease."""
        with context.BlazarContext():
            self.manager.update_lease(lease_id=lease, values=values)

    def delete(self, lease):
        """Delete a lease."""
        with context.BlazarContext():
            self.manager.delete_lease(lease_id=lease)

    def end(self, lease):
        """Delete a lease and complete its end."""
        self.delete(lease)
        self.complete_all()

    def pass_time(self, minutes=0):
        """Advance the clock, and run the manager's due events."""
        self.now += datetime.timedelta(minutes=minutes)
        timeutils.set_time_override(self.now)
        self.manager._process_events()

    def look_at_hosts(self):
        """Let the manager see which hosts have failed."""
        for monitor in self.manager.monitors:
            for plugin in monitor.monitor_plugins:
                monitor.call_monitor_plugin(plugin.poll)

    def complete(self):
        """Let the plugin complete what was left undone."""
        self.plugin.monitor.poll()

    def complete_all(self):
        """Let it do so once the servers are gone."""
        self.cloud.wait_until_gone()
        self.complete()

    def status(self, lease):
        """Return the status of a lease."""
        return db_api.lease_get(lease)['status']

    def reservation(self, reservation):
        """Return a reservation as Blazar's database has it."""
        return db_api.reservation_get(reservation)

    def slots(self, reservation):
        """Return the number of slots by host as the database has it."""
        found = {}
        for row in db_api.host_allocation_get_all_by_values(
            reservation_id=reservation
        ):
            host = db_api.host_get(row['compute_host_id'])
            name = host['hypervisor_hostname']
            found[name] = found.get(name, 0) + 1
        return found


def _request(flavor, hint=None):
    """Return the body of a request to create a server."""
    server = {
        'name': 'server',
        'imageRef': IMAGE,
        'flavorRef': flavor,
        'networks': 'none',
    }
    hints = {'reservation': hint} if hint else {}
    return {'server': server, 'os:scheduler_hints': hints}


def class_of(reservation):
    """Return the resource class of a reservation."""
    return f'CUSTOM_RESERVATION_{reservation.upper().replace("-", "_")}'
