# SPDX-License-Identifier: Apache-2.0
"""Our query equals Nova's after all of its own request filters.

This holds for every supported release of Nova; tox runs the tests with
each of them.
"""

import dataclasses
import functools
from importlib import metadata
import logging
from types import SimpleNamespace
from unittest import mock

from hypothesis import example, given
from hypothesis import strategies as st
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
import nova.conf
from nova.network import neutron
from nova.objects import service as nova_service
from nova.scheduler import request_filter
from nova.scheduler import utils as nova_utils
from nova.scheduler.client import report
from oslo_config import cfg
from oslo_config import fixture as config_fixture
import pytest
import test_in_tree
import test_nova_api
import test_query
from thorough import examples

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception, options
from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.decision import decide
from isolate_aggregates.request import ComputeHost, Flavor, Image
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.mirrored import chain
from isolate_aggregates_tools.request import (
    Request,
    RequestedNetwork,
    ResourceGroup,
    asking,
)

engine = test_in_tree.engine

RELEASE = int(metadata.version('nova').partition('.')[0])
LIMIT = 1000
SWITCHES = (
    'limit_tenants_to_placement_aggregate',
    'placement_aggregate_required_for_tenants',
    'query_placement_for_image_type_support',
    'image_metadata_prefilter',
    'query_placement_for_routed_network_aggregates',
    'enable_isolated_aggregate_filtering',
)
# The compute nodes of each host.
HOSTS = {
    'host1': ('a0000000-0000-4000-8000-000000000001',),
    'host2': ('a0000000-0000-4000-8000-000000000002',),
    'ironic': (
        'a0000000-0000-4000-8000-000000000003',
        'a0000000-0000-4000-8000-000000000004',
    ),
}
SEGMENTS = {
    'routed-1': ['b0000000-0000-4000-8000-000000000001'],
    'routed-2': [
        'b0000000-0000-4000-8000-000000000002',
        'b0000000-0000-4000-8000-000000000003',
    ],
    'flat': [],
}

# Beside those that test_query.py has.
SPECS = {
    'accel:device_profile': ['gpu', ''],
    'hw:virtio_packed_ring': ['true', 'false', 'yes'],
    'hw:ephemeral_encryption': ['true', 'false'],
    'hw:ephemeral_encryption_format': ['luks', 'plain'],
    'hw:sound_model': ['virtio', 'ich9'],
    'hw:tpm_version': ['1.2', '2.0'],
    'hw:tpm_secret_security': ['user', 'host', 'deployment'],
    'os:secure_boot': ['required', 'optional'],
    'group_policy': ['isolate'],
    'resources1:CUSTOM_FOO': ['1'],
    'resources_PORT:CUSTOM_FOO': ['2'],
}
PROPERTIES = {
    'hw_virtio_packed_ring': ['true', 'false'],
    'hw_ephemeral_encryption': ['true', 'false'],
    'hw_ephemeral_encryption_format': ['luks', 'luksv2'],
    'hw_disk_bus': ['virtio', 'scsi', 'lxc'],
    'hw_cdrom_bus': ['sata', 'fdc'],
    'hw_video_model': ['qxl', 'none', 'gop'],
    'hw_vif_model': ['e1000', 'VirtualE1000', 'spapr-vlan', 'igb'],
    'hw_architecture': ['x86_64', 'amd64', 'aarch64', 'i386', 'ppc64le'],
    'architecture': ['x86_64'],
    'hw_emulation_architecture': ['aarch64', 'x86_64'],
    'hw_viommu_model': ['intel', 'smmuv3', 'auto'],
    'vmware_adaptertype': ['ide', 'lsiLogic'],
    'hw_tpm_version': ['2.0'],
    'trait:CUSTOM_A': ['required'],
    'trait:CUSTOM_B': ['required', 'forbidden'],
    'hw_firmware_type': ['uefi'],
}
if RELEASE >= 32:
    PROPERTIES['hw_sound_model'] = ['virtio', 'usb']

IMAGE = Image('none', disk_format='raw')

