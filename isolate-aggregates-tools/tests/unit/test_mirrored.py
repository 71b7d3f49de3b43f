# SPDX-License-Identifier: Apache-2.0
"""The reproductions of Nova's own filters.

That it is what Nova does is shown by tests/nova/test_chain.py.
"""

from mirrors import mirrored
import pytest

from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.filters.constraints import (
    Cause,
    Destination,
    Refuse,
    Require,
)
from isolate_aggregates.request import ComputeHost, Flavor, Image
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.mirrored.chain import MIRRORS
from isolate_aggregates_tools.mirrored.mirror import Remark
from isolate_aggregates_tools.request import (
    Request,
    RequestedNetwork,
)
from isolate_aggregates_tools.request.constraints import (
    ForbidRootTrait,
    InTree,
    RequireRootTrait,
)
from isolate_aggregates_tools.request.constraints import (
    dropped as found,
)
from isolate_aggregates_tools.testing import make_aggregate

ZONE = make_aggregate(
    'zone', {'availability_zone': 'az1'}, availability_zone='az1'
)
# As a cloud file may have it.
WRITTEN = make_aggregate('written', availability_zone='az1')
OWN = make_aggregate('own', {'filter_tenant_id3': 'p1'})
SHARED = make_aggregate('shared', {'filter_tenant_id': 'p1,p2'})
INDEX = AggregateIndex([ZONE, WRITTEN, OWN, SHARED])


def constraints(name, request, index=INDEX, **options):
    return list(mirrored(name, **options)[name](request, index))


def said(name, request, index=INDEX, **options):
    return [one.reason for one in constraints(name, request, index, **options)]


def asked(flavor=None, image=None, **more):
    return Request(
        Flavor('f', extra_specs=flavor or {}),
        None if image is None else Image('i', properties=image),
        **more,
    )


def test_mirrored_filters_have_distinct_names():
    names = [mirror.name for mirror in MIRRORS]
    assert len(names) == len(set(names))


# Placement of requests: zone, tenant, networks and host.


def test_no_host_means_no_constraint():
    assert constraints('requested_host', asked()) == []


def test_a_host_is_its_provider_tree():
    host = ComputeHost('cn1', ('uuid-1',))
    results = constraints('requested_host', asked(requested_host=host))
    assert results == [
        InTree('uuid-1', Cause('requested-host', 'host cn1 was requested'))
    ]


def test_an_unknown_host_is_refused_by_name():
    host = ComputeHost('cn9')
    results = constraints('requested_host', asked(requested_host=host))
    assert results == [
        Refuse(Cause('unknown-host', 'there is no compute host named cn9'))
    ]


def test_an_unknown_host_is_refused_with_a_similar_name():
    host = ComputeHost('win1', suggestion=' (did you mean win2?)')
    [refusal] = constraints('requested_host', asked(requested_host=host))
    assert refusal.reason == (
        'there is no compute host named win1 (did you mean win2?)'
    )


def test_a_host_with_several_nodes_drops_others_after_placement():
    host = ComputeHost('ironic', ('uuid-1', 'uuid-2'))
    [results] = constraints('requested_host', asked(requested_host=host))
    # in_tree takes one.
    assert results.reason == (
        'host ironic, which has 2 compute nodes, was requested; Nova drops '
        'all other hosts after Placement has answered'
    )
    assert results.objection('ironic') == ''
    assert results.objection('cn1') == 'host ironic was requested'


def test_a_zone_is_its_aggregates():
    results = constraints('availability_zone', asked(availability_zone='az1'))
    assert results == [
        Require(
            (ZONE, WRITTEN),
            Cause('requested-zone', 'availability zone az1 was requested'),
        )
    ]


def test_a_zone_without_an_aggregate_is_reported():
    results = constraints('availability_zone', asked(availability_zone='nova'))
    [remark] = results
    assert remark == Remark(
        Cause(
            'zone-without-aggregate',
            'no aggregate has availability zone nova, so Nova requests no '
            "zone; if it is not the default zone, Nova's API refuses new "
            'servers in it',
        )
    )


TENANTS = {'limit_tenants_to_placement_aggregate': True}


def test_a_project_is_limited_to_aggregates_with_its_id():
    results = constraints(
        'tenant_aggregate', asked(project_id='p1'), **TENANTS
    )
    assert results == [
        Require(
            (OWN,),
            Cause('own-aggregates', 'project p1 is limited to its aggregates'),
        )
    ]


