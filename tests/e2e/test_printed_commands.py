# SPDX-License-Identifier: Apache-2.0
"""Each printed line does what it says, and nothing else.

It is pasted into the shell of an operator, whose client has no versions but
its defaults. What the services have is compared before and after it.
"""

import contextlib
import os
import pty
import shlex
import subprocess
import time
import uuid

import cloud_state
from control_plane import bootstrap
import printed_lines
import pytest

from isolate_aggregates.request import Flavor

_SECONDS = 120


class Shell:
    """A shell in a terminal, of an operator who confirms what is asked.

    :param plane: The control plane.
    :param folder: The working directory.
    :param programs: A folder of programs that are used first; None for those
        of the control plane alone.
    """

    def __init__(self, plane, folder, programs=None):
        self._setup = f'. {plane.settings.openrc}'
        if programs:
            self._setup += f'; PATH={shlex.quote(str(programs))}:$PATH'
        self._folder = folder

    def paste(self, text):
        """Run a line; return its exit status and what it writes."""
        operator, terminal = pty.openpty()
        try:
            process = subprocess.Popen(
                ['bash', '-c', f'{self._setup}; {text}'],
                cwd=self._folder,
                env={k: v for k, v in os.environ.items() if k[:3] != 'OS_'},
                stdin=terminal,
                stdout=terminal,
                stderr=terminal,
            )
            os.close(terminal)
            os.write(operator, b'y\n')
            written = b''
            # A terminal that nobody holds any more cannot be read.
            with contextlib.suppress(OSError):
                while part := os.read(operator, 65536):
                    written += part
            return process.wait(_SECONDS), written.decode()
        finally:
            os.close(operator)


