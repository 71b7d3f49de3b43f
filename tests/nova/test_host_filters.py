# SPDX-License-Identifier: Apache-2.0
"""Our mirrors drop the same hosts as Nova's host filters."""

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st
from nova.objects import fields, image_meta
from nova.scheduler.filters import (
    aggregate_image_properties_isolation,
    aggregate_instance_extra_specs,
    aggregate_multitenancy_isolation,
    isolated_hosts_filter,
    type_filter,
)
from oslo_config import cfg
import pytest
import test_chain
import test_query
from thorough import examples

from isolate_aggregates import options as tools_options
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates_tools.mirrored import chain, nova_image
from isolate_aggregates_tools.request import Request, constraints

nova_conf = test_chain.nova_conf

FILTERS = {
    found.__name__: found
    for found in (
        aggregate_instance_extra_specs.AggregateInstanceExtraSpecsFilter,
        aggregate_image_properties_isolation.AggregateImagePropertiesIsolation,
        aggregate_multitenancy_isolation.AggregateMultiTenancyIsolation,
        type_filter.AggregateTypeAffinityFilter,
        isolated_hosts_filter.IsolatedHostsFilter,
    )
}
HOSTS = ['h1', 'h2', 'h3']

specs = st.dictionaries(
    st.sampled_from([
        'ssd', 'aggregate_instance_extra_specs:ssd', 'hw:ssd', 'trait:A',
        'aggregate_instance_extra_specs:a:b', 'group_policy',
    ]),
    st.sampled_from([
        'true', '4', '>= 3', '== 4', '= 4', '!= 4', '<in> ru', 's== true',
        's!= true', '<or> 4 <or> true', '<all-in> t e', 's>= 4', '<=', '',
        ' ',
    ]),
    max_size=2,
)  # fmt: skip
tags = st.dictionaries(
    st.sampled_from([
        'ssd', 'a:b', 'filter_tenant_id', 'filter_tenant_id_2',
        'instance_type', 'os_distro', 'hw_architecture', 'hw_boot_menu',
        'hw_numa_nodes', 'unknown', 'ns.os_distro', 'group_policy',
        'hw_video_ram', 'os_command_line', 'traits_required', 'hw_numa_mem',
    ]),
    st.sampled_from([
        'true', '4', '4, 5', 'p1', 'p1 ,p2', 'f', 'm1.small,f', 'debian',
        'windows,debian', 'x86_64', 'True', 'False', '2', '02', '0', '',
        'none', '[2]', "['HW_A']", "['HW_A', 'HW_B']",
    ]),
    max_size=4,
)  # fmt: skip
properties = st.fixed_dictionaries(
    {},
    optional={
        'os_distro': st.sampled_from(['debian', 'windows']),
        'vmware_ostype': st.just('debian'),
        'hw_architecture': st.sampled_from(['amd64', 'x86_64', 'i386']),
        'hw_boot_menu': st.sampled_from(['true', 'no']),
        'hw_numa_nodes': st.sampled_from(['2', '02', '4', 4]),
        'hw_video_ram': st.sampled_from(['0', '00', ' 2']),
        'os_command_line': st.sampled_from(['0', 'False']),
        'trait:HW_A': st.sampled_from(['required', 'forbidden']),
        'trait:HW_B': st.just('required'),
        'hw_numa_mem.0': st.sampled_from(['2', '02']),
        'hw_numa_mem.2': st.just('2'),
        'unknown': st.just('x'),
    },
)
aggregates = st.lists(
    st.tuples(tags, st.sets(st.sampled_from(HOSTS))), max_size=3
)


def named(filter_name, index, request, options):
    """Return the hosts that our mirror drops."""
    conf = cfg.ConfigOpts()
    tools_options.register_own_opts(conf)
    conf([], default_config_files=[])
    for name, value in {**options, 'enabled_filters': [filter_name]}.items():
        conf.set_override(name, value, tools_options.HOST_FILTERS)
    [found] = [f for f in chain.mirrored(conf) if f.name == filter_name]
    destination = Pipeline([found]).evaluate(request, index)
    return {host for host in HOSTS if constraints.dropped(destination, host)}