def test_a_project_without_an_aggregate_may_be_refused():
    request = asked(project_id='p2')
    assert constraints('tenant_aggregate', request, **TENANTS) == []
    results = constraints(
        'tenant_aggregate',
        request,
        placement_aggregate_required_for_tenants=True,
        **TENANTS,
    )
    assert results == [
        Refuse(
            Cause(
                'no-own-aggregate',
                'project p2 has no aggregate with filter_tenant_id, and '
                '[scheduler] placement_aggregate_required_for_tenants is true',
            )
        )
    ]


def test_a_missing_project_is_reported():
    assert said('tenant_aggregate', asked(), **TENANTS) == [
        'no project was given; Nova limits a project to its aggregates'
    ]


ROUTED = {'query_placement_for_routed_network_aggregates': True}


def test_a_routed_network_is_the_aggregates_of_its_segments():
    networks = (
        RequestedNetwork('network routed', (ZONE.uuid, 'elsewhere')),
        RequestedNetwork('network flat'),
        RequestedNetwork('network dark', None),
        RequestedNetwork('network odd', broken='network odd has no segments'),
    )
    reasons = said('routed_networks', asked(networks=networks), **ROUTED)
    assert reasons == [
        'aggregates elsewhere, zone: network routed is routed, and its '
        'segments are there',
        'the segments of network dark, whose aggregates Nova requires, are '
        'not known',
        'network odd has no segments',
    ]


# What a host has to be able to do.


def test_disabled_compute_services_take_no_servers():
    assert constraints('compute_status', asked()) == [
        ForbidRootTrait(
            'COMPUTE_STATUS_DISABLED',
            Cause(
                'disabled-service',
                'hosts with a disabled compute service take no servers',
            ),
        )
    ]


def test_the_newest_filters_are_those_of_the_release():
    flavor = {'hw:sound_model': 'virtio', 'hw:tpm_version': '2.0'}

    def required(release):
        request = asked(flavor, nova_release=release, owner_nova=True)
        return {
            one.trait
            for rule in mirrored().values()
            for one in rule(request, INDEX)
            if isinstance(one, RequireRootTrait)
        }

    sound = {'COMPUTE_SOUND_MODEL_VIRTIO'}
    tpm = {'COMPUTE_SECURITY_TPM_SECRET_SECURITY_USER'}
    assert required(31) == set()
    assert required(32) == sound
    assert required(33) == sound | tpm
    assert required(34) == sound | tpm | {'OWNER_NOVA'}


def test_an_unknown_model_drops_all_image_traits_as_in_nova():
    image = {'hw_disk_bus': 'virtio', 'hw_vif_model': 'nonesuch'}
    on = {'image_metadata_prefilter': True}
    assert said('image_metadata', asked(image=image), **on) == [
        'the image has hw_vif_model=nonesuch, but there is no trait '
        'COMPUTE_NET_VIF_MODEL_NONESUCH, so Nova requires none of the traits '
        'of this filter'
    ]
    del image['hw_vif_model']
    assert said('image_metadata', asked(image=image), **on) == [
        'the image has hw_disk_bus=virtio, which requires trait '
        'COMPUTE_STORAGE_BUS_VIRTIO on the host'
    ]


def test_an_unknown_disk_format_is_reported():
    on = {'query_placement_for_image_type_support': True}
    assert said('image_type_support', asked(image={}), **on) == [
        'Nova requires a trait for the disk format of the image, which is not '
        'known'
    ]
    volume = asked(image={}, boot_from_volume=True)
    assert said('image_type_support', volume, **on) == []


# What is dropped after Placement has answered.


def dropped(name, request, hosts, index, **options):
    """Return why each host is dropped, of those that are."""
    options = {'enabled_filters': [name], **options}
    destination = Destination()
    for constraint in constraints(name, request, index, **options):
        destination.add(constraint, name)
    return {host: why for host in hosts if (why := found(destination, host))}


def test_a_host_filter_runs_only_if_it_is_enabled():
    assert 'IsolatedHostsFilter' not in mirrored()
    assert 'IsolatedHostsFilter' in mirrored(
        enabled_filters=['IsolatedHostsFilter']
    )


SSD = make_aggregate('ssd', {'ssd': 'true, fast'}, ['cn1', 'cn2'])
SMALL = make_aggregate('small', {'instance_type': 'm1.small, f'}, ['cn2'])
INDEX_OF_SSD = AggregateIndex([SSD])
LARGE = make_aggregate('large', {'instance_type': 'm1.large'}, ['cn3'])