class PrintedCloud:
    """What the stories need, which is taken away again in the end.

    :param plane: The control plane.
    :param cloud: Makes aggregates, flavors and servers.
    """

    data = b'not an image'

    def __init__(self, plane, cloud):
        self._plane = plane
        self._cloud = cloud
        self._sdk = cloud.sdk
        self._uuids = {}
        self._undone = contextlib.ExitStack()

    def name(self, short):
        return self._cloud.name(short)

    def uuid(self, name):
        return self._uuids.setdefault(name, str(uuid.uuid4()))

    def project(self, name):
        return self._sdk.identity.find_project(name).id

    def id_of(self, kind, name):
        """Return the id of what a line has made."""
        assert kind == 'aggregate'
        [found] = [
            one.id
            for one in self._cloud.admin.aggregates.list()
            if one.name == name
        ]
        return found

    def aggregate(self, short, hosts):
        found = self._cloud.aggregate(short, hosts)
        for trait in (printed_lines.TRAIT, printed_lines.MARK):
            self._undone.callback(self._delete, f'/traits/{trait}')
        words = ('lock', 'delete', found.name, '--yes')
        self._undone.callback(self._isolation, *words)
        return found

    def flavor(self, short):
        name = self._cloud.flavor(short)
        return Flavor(name, self._cloud.admin.flavors.find(name=name).id)

    def revoke(self, flavor):
        found = self._cloud.admin.flavors.get(flavor.id)
        found.unset_keys(found.get_keys())

    def server(self, short, host):
        return self._cloud.settle(
            self._cloud.boot(
                short,
                *(self._cloud.flavor(short), 'cirros'),
                user='admin',
                availability_zone=f'nova:{host}',
            )
        )

    def disable(self, host):
        [found] = self._cloud.admin.services.list(host, 'nova-compute')
        self._cloud.admin.services.disable(found.id)
        self._undone.callback(self._cloud.admin.services.enable, found.id)

    def force_down(self, host):
        [found] = self._cloud.admin.services.list(host, 'nova-compute')
        self._cloud.admin.services.force_down(found.id, True)

    def server_of(self, reservation):
        """Boot a server in a reservation."""
        return self._cloud.settle(
            self._cloud.boot(
                *('reserved', f'reservation:{reservation}', 'cirros')
            )
        )

    def reservation(self, hosts):
        """Return the id of a reservation to be made; take away its parts."""
        own = self.uuid('reservation')
        self._undone.callback(self._forget_history)
        disable = ('host', 'set', '--disable', '--delete-pool', '--yes')
        self._undone.callback(self._isolation, 'reservation', *disable, *hosts)
        self._undone.callback(
            self._isolation, 'reservation', 'end', '--yes', own
        )
        return own

    def _forget_history(self):
        for flavor in self._cloud.admin.flavors.list(is_public=None):
            if flavor.name.startswith('reservation:history.'):
                flavor.delete()

    def delete(self, server):
        self._cloud.delete(server)

    def remove_slots(self, host, reservation):
        """Remove the slots of a reservation on a host."""
        slots = 'CUSTOM_RESERVATION_' + reservation.upper().replace('-', '_')
        path = self._path(f'blazar_{host}')
        self._delete(f'{path}/inventories/{slots}')

    def restart(self, host):
        """Start a host again that was said to be down."""
        # Nova refuses it before its nova-compute has seen what was evacuated.
        self._plane.stop(host)
        self._plane.start(host)
        [found] = self._cloud.admin.services.list(host, 'nova-compute')
        self._cloud.admin.services.force_down(found.id, False)

    def provider(self, name, trait, resource_class):
        """Make a resource provider; return its uuid and a consumer."""
        provider, consumer = self.uuid('provider'), self.uuid('consumer')
        path = f'/resource_providers/{provider}'
        put = self._put
        put('/resource_classes/' + resource_class, None)
        put('/traits/CUSTOM_OTHER', None)
        for gone in (f'/traits/{trait}', '/traits/CUSTOM_OTHER'):
            self._undone.callback(self._delete, gone)
        self._send('post', '/resource_providers',
                   {'name': name, 'uuid': provider})  # fmt: skip
        put(f'{path}/inventories', {
            'resource_provider_generation': 0,
            'inventories': {
                'VCPU': {'total': 4},
                resource_class: {'total': 2},
            },
        })  # fmt: skip
        put(f'{path}/traits', {
            'resource_provider_generation': 1,
            'traits': [trait, 'CUSTOM_OTHER'],
        })  # fmt: skip
        put(f'{path}/aggregates', {
            'resource_provider_generation': 2,
            'aggregates': [self.uuid('first'), self.uuid('second')],
        })  # fmt: skip
        put(f'/allocations/{consumer}', {
            'allocations': {provider: {'resources': {'VCPU': 1}}},
            'consumer_generation': None,
            'project_id': self.project('demo'),
            'user_id': self.project('demo'),
            'consumer_type': 'INSTANCE',
        })  # fmt: skip
        return provider, consumer

    def traits(self, host):
        return self._traits(host)['traits']

    def remove_trait(self, host, trait):
        found = self._traits(host)
        found['traits'].remove(trait)
        self._put(self._path(host) + '/traits', found)

    def clean_up(self):
        for service in self._cloud.admin.services.list(binary='nova-compute'):
            if service.forced_down:
                self.restart(service.host)
        self._undone.close()

    def _isolation(self, *words):
        bare = ('isolate-aggregates', *words)
        Shell(self._plane, '/').paste(' '.join(bare))

    def _path(self, host):
        listed = f'/resource_providers?name={host}'
        [found] = self._sdk.placement.get(listed).json()['resource_providers']
        return f'/resource_providers/{found["uuid"]}'

    def _traits(self, host):
        path = self._path(host) + '/traits'
        return self._sdk.placement.get(path, microversion='1.39').json()

    def _put(self, path, body):
        self._send('put', path, body)

    def _delete(self, path):
        self._sdk.placement.delete(path, microversion='1.39')

    def _send(self, method, path, body):
        send = getattr(self._sdk.placement, method)
        more = {} if body is None else {'json': body}
        answer = send(path, microversion='1.39', **more)
        assert answer.status_code < 300, answer.text


@pytest.fixture
def printed_cloud(plane, cloud):
    found = PrintedCloud(plane, cloud)
    yield found
    found.clean_up()


@pytest.fixture
def paste(plane, tmp_path):
    """A shell, beside the file that a line for an image names."""
    (tmp_path / 'FILE').write_bytes(PrintedCloud.data)
    return Shell(plane, tmp_path).paste


@pytest.fixture
def state(plane):
    with bootstrap.connect(plane.settings, 'admin') as sdk:
        yield cloud_state.CloudState(sdk)


@pytest.mark.parametrize(
    'story', printed_lines.STORIES, ids=lambda story: story.__name__
)
def test_each_line_changes_what_it_says(story, printed_cloud, paste, state):
    for line in story(printed_cloud):
        before = state.read()
        code, output = paste(f'{line.text} {line.more}')
        assert code in line.codes, f'{line.text}: {output}'
        until = time.monotonic() + _SECONDS
        while True:
            changed = cloud_state.differences(before, state.read())
            if changed == line.changes or time.monotonic() > until:
                break
            time.sleep(0.5)
        assert changed == line.changes, line.text
