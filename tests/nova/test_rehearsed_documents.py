# SPDX-License-Identifier: Apache-2.0
"""The documents of a rehearsal are those of Nova's own schemas.

Clients die in their own way on a field that is missing. Each answer of each
microversion is checked, as far as Nova has a schema for it.
"""

import dataclasses
import functools
import types

from nova.api.openstack import api_version_request
from nova.api.openstack.compute import (
    aggregates,
    availability_zone,
    flavor_access,
    flavors,
    flavors_extraspecs,
    hypervisors,
    server_groups,
    servers,
    services,
)
from nova.api.validation import validators
import pytest

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.request import Flavor
from isolate_aggregates_tools.compute.servers import (
    Server,
    ServerGroup,
    Servers,
)
from isolate_aggregates_tools.rehearse.exchange import Request
from isolate_aggregates_tools.rehearse.nova import NEWEST, Nova
from isolate_aggregates_tools.rehearse.placement import HeldPlacement
from isolate_aggregates_tools.rehearse.world import World
from isolate_aggregates_tools.testing import make_compute_node, make_snapshot

PROJECT, SERVER = 'a' * 32, '5e1f0d9c-0000-4000-8000-000000000001'
NODE = make_compute_node('c1')
NEW = {'name': 'new', 'ram': 64, 'vcpus': 1, 'disk': 1}
SERVICE = {'host': 'c1', 'binary': 'nova-compute'}

_AGGREGATES = aggregates.AggregateController
_FLAVORS = flavors.FlavorsController
_SPECS = flavors_extraspecs.FlavorExtraSpecsController
_ACCESS = flavor_access.FlavorActionController
_SERVICES = services.ServiceController
_HYPERVISORS = hypervisors.HypervisorsController
_GROUPS = server_groups.ServerGroupController
_SERVERS = servers.ServersController
_ZONES = availability_zone.AvailabilityZoneController
# The first microversions without some paths.
GONE = {
    '/os-services/disable': 53,
    '/os-hypervisors/1': 53,
    '/os-hypervisors/statistics': 88,
}


def action(path, name, body):
    return 'POST', f'{path}/action', {name: body}


# Requests, with the method of Nova that answers them, and the microversions
# for which there is an answer.
REQUESTS = [
    (_AGGREGATES.index, ('GET', '/os-aggregates', None), 1),
    (_AGGREGATES.show, ('GET', '/os-aggregates/7', None), 1),
    (
        _AGGREGATES.create,
        ('POST', '/os-aggregates', {'aggregate': {'name': 'new'}}),
        1,
    ),
    (
        _AGGREGATES.update,
        ('PUT', '/os-aggregates/7', {'aggregate': {'name': 'new'}}),
        1,
    ),
    (_AGGREGATES.delete, ('DELETE', '/os-aggregates/8', None), 1),
    (
        _AGGREGATES._add_host,
        action('/os-aggregates/8', 'add_host', {'host': 'c1'}),
        1,
    ),
    (
        _AGGREGATES._remove_host,
        action('/os-aggregates/7', 'remove_host', {'host': 'c1'}),
        1,
    ),
    (
        _AGGREGATES._set_metadata,
        action('/os-aggregates/7', 'set_metadata', {'metadata': {'a': 'b'}}),
        1,
    ),
    (_FLAVORS.index, ('GET', '/flavors', None), 1),
    (_FLAVORS.detail, ('GET', '/flavors/detail', None), 1),
    (_FLAVORS.show, ('GET', '/flavors/m1', None), 1),
    (_FLAVORS.create, ('POST', '/flavors', {'flavor': NEW}), 1),
    (
        _FLAVORS.update,
        ('PUT', '/flavors/m1', {'flavor': {'description': 'x'}}),
        55,
    ),
    (_FLAVORS.delete, ('DELETE', '/flavors/m1', None), 1),
    (_SPECS.index, ('GET', '/flavors/own/os-extra_specs', None), 1),
    (_SPECS.show, ('GET', '/flavors/own/os-extra_specs/a', None), 1),
    (
        _SPECS.create,
        ('POST', '/flavors/m1/os-extra_specs', {'extra_specs': {'b': 'c'}}),
        1,
    ),
    (_SPECS.update, ('PUT', '/flavors/own/os-extra_specs/a', {'a': 'c'}), 1),
    (_SPECS.delete, ('DELETE', '/flavors/own/os-extra_specs/a', None), 1),
    (
        flavor_access.FlavorAccessController.index,
        ('GET', '/flavors/own/os-flavor-access', None),
        1,
    ),
    (
        _ACCESS._add_tenant_access,
        action('/flavors/own', 'addTenantAccess', {'tenant': 'b' * 32}),
        1,
    ),
    (
        _ACCESS._remove_tenant_access,
        action('/flavors/own', 'removeTenantAccess', {'tenant': PROJECT}),
        1,
    ),
    (_SERVICES.index, ('GET', '/os-services', None), 1),
    (_SERVICES.update, ('PUT', '/os-services/disable', SERVICE), 1),
    (_SERVICES.update, ('PUT', '/os-services/{service}', {}), 53),
    (_HYPERVISORS.index, ('GET', '/os-hypervisors', None), 1),
    (_HYPERVISORS.detail, ('GET', '/os-hypervisors/detail', None), 1),
    (_HYPERVISORS.show, ('GET', '/os-hypervisors/1', None), 1),
    (_HYPERVISORS.show, ('GET', f'/os-hypervisors/{NODE.uuid}', None), 53),
    (_HYPERVISORS.statistics, ('GET', '/os-hypervisors/statistics', None), 1),
    (_GROUPS.index, ('GET', '/os-server-groups?all_projects', None), 1),
    (_GROUPS.show, ('GET', f'/os-server-groups/{SERVER}', None), 1),
    (_SERVERS.index, ('GET', '/servers?all_tenants', None), 1),
    (_SERVERS.detail, ('GET', '/servers/detail?all_tenants', None), 1),
    (_SERVERS.show, ('GET', f'/servers/{SERVER}', None), 1),
    (_ZONES.index, ('GET', '/os-availability-zone', None), 1),
    (_ZONES.detail, ('GET', '/os-availability-zone/detail', None), 1),
]


