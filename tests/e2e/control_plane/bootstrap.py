# SPDX-License-Identifier: Apache-2.0
"""What an installer does once: schemas, accounts, endpoints, first flavors."""

import subprocess

from cryptography import fernet
from openstack.config import loader
from openstack.connection import Connection

from control_plane.settings import HOSTS, REGION, program

_ENDPOINTS = (
    ('identity', 'keystone', '/v3'),
    ('image', 'glance', ''),
    ('placement', 'placement', ''),
    ('compute', 'nova-api', '/v2.1'),
    ('network', 'neutron', ''),
)
_SERVICE_USERS = ('glance', 'nova', 'placement')
_TENANTS = ('demo', 'alt_demo')

# Name, VCPUs, MB, GB.
_FLAVORS = (('m1.tiny', 1, 64, 1), ('m1.small', 2, 2048, 20))
_IMAGE = 'cirros'


def connect(settings, cloud):
    """Return a connection as one of the users.

    :param settings: Where the clouds.yaml is.
    :param cloud: The name that it has there.
    """
    config = loader.OpenStackConfig(config_files=[str(settings.clouds)])
    return Connection(config=config.get_one(cloud))


class Bootstrap:
    """The steps of an installation.

    :param settings: Where everything is.
    :param databases: The databases, which exist.
    """

    def __init__(self, settings, databases):
        self._settings = settings
        self._databases = databases

    def keystone(self):
        """Make Keystone's schema, its keys and the administrator."""
        for folder in ('fernet-keys', 'credential-keys'):
            keys = self._settings.state / folder
            keys.mkdir(0o700)
            for name in '01':
                (keys / name).write_bytes(fernet.Fernet.generate_key())
        url = self._settings.url('keystone') + '/v3'
        manage = [
            'keystone-manage',
            f'--config-file={self._settings.etc}/keystone/keystone.conf',
        ]
        self._run([*manage, 'db_sync'])
        self._run(
            [
                *manage,
                'bootstrap',
                f'--bootstrap-password={self._settings.secret}',
                f'--bootstrap-region-id={REGION}',
                f'--bootstrap-public-url={url}',
                f'--bootstrap-internal-url={url}',
                f'--bootstrap-admin-url={url}',
            ]
        )

    def glance(self):
        """Make Glance's schema and folders."""
        for folder in ('images', 'staging', 'tasks'):
            path = self._settings.state / 'glance' / folder
            path.mkdir(parents=True, exist_ok=True)
        path = self._settings.etc / 'glance/glance-api.conf'
        self._run(['glance-manage', f'--config-file={path}', 'db', 'sync'])

    def placement(self):
        """Make Placement's schema."""
        path = self._settings.etc / 'placement/placement.conf'
        self._run(['placement-manage', f'--config-file={path}', 'db', 'sync'])

    def nova(self):
        """Make Nova's schemas and its cells."""
        for folder in ('locks', *HOSTS):
            path = self._settings.state / 'nova' / folder
            path.mkdir(parents=True, exist_ok=True)
        self._nova_manage('api_db', 'sync')
        cell0 = self._databases.url('nova_cell0')
        self._nova_manage(
            'cell_v2', 'map_cell0', f'--database_connection={cell0}'
        )
        self._nova_manage('db', 'sync')
        self._nova_manage('cell_v2', 'create_cell', '--name=cell1')

    def hosts(self):
        """Tell Nova which cell the hosts are in."""
        self._nova_manage('cell_v2', 'discover_hosts')

    def accounts(self):
        """Make users, projects and endpoints."""
        with self._connect() as cloud:
            roles = {role.name: role for role in cloud.identity.roles()}
            service = cloud.identity.create_project(name='service')
            roles['service'] = cloud.identity.find_role(
                'service'
            ) or cloud.identity.create_role(name='service')
            for name in _SERVICE_USERS:
                user = self._create_user(cloud, name)
                for role in ('admin', 'service'):
                    cloud.identity.assign_project_role_to_user(
                        service, user, roles[role]
                    )
            for name in _TENANTS:
                project = cloud.identity.create_project(name=name)
                cloud.identity.assign_project_role_to_user(
                    project, self._create_user(cloud, name), roles['member']
                )
            for kind, name, path in _ENDPOINTS[1:]:
                found = cloud.identity.create_service(name=name, type=kind)
                for interface in ('public', 'internal', 'admin'):
                    cloud.identity.create_endpoint(
                        service_id=found.id,
                        interface=interface,
                        url=self._settings.url(name) + path,
                        region_id=REGION,
                    )

    def flavors(self):
        """Make the first flavors."""
        with self._connect() as cloud:
            for name, vcpus, ram, disk in _FLAVORS:
                cloud.compute.create_flavor(
                    name=name, vcpus=vcpus, ram=ram, disk=disk
                )

    def image(self):
        """Make the first image; the fake hypervisor never looks inside."""
        with self._connect() as cloud:
            cloud.create_image(
                _IMAGE,
                data=b'not an image',
                disk_format='raw',
                container_format='bare',
                visibility='public',
                wait=True,
            )

    def _connect(self):
        return connect(self._settings, 'admin')

    def _create_user(self, cloud, name):
        return cloud.identity.create_user(
            name=name, password=self._settings.secret
        )

    def _nova_manage(self, *arguments):
        path = self._settings.etc / 'nova/nova.conf'
        self._run(['nova-manage', f'--config-file={path}', *arguments])

    def _run(self, command):
        """Run a program to completion; its output is appended to a log.

        :raises RuntimeError: if it fails.
        """
        log = self._settings.logs / f'{command[0]}.log'
        with log.open('ab') as output:
            result = subprocess.run(
                [program(command[0]), *command[1:]],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        if result.returncode:
            raise RuntimeError(f'{command[0]} failed; its log is {log}')