keys = st.sampled_from(
    ['filter_tenant_id', 'filter_tenant_id2', 'availability_zone', 'other']
)
values = st.sampled_from(['p1', 'p2', 'p1,p2', 'az1', 'az2'])
locks = st.sampled_from(['trait:CUSTOM_A', 'trait:CUSTOM_B'])
clouds = st.lists(
    st.builds(
        lambda metadata, tags: {**metadata, **dict.fromkeys(tags, 'required')},
        st.dictionaries(keys, values, max_size=3),
        st.sets(locks, max_size=1),
    ),
    max_size=5,
)
flavors = st.builds(
    lambda flavor, specs: dataclasses.replace(
        flavor, extra_specs={**flavor.extra_specs, **specs}
    ),
    test_query.flavors,
    test_query.some_of(SPECS, 4),
)
images = st.builds(
    Image,
    name=st.just('i'),
    disk_format=st.sampled_from(['qcow2', 'raw', 'vmdk', 'ploop', 'docker']),
    properties=test_query.some_of(PROPERTIES, 5),
)
networks = st.lists(
    st.builds(
        lambda name, remote: (name, remote),
        st.sampled_from(sorted(SEGMENTS)),
        st.booleans(),
    ),
    max_size=2,
)
groups = st.lists(
    st.builds(
        ResourceGroup,
        id=st.sampled_from(['_PORT', 'device_profile_0', 'p' * 36]),
        resources=st.dictionaries(
            st.sampled_from(['CUSTOM_FOO', 'VCPU', 'CUSTOM_BW']),
            st.integers(1, 3),
            min_size=1,
        ),
        required_traits=st.frozensets(
            st.sampled_from(['CUSTOM_A', 'CUSTOM_C']), max_size=1
        ),
        forbidden_traits=st.frozensets(st.just('CUSTOM_D'), max_size=1),
    ),
    max_size=2,
    unique_by=lambda group: group.id,
)
hosts = st.sampled_from([None, None, *HOSTS, 'nowhere'])


@st.composite
def requests(draw):
    # Without an image nova-api accepts what some image would allow.
    image = draw(st.just(IMAGE) | images)
    host = draw(hosts)
    own = draw(groups)
    return Request(
        flavor=draw(flavors),
        image=image,
        boot_from_volume=draw(st.booleans()),
        project_id=draw(st.sampled_from(['p1', 'p2', 'p3'])),
        scheduler_hints=draw(
            st.dictionaries(
                st.sampled_from(['group', 'different_host', 'query']),
                st.just(('x',)),
                max_size=1,
            )
        ),
        requested_host=host and ComputeHost(host, HOSTS.get(host, ())),
        availability_zone=draw(st.sampled_from([None, 'az1', 'az2', 'p1'])),
        resource_groups=tuple(own),
        same_subtree=(frozenset(group.id for group in own),)
        if own and draw(st.booleans())
        else (),
        networks=tuple(
            RequestedNetwork(name, tuple(SEGMENTS[name]), remote)
            for name, remote in draw(networks)
        ),
        nova_release=RELEASE,
        owner_nova=draw(st.booleans()),
    )


@pytest.fixture(scope='module')
def nova_conf():
    fixture = config_fixture.Config(nova.conf.CONF)
    fixture.setUp()
    nova.conf.CONF([], default_config_files=[], project='nova')
    objects.register_all()
    loggers = [logging.getLogger(n) for n in ('nova', 'isolate_aggregates')]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    yield fixture
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)
    fixture.cleanUp()


def nova_spec(request, forced):
    """The same request as an object of Nova, as its conductor makes it."""
    spec = test_query.nova_spec(request)
    image = request.image
    spec.image = objects.ImageMeta.from_dict(
        {
            'id': test_query.UUIDS[0],
            'name': 'i',
            **(
                {
                    'disk_format': image.disk_format,
                    'properties': dict(image.properties),
                }
                if image
                else {'properties': {}}
            ),
        }
    )
    spec.project_id = request.project_id
    spec.availability_zone = request.availability_zone
    spec.scheduler_hints = {
        key: list(found) for key, found in request.scheduler_hints.items()
    }
    spec.requested_resources = [
        objects.RequestGroup(
            requester_id=group.id,
            use_same_provider=True,
            resources=dict(group.resources),
            required_traits=set(group.required_traits),
            forbidden_traits=set(group.forbidden_traits),
        )
        for group in request.resource_groups
    ]
    spec.request_level_params = objects.RequestLevelParams(
        same_subtree=[sorted(some) for some in request.same_subtree]
    )
    spec.requested_networks = objects.NetworkRequestList(
        objects=[
            objects.NetworkRequest(
                network_id=network.name,
                # Neutron is queried for ports only.
                port_id=PORTS[network.name]
                if network.remote_managed
                else None,
            )
            for network in request.networks
        ]
    )
    host = request.requested_host
    if host and forced:
        spec.force_hosts = [host.name]
    elif host:
        spec.requested_destination = objects.Destination(host=host.name)
    return spec