@examples(150)
@given(
    st.sampled_from(sorted(FILTERS)),
    aggregates,
    specs,
    properties,
    st.sampled_from(['p1', 'p2', 'p3']),
    st.fixed_dictionaries({
        'isolated_hosts': st.sampled_from([[], ['h1'], ['h1', 'h2']]),
        'isolated_images': st.sampled_from([[], [test_query.UUIDS[0]]]),
        'restrict_isolated_hosts_to_isolated_images': st.booleans(),
        'aggregate_image_properties_isolation_namespace': st.sampled_from(
            [None, 'ns', 'os']
        ),
        'aggregate_image_properties_isolation_separator': st.sampled_from(
            ['.', '_']
        ),
    }),
)  # fmt: skip
def test_our_host_filters_drop_the_same_hosts(
    nova_conf, filter_name, metadatas, extra_specs, image, project, options
):
    nova_conf.config(group='filter_scheduler', **options)
    index = AggregateIndex(
        Aggregate(f'u{number}', f'a{number}', metadata, frozenset(hosts))
        for number, (metadata, hosts) in enumerate(metadatas)
    )
    request = Request(
        Flavor('f', extra_specs=extra_specs),
        Image('i', id=test_query.UUIDS[0], properties=image),
        project_id=project,
        nova_release=test_chain.RELEASE,
    )
    spec = test_query.nova_spec(request)
    spec.project_id = project
    host_filter = FILTERS[filter_name]()
    theirs = set()
    for host in HOSTS:
        state = SimpleNamespace(
            host=host,
            aggregates=[
                SimpleNamespace(metadata=dict(found.metadata))
                for found in index.by_host.get(host, ())
            ],
        )
        try:
            passes = host_filter.host_passes(state, spec)
        except ValueError:
            # A text is not a number, so the request fails.
            passes = False
        if not passes:
            theirs.add(host)
    assert named(filter_name, index, request, options) == theirs


LISTS = (
    fields.ListOfSetsOfIntegersField,
    fields.ListOfIntegersField,
    fields.ListOfStringsField,
    fields.ListOfDictOfNullableStringsField,
)


def test_the_integers_of_nova_are_known():
    fields_of_nova = image_meta.ImageMetaProps.fields
    integers = {
        name
        for name, field in fields_of_nova.items()
        if isinstance(field, fields.IntegerField)
    }
    asked = dict.fromkeys(integers, '02')
    for name in integers:
        assert nova_image.kept(asked, name, test_chain.RELEASE) == '2'


def test_the_properties_that_nova_keeps_are_known():
    known = {
        name
        for name, field in image_meta.ImageMetaProps.fields.items()
        if not isinstance(field, LISTS)
    }
    assert image_meta.ImageMetaProps.fields.keys() - known > nova_image.LISTS
    asked = dict.fromkeys(nova_image.KNOWN, 'x')
    ours = {
        name
        for name in nova_image.KNOWN
        if nova_image.kept(asked, name, test_chain.RELEASE) is not None
    }
    assert ours == known


@pytest.mark.parametrize(
    'properties',
    [
        *(
            {'vmware_adaptertype': adapter}
            for adapter in (
                *('ide', 'busLogic', 'lsiLogic', 'lsiLogicsas'),
                *('paraVirtual', ''),
            )
        ),
        {'vmware_adaptertype': 'ide', 'hw_disk_bus': 'virtio'},
        {'hw_scsi_model': 'Virtio-SCSI'},
        {'os_type': 'Windows'},
    ],
    ids=str,
)
def test_properties_are_stored_as_nova_stores_them(properties):
    theirs = image_meta.ImageMetaProps.from_dict(properties)
    for name in ('hw_disk_bus', 'hw_scsi_model', 'os_type'):
        ours = nova_image.kept(properties, name, test_chain.RELEASE)
        assert ours == theirs.get(name)
