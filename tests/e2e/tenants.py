# SPDX-License-Identifier: Apache-2.0
"""What tenants make with the ``openstack`` command."""

import contextlib


class Tenants:
    """Users, each with an ``openstack`` client.

    Their objects are deleted at the end.

    :param cloud: Names their objects, and reads their state.
    :param folder: The directory for their files.
    """

    def __init__(self, cloud, folder):
        self._cloud = cloud
        self._file = folder / 'image'
        self._images = contextlib.ExitStack()
        self._servers = []

    def boot(self, tenant, flavor, image, *options):
        """Create a server and wait until it runs, or is in ERROR."""
        document = tenant.json(
            *('server', 'create', '--flavor', flavor, '--image', image),
            *('--nic', 'none', *options, self._cloud.name('typed')),
        )
        server = self._cloud.admin.servers.get(document['id'])
        self._servers.append(server)
        return self._cloud.settle(server)

    def image(self, tenant, short, *properties):
        """Create an image and return its name.

        :param properties: As in ``key=value``.
        """
        self._file.write_bytes(b'not an image')
        document = tenant.json(
            *('image', 'create', '--file', str(self._file)),
            *('--disk-format', 'raw', '--container-format', 'bare'),
            *(f'--property={one}' for one in properties),
            self._cloud.name(short),
        )
        self._images.callback(
            self._cloud.sdk.image.delete_image, document['id']
        )
        return str(document['name'])

    def clean_up(self):
        """Delete everything, ignoring failures."""
        with self._images:
            self._cloud.delete(*self._servers)
