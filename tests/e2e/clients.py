# SPDX-License-Identifier: Apache-2.0
"""The clients of the end-to-end tests, with common operations."""

import contextlib
import dataclasses
import datetime
import json
import os
import subprocess
import time
import uuid

from agreement import agreed
from control_plane import bootstrap
from control_plane.settings import Settings, program
from novaclient import client as nova_client
from novaclient.exceptions import NotFound

_SECONDS = 300


class Failed(Exception):
    """A failed command, with its output."""


@dataclasses.dataclass(frozen=True)
class OpenStack:
    """The ``openstack`` command of a user, as a process.

    :param settings: Where the cloud is.
    :param user: The name of the user in clouds.yaml.
    """

    settings: Settings
    user: str

    def __call__(self, *arguments):
        """Run the command and return its output.

        :raises Failed: if it fails.
        """
        result = self.run(*arguments)
        if result.returncode:
            raise Failed(result.stderr + result.stdout)
        return result.stdout

    def run(self, *arguments):
        """Run it, whether it fails or not."""
        return subprocess.run(
            [program('openstack'), *agreed(arguments)],
            env={
                # None of those of whoever runs the tests.
                **{k: v for k, v in os.environ.items() if k[:3] != 'OS_'},
                'OS_CLIENT_CONFIG_FILE': str(self.settings.clouds),
                'OS_CLOUD': self.user,
                # As wide as a terminal that folds nothing.
                'COLUMNS': '200',
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    def json(self, *arguments):
        """Run it and return the object that it writes."""
        return json.loads(self(*arguments, '-f', 'json'))


class Cloud:
    """Makes what stories need, and forgets nothing of it.

    Names are made longer so that no two stories meet. What was made is deleted
    in the end, the last first.

    :param plane: The control plane.
    """

    def __init__(self, plane):
        self._plane = plane
        self._made = contextlib.ExitStack()
        self._servers = []
        # Of what was made, by its name.
        self._ids = {}
        self._clients = {}
        self._mark = uuid.uuid4().hex[:6]
        self.admin = nova(plane, 'admin')
        self.sdk = bootstrap.connect(plane.settings, 'admin')

    def name(self, short):
        """Return a name that no other story uses."""
        return f'{short}-{self._mark}'

    def flavor(self, short, extra_specs=None, ram=64):
        """Create a public flavor and return its name."""
        made = self.admin.flavors.create(
            self.name(short), ram=ram, vcpus=1, disk=1
        )
        self._made.callback(made.delete)
        self._ids[made.name] = made.id
        if extra_specs:
            made.set_keys(extra_specs)
        return str(made.name)

    def image(self, short, properties=None, user='admin'):
        """Create an image and return its name.

        The administrator's image is public, that of a tenant is private.
        """
        sdk = bootstrap.connect(self._plane.settings, user)
        self._made.callback(sdk.close)
        made = sdk.create_image(
            self.name(short),
            data=b'not an image',
            disk_format='raw',
            container_format='bare',
            visibility='public' if user == 'admin' else 'private',
            wait=True,
            meta=dict(properties or {}),
        )
        self._made.callback(self.sdk.image.delete_image, made.id)
        self._ids[made.name] = made.id
        return str(made.name)

    def aggregate(self, short, hosts, metadata=None):
        """Make an aggregate and return it."""
        made = self.admin.aggregates.create(self.name(short), None)
        self._made.callback(made.delete)
        for host in hosts:
            made.add_host(host)
            self._made.callback(made.remove_host, host)
        if metadata:
            made.set_metadata(dict(metadata))
        return made

    def boot(self, short, flavor, image, user='demo', **more):
        """Create a server without networks; do not wait for it.

        :param more: Further arguments of novaclient, for example
            ``scheduler_hints``.
        """
        if user not in self._clients:
            self._clients[user] = nova(self._plane, user)
        server = self._clients[user].servers.create(
            self.name(short),
            self._ids.get(image)
            or self.sdk.image.find_image(image, ignore_missing=False).id,
            self._ids.get(flavor)
            or self.admin.flavors.find(name=flavor, is_public=None).id,
            nics='none',
            **more,
        )
        self._servers.append(server)
        return self.admin.servers.get(server.id)

    def settle(self, server):
        """Wait until a server is ACTIVE or in ERROR and return it."""
        return self.wait(server, lambda s: s.status in ('ACTIVE', 'ERROR'))

    def wait(self, server, condition):
        """Wait until something is true of a server and return it."""
        for _ in _patience(f'server {server.name} {server.status}'):
            server = self.admin.servers.get(server.id)
            if condition(server):
                break
        return server

    def place(self, short, flavor, image, **more):
        """Boot a server and return its host; None if it got none."""
        server = self.settle(self.boot(short, flavor, image, **more))
        return host_of(server)

    def delete(self, *servers):
        """Delete servers, side by side, and wait until they are gone."""
        for server in servers:
            with contextlib.suppress(NotFound):
                server.delete()
        for server in servers:
            with contextlib.suppress(NotFound):
                for _ in _patience(f'deletion of {server.name}'):
                    server.get()

    def clean_up(self):
        """Delete everything, ignoring failures."""
        with self._made:
            self.delete(*self._servers)


def nova(plane, user):
    """Return novaclient for a user; administrators also see hosts.

    :param plane: The control plane.
    :param user: The name of the user in clouds.yaml.
    """
    session = bootstrap.connect(plane.settings, user).session
    return nova_client.Client('2.96', session=session)


def host_of(server):
    """Return the host that a server is on; None if it is in ERROR."""
    if server.status == 'ERROR':
        return None
    return str(getattr(server, 'OS-EXT-SRV-ATTR:host'))


def launched(server):
    """Return when a server ran for the first time, without a fraction."""
    text = getattr(server, 'OS-SRV-USG:launched_at')
    return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC)


def now():
    """Return the current time, for comparison with times of Nova."""
    return datetime.datetime.now(datetime.UTC)


def _patience(what):
    """Yield repeatedly, with increasing pauses.

    :raises TimeoutError: if that takes too long.
    """
    until, pause = time.monotonic() + _SECONDS, 0.2
    while time.monotonic() < until:
        yield
        time.sleep(pause)
        pause = min(1.3 * pause, 2)
    raise TimeoutError(f'{what} takes too long')