def test_a_flavor_is_limited_to_aggregates_with_its_extra_specs():
    name = 'AggregateInstanceExtraSpecsFilter'
    request = asked({'aggregate_instance_extra_specs:ssd': 'true'})
    hosts = ('cn1', 'cn3')
    index = AggregateIndex([SSD, LARGE])
    assert dropped(name, request, hosts, index) == {
        'cn3': ['in no aggregate with ssd=true']
    }
    # Other scopes are ignored; no scope counts.
    other = asked({'hw:ssd': 'x', 'trait:X': 'required'})
    assert dropped(name, other, hosts, index) == {}
    plain = asked({'ssd': 'slow'})
    assert list(dropped(name, plain, hosts, index)) == ['cn1', 'cn3']


@pytest.mark.parametrize('value', ['>= 2', '>= many', '<or>'])
def test_metadata_that_makes_nova_fail_leaves_no_host(value):
    name = 'AggregateInstanceExtraSpecsFilter'
    reasons = dropped(name, asked({'ssd': value}), ['cn1'], INDEX_OF_SSD)
    assert reasons == {'cn1': [f'in no aggregate with ssd {value}']}


def test_the_zone_of_an_aggregate_is_metadata_of_it():
    name = 'AggregateInstanceExtraSpecsFilter'
    zone = make_aggregate('z', {}, ['cn1'], availability_zone='az1')
    request = asked({'availability_zone': 'az1'})
    reasons = dropped(name, request, ['cn1', 'cn2'], AggregateIndex([zone]))
    assert list(reasons) == ['cn2']


def test_a_flavor_is_limited_to_aggregates_with_its_name():
    name = 'AggregateTypeAffinityFilter'
    index = AggregateIndex([SMALL, LARGE])
    assert dropped(name, asked(), ('cn1', 'cn2', 'cn3'), index) == {
        'cn3': ['in aggregates with instance_type=m1.large, not f']
    }


def test_the_tenant_host_filter_excludes_other_projects():
    name = 'AggregateMultiTenancyIsolation'
    one = make_aggregate('one', {'filter_tenant_id': 'p1'}, ['cn1'])
    two = make_aggregate('two', {'filter_tenant_id_x': 'p2, p3'}, ['cn1'])
    index = AggregateIndex([one, two])
    # Any of the aggregates is enough for it.
    assert dropped(name, asked(project_id='p3'), ('cn1',), index) == {}
    assert dropped(name, asked(project_id='p4'), ('cn1', 'cn2'), index) == {
        'cn1': [
            'reserved for the projects in filter_tenant_id; project p4 is not '
            'one of them'
        ]
    }


def test_the_image_host_filter_excludes_hosts_with_other_values():
    name = 'AggregateImagePropertiesIsolation'
    windows = make_aggregate(
        'win', {'os_distro': 'windows', 'colour': 'red'}, ['cn1']
    )
    index = AggregateIndex([windows])
    image = {'os_distro': 'debian', 'colour': 'blue'}
    why = (
        'in aggregates with os_distro=windows, but the image has '
        'os_distro=debian'
    )
    hosts = ('cn1', 'cn2')
    assert dropped(name, asked(image=image), hosts, index) == {'cn1': [why]}
    # What Nova does not keep, it cannot compare.
    del image['os_distro']
    assert dropped(name, asked(image=image), hosts, index) == {}


def test_isolated_hosts_are_for_isolated_images():
    name = 'IsolatedHostsFilter'
    options = {'isolated_hosts': ['cn1'], 'isolated_images': ['the-id']}
    hosts = ('cn1', 'cn2')
    plain = asked(image={})
    isolated = Request(Flavor('f'), Image('i', id='the-id'))
    assert dropped(name, plain, hosts, INDEX, **options) == {
        'cn1': ['in isolated_hosts, but the image is not in isolated_images']
    }
    assert dropped(name, isolated, hosts, INDEX, **options) == {
        'cn2': ['not in isolated_hosts, but the image is in isolated_images']
    }
    options['restrict_isolated_hosts_to_isolated_images'] = False
    assert dropped(name, plain, hosts, INDEX, **options) == {}


PACKED = 'hw:virtio_packed_ring'


@pytest.mark.parametrize('flavor', ['true', 'false', None])
@pytest.mark.parametrize('image', ['true', 'false', None])
def test_a_feature_is_required_if_flavor_or_image_enable_it(flavor, image):
    request = asked(
        {} if flavor is None else {PACKED: flavor},
        {} if image is None else {PACKED.replace(':', '_'): image},
    )
    if None not in (flavor, image) and flavor != image:
        with pytest.raises(errors.InvalidRequest, match='set both'):
            constraints('packed_virtqueue', request)
    else:
        required = constraints('packed_virtqueue', request)
        assert bool(required) is ('true' in (flavor, image))
