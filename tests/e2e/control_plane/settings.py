# SPDX-License-Identifier: Apache-2.0
"""Where the control plane keeps its files, and which ports it listens on."""

import dataclasses
import json
import os
import pathlib
import secrets
import shlex
import sys

HOST = '127.0.0.1'
REGION = 'RegionOne'

HOSTS = ('host1', 'host2', 'host3')

# Each listens on the base port plus its place.
PORTS = (
    'mariadb',
    'epmd',
    'rabbitmq',
    'rabbitmq-distribution',
    'keystone',
    'glance',
    'placement',
    'nova-api',
    'neutron',
)

_KEPT = 'settings.json'
_ROOT = pathlib.Path(__file__).parents[3]


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings that can differ between two control planes on a machine.

    :param state: The folder of all their files.
    :param base_port: The first port to listen on.
    :param database_url: A MariaDB that runs already, with a user who may
        create databases; None to start one.
    :param broker_url: A RabbitMQ that runs already; None to start one.
    """

    state: pathlib.Path
    base_port: int
    database_url: str | None = None
    broker_url: str | None = None

    @classmethod
    def from_environment(cls):
        """Return the settings from the environment, or the defaults.

        An existing control plane keeps its settings.

        :raises RuntimeError: if a setting is invalid.
        """
        state = pathlib.Path(os.environ.get('E2E_STATE') or _ROOT / '.cloud')
        state = state.expanduser().resolve()
        kept = state / _KEPT
        if kept.exists():
            return cls(state, **json.loads(kept.read_text('utf-8')))
        return cls(
            state,
            _base_port(os.environ.get('E2E_BASE_PORT') or '18700'),
            os.environ.get('E2E_DATABASE_URL') or None,
            os.environ.get('E2E_BROKER_URL') or None,
        )

    def keep(self):
        """Save the settings for later commands."""
        kept = dataclasses.asdict(self)
        del kept['state']
        self.kept.write_text(json.dumps(kept), 'utf-8')

    @property
    def kept(self):
        """The file that they are written down in: the folder is ours then."""
        return self.state / _KEPT

    @property
    def openrc(self):
        """The file that makes a shell the administrator, quoted for it."""
        return shlex.quote(str(self.state / 'openrc'))

    def port(self, name):
        """Return the port of a service."""
        return self.base_port + PORTS.index(name)

    def url(self, name):
        """Return the URL of an HTTP service."""
        return f'http://{HOST}:{self.port(name)}'

    @property
    def secret(self):
        """The password of all accounts: each control plane has its own."""
        path = self.state / 'secret'
        if not path.exists():
            path.write_text(secrets.token_urlsafe(24), 'utf-8')
        return path.read_text('utf-8')

    @property
    def etc(self):
        """The folder of configuration files."""
        return self.state / 'etc'

    @property
    def logs(self):
        """The folder of logs."""
        return self.state / 'log'

    @property
    def clouds(self):
        """The file that clients find the cloud by."""
        return self.state / 'clouds.yaml'


def _base_port(text):
    most = 65536 - len(PORTS)
    # Below 1024 are those of the system.
    if not text.isdecimal() or not 1024 <= int(text) <= most:
        raise RuntimeError(
            f'E2E_BASE_PORT is {text!r}; it has to be a port from 1024 to '
            f'{most}, the first of {len(PORTS)} to listen on.'
        )
    return int(text)


def program(name):
    """Return the path of a program of this virtual environment."""
    return str(pathlib.Path(sys.prefix) / 'bin' / name)
