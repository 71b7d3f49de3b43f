# SPDX-License-Identifier: Apache-2.0
"""Hosts reserved by a prefix of metadata keys, in the steps of the spec.

They are in the section "Developer impact" of `Support filtering by forbidden
aggregate membership
<https://docs.openstack.org/placement/latest/specs/train/implemented/2005297-negative-aggregate-membership.html>`_;
an operator does by hand what Blazar does there. Step 0, the prefix in
nova.conf, is done in this cloud.
"""

import uuid

from clients import host_of
import pytest


class Operator:
    """Keeps a pool of hosts and gives some of them to projects.

    :param admin: The ``openstack`` command of an administrator.
    :param cloud: Names what is made.
    """

    def __init__(self, admin, cloud):
        self._admin = admin
        self._cloud = cloud
        self._aggregates = []
        self._flavors = []
        self._where = {}

    def project(self, name):
        return self._cloud.sdk.identity.find_project(name).id

    def aggregate(self, short, *properties):
        name = self._cloud.name(short)
        tags = [f'--property={one}' for one in properties]
        self._admin('aggregate', 'create', *tags, name)
        self._aggregates.append(name)
        return name

    def move(self, host, to):
        """Put a host into an aggregate, and then out of where it was."""
        self._admin('aggregate', 'add', 'host', to, host)
        self._take_out(host)
        self._where[host] = to

    def delete(self, aggregate):
        self._admin('aggregate', 'delete', aggregate)
        self._aggregates.remove(aggregate)

    def flavor(self, short, project, key):
        """Make a flavor for one project that names a reservation."""
        name = self._cloud.name(short)
        self._admin(
            *('flavor', 'create', '--ram', '64', '--disk', '1'),
            *('--private', '--project', project),
            *('--property', f'{key}=true', name),
        )
        self._flavors.append(name)
        return name

    def clean_up(self):
        for host in list(self._where):
            self._take_out(host)
        if self._aggregates:
            self._admin('aggregate', 'delete', *self._aggregates)
        if self._flavors:
            self._admin('flavor', 'delete', *self._flavors)

    def _take_out(self, host):
        before = self._where.pop(host, None)
        if before:
            self._admin('aggregate', 'remove', 'host', before, host)


@pytest.fixture
def operator(cloud, admin):
    found = Operator(admin, cloud)
    yield found
    found.clean_up()


def test_a_host_is_reserved_and_given_back(
    plane, cloud, operator, tenants, demo, stranger
):
    plain, linux = cloud.flavor('plain'), cloud.image('linux')

    # 1. The free pool is closed to all servers.
    pool = operator.aggregate('pool', f'reservation:{uuid.uuid4()}=true')
    operator.move('host2', pool)
    operator.move('host3', pool)
    assert host_of(tenants.boot(demo, plain, linux)) == 'host1'

    # 2. One of its hosts is reserved.
    project = operator.project('demo')
    key = f'reservation:{uuid.uuid4()}'
    reserved = operator.aggregate(
        'reserved', f'{key}=true', f'blazar:owner={project}'
    )
    operator.move('host2', reserved)

    # 3. Who names the reservation gets there, and nowhere else: by a flavor
    #    that the operator has given out, or by an image of one's own.
    flavor = operator.flavor('reserved', project, key)
    assert host_of(tenants.boot(demo, flavor, linux)) == 'host2'
    image = tenants.image(demo, 'reserved', f'{key}=true')
    assert host_of(tenants.boot(demo, plain, image)) == 'host2'

    # 4. Who does not gets neither there nor into the pool.
    assert host_of(tenants.boot(demo, plain, linux)) == 'host1'

    # Strangers do not see the flavor, and what their images say is not true.
    refused = stranger.run(
        *('server', 'create', '--flavor', flavor, '--image', linux),
        *('--nic', 'none', cloud.name('stranger')),
    )
    assert refused.returncode == 1
    assert flavor in refused.stderr
    stolen = tenants.image(stranger, 'stolen', f'{key}=true')
    server = tenants.boot(stranger, plain, stolen)
    assert server.status == 'ERROR'
    foreign = told(server)
    assert f'{key} is named by the image' in logged(plane, server)

    # At the end, the host is in the pool again, and the key opens nothing.
    operator.move('host2', pool)
    operator.delete(reserved)
    server = tenants.boot(demo, flavor, linux)
    assert server.status == 'ERROR'
    assert f'no aggregate has the metadata key {key}' in logged(plane, server)
    # A stranger cannot tell whether a reservation exists.
    assert told(server) == foreign
    assert host_of(tenants.boot(demo, plain, linux)) == 'host1'


def told(server):
    """Return the message for the user of a server, without the request ID."""
    return server.fault['message'].partition('request ID')[0]


def logged(plane, server):
    """Return the line of nova-scheduler on why it refused a server."""
    [line] = [
        line
        for line in plane.log('nova-scheduler').read_text('utf-8').splitlines()
        if f'Refused to schedule server {server.id} ' in line
    ]
    assert (
        line.partition('request ')[2].split(':')[0]
        in (server.fault['message'])
    )
    return line