@functools.cache
def cloud():
    flavor = Flavor('m1', 'm1', 1, 64, 1)
    own = Flavor(
        'own', 'own', 1, 64, 1,
        extra_specs={'a': 'b'}, is_public=False,
        projects=frozenset({PROJECT}),
    )  # fmt: skip
    server = Server(SERVER, 'web', PROJECT, 'ACTIVE', 'c1', flavor, SERVER)
    group = ServerGroup(SERVER, 'anti-affinity', frozenset({SERVER}), 2)
    found = make_snapshot(
        [
            Aggregate(NODE.uuid, 'one', {'a': 'b'}, frozenset({'c1'}), id=7),
            Aggregate(SERVER, 'two', {}, frozenset(), id=8),
        ],
        [NODE],
        flavors=[flavor, own],
    )
    servers = Servers((server,), {}, True, (group,))
    return dataclasses.replace(found, servers=servers)


def answer(method, path, body, minor):
    """Return the answer of a rehearsal, in the world of which nothing is."""
    world = World(cloud())
    nova = Nova(world, HeldPlacement(world))

    def ask(*words, query=()):
        asked = Request(*words, minor, 'http://nova/v2.1')
        return world.answer('nova', nova.answer, asked)

    path, _, query = path.partition('?')
    if '{service}' in path:
        listed = ask('GET', '/os-services', {}, None).document
        path = path.format(service=listed['services'][0]['id'])
        body = {'status': 'disabled', 'disabled_reason': 'why'}
    found = ask(method, path, {query: '1'} if query else {}, body)
    assert found.status < 300, found.document
    return found.document


@pytest.mark.parametrize(
    ('controller', 'asked', 'first'),
    REQUESTS,
    ids=[
        f'{method} {path.partition("?")[0]}'
        + ''.join(f' {name}' for name in (body or ()) if 'action' in path)
        for _, (method, path, body), _ in REQUESTS
    ],
)
def test_each_document_has_the_form_of_nova(controller, asked, first):
    schemas = getattr(controller, 'response_body_schemas', None)
    if schemas is None:
        pytest.skip('this release of Nova has no schema for it')
    checked = 0
    for minor in range(first, NEWEST + 1):
        version = api_version_request.APIVersionRequest(f'2.{minor}')
        schema = schemas(types.SimpleNamespace(api_version_request=version))
        method, path, body = asked
        if first == 1 and minor >= GONE.get(path, minor + 1):
            # By its uuid since then, or not at all.
            break
        if schema is not None:
            validators._SchemaValidator(schema).validate(
                answer(method, path, body, minor)
            )
            checked += 1
    assert checked