PORTS = {
    name: f'c0000000-0000-4000-8000-00000000000{number}'
    for number, name in enumerate(SEGMENTS)
}


class Neutron:
    """The part of the Neutron client that Nova's request filters use."""

    def show_port(self, context, port_id):
        [network] = [name for name, port in PORTS.items() if port == port_id]
        return {'port': {'fixed_ips': [], 'network_id': network}}

    def is_remote_managed_port(self, context, port_id):
        return True

    def get_segment_ids_for_network(self, context, network_id):
        return SEGMENTS[network_id]


class Placement:
    """A segment's aggregate has its uuid here."""

    def _get_provider_aggregates(self, context, segment):
        return SimpleNamespace(aggregates={segment})


class Hosts:
    """The compute nodes in Nova."""

    def get_compute_nodes_by_host_or_node(self, context, host, node, cell):
        return [
            objects.ComputeNode(uuid=node, host=host, hypervisor_hostname=node)
            for node in HOSTS.get(host, ())
        ]


def written(params):
    """Return the parameters, sorted and without duplicates."""
    results = set()
    for key, value in params:
        prefix, colon, uuids = value.rpartition('in:')
        if key == 'member_of':
            value = f'{prefix}{colon}{",".join(sorted(uuids.split(",")))}'
        results.add((key, value))
    return sorted(results)


def theirs(request, forced):
    """Return the query that Nova sends for a request that nova-api accepts."""
    if refusal := test_nova_api.refusal_of_nova(request):
        raise nova_exception.InvalidRequest(refusal)
    spec = nova_spec(request, forced)
    context = nova_context.get_admin_context()
    version = 1000 if request.owner_nova else 60
    with (
        mock.patch.object(neutron, 'API', Neutron),
        mock.patch.object(report, 'report_client_singleton', Placement),
        mock.patch.object(
            nova_service, 'get_minimum_version_all_cells', return_value=version
        ),
    ):
        request_filter.process_reqspec(context, spec)
        found = nova_utils.resources_from_request_spec(context, spec, Hosts())
    return written(nova_utils.parse.parse_qsl(found.to_querystring(), True))


@functools.cache
def our_conf():
    conf = cfg.ConfigOpts()
    options.register_own_opts(conf)
    conf([], default_config_files=[])
    return conf


def ours(request, index, switches):
    conf = our_conf()
    for name in SWITCHES:
        conf.set_override(name, name in switches, ia_conf.SCHEDULER)
    decision = decide(request, index, chain.as_in_nova(conf))
    return written(asking.first(decision, request, LIMIT).to_queryparams())


@examples(120)
@given(clouds, requests(), st.sets(st.sampled_from(SWITCHES)), st.booleans())
# The requirement of the zone implies that of the tenant.
@example(
    [
        {'filter_tenant_id': 'p1'},
        {'filter_tenant_id': 'p1', 'availability_zone': 'az1'},
    ],
    Request(Flavor('f'), IMAGE, project_id='p1', availability_zone='az1'),
    {'limit_tenants_to_placement_aggregate'},
    False,
)
def test_the_whole_chain_asks_placement_what_nova_asks(
    engine, nova_conf, metadatas, request, switches, forced
):
    """Every query equals Nova's, for random requests and options.

    Where Nova refuses, so do we.
    """
    aggregates = test_in_tree.store_each(engine, metadatas)
    for name in SWITCHES:
        nova_conf.config(group='scheduler', **{name: name in switches})
    try:
        expected = theirs(request, forced)
    except nova_exception.NovaException:
        with pytest.raises((exception.RequestRefused, errors.InvalidRequest)):
            ours(request, AggregateIndex(aggregates), switches)
        return
    assert ours(request, AggregateIndex(aggregates), switches) == expected
