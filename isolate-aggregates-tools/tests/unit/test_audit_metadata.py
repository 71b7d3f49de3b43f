# SPDX-License-Identifier: Apache-2.0
"""The audit of what flavors want of the metadata of aggregates."""

import dataclasses

from audit_clouds import (
    configuration,
    findings,
    first,
    kinds,
    lines,
)
from cases import cases
import pytest

from isolate_aggregates_tools.testing import (
    make_aggregate,
    make_compute_node,
    make_flavor,
    make_image,
)

KEY = 'aggregate_instance_extra_specs:ssd'
GPUS = 'aggregate_instance_extra_specs:gpus'
H1 = make_compute_node('h1')
HOST_FILTER = 'AggregateInstanceExtraSpecsFilter'
REQUEST_FILTER = 'aggregate_instance_extra_specs'
BEFORE = configuration(request_filters=['isolate_aggregates', REQUEST_FILTER])
AFTER = configuration(enabled_filters=[HOST_FILTER])
BOTH = configuration(
    request_filters=['isolate_aggregates', REQUEST_FILTER],
    enabled_filters=[HOST_FILTER],
)
# The filters that use it, and the message.
LOOKING = cases(
    ('conf', 'name'),
    {
        'before Placement': (BEFORE, REQUEST_FILTER),
        'after Placement': (AFTER, HOST_FILTER),
        'both': (BOTH, REQUEST_FILTER),
    },
)


def flavor(**extra_specs):
    made = make_flavor('fast', extra_specs)
    return dataclasses.replace(made, id='42')


@LOOKING
def test_a_flavor_that_wants_metadata_of_no_host_is_found(conf, name):
    fast = flavor(**{KEY: 'true'})
    [finding] = findings([], [H1], [fast], conf=conf)
    assert (finding.kind, finding.subject) == (
        'no-host',
        'flavor fast',
    )
    assert finding.problem == (
        'requires hosts in aggregates with ssd=true, but there are none, so '
        f'{name} excludes all hosts'
    )
    assert lines(finding) == [
        f'openstack flavor unset --property {KEY} 42',
        'openstack aggregate set --property ssd=true AGGREGATE, for an '
        'aggregate of the hosts that have it; this lets flavor fast use them',
    ]
    # An aggregate that has it may have no hosts.
    empty = make_aggregate('empty', {'ssd': 'true'})
    assert kinds([empty], [H1], [fast], conf=conf) == ['no-host']
    ssd = make_aggregate('ssd', {'ssd': 'true'}, ['h1'])
    assert kinds([ssd], [H1], [fast], conf=conf) == []


def test_no_aggregate_is_given_a_value_that_nova_splits():
    """An aggregate with this text would have two values, and neither fits."""
    fast = flavor(**{KEY: 'true,false'})
    [finding] = findings([], [H1], [fast], conf=AFTER)
    assert lines(finding) == [f'openstack flavor unset --property {KEY} 42']
    tagged = make_aggregate('tagged', {'ssd': 'true,false'}, ['h1'])
    assert kinds([tagged], [H1], [fast], conf=AFTER) == ['no-host']


def test_without_a_filter_required_metadata_is_not_checked():
    bad = make_aggregate('a', {'gpus': 'many'}, ['h1'])
    wanting = [flavor(**{KEY: 'true'}), flavor(**{GPUS: '>= x', 'gpus': '=2'})]
    assert kinds([bad], [H1], wanting) == []


@LOOKING
def test_hosts_with_one_of_two_required_keys_are_found(conf, name):
    ssd = make_aggregate('ssd', {'ssd': 'true'}, ['h1'])
    gpus = make_aggregate('gpus', {'gpus': '4'}, ['h2'])
    wanting = flavor(**{KEY: 'true', GPUS: '>= 2'})
    nodes = [H1, make_compute_node('h2')]
    [finding] = findings([ssd, gpus], nodes, [wanting], conf=conf)
    assert finding.problem.startswith(
        'requires hosts in aggregates with ssd=true and gpus >= 2, but there '
        'are none'
    )
    # It is not known which of them is wrong.
    assert finding.repairs == ()


@LOOKING
def test_an_extra_spec_that_makes_nova_fail_is_found(conf, name):
    [finding] = findings([], [H1], [flavor(**{GPUS: '>= many'})], conf=conf)
    assert finding.kind == 'extra-spec-not-comparable'
    assert finding.problem == f'has {GPUS}=>= many, and many is not a number'
    assert finding.consequence == f'{name} excludes all hosts for its servers'
    assert first(finding) == f'openstack flavor unset --property {GPUS} 42'


@LOOKING
def test_metadata_that_makes_nova_fail_is_found(conf, name):
    bad = make_aggregate('a', {'gpus': 'many'}, ['h1'], id=7)
    wanting = flavor(**{GPUS: '>= 2'})
    [finding] = findings([bad], [H1], [wanting], conf=conf)
    assert (finding.kind, finding.subject) == (
        'metadata-not-comparable',
        'aggregate a',
    )
    assert finding.problem == (
        'has gpus=many, which is not a number, but is compared with numbers '
        'for flavor fast (gpus >= 2)'
    )
    assert lines(finding) == [
        'openstack aggregate unset --property gpus 7',
        f'openstack flavor unset --property {GPUS} 42',
    ]


X, Y = 'CUSTOM_X', 'CUSTOM_Y'
NEED_X, NEED_Y = {f'trait:{X}': 'required'}, {f'trait:{Y}': 'required'}
H2 = make_compute_node('h2', traits=[X, Y])


@LOOKING
def test_a_flavor_that_wants_only_locked_hosts_is_found(conf, name):
    ssd = make_aggregate('ssd', {'ssd': 'true', **NEED_X, **NEED_Y}, ['h2'])
    wanting = flavor(**{KEY: 'true'}, **NEED_Y)
    other = dataclasses.replace(make_flavor('other', NEED_X | NEED_Y), id='7')
    [finding] = findings([ssd], [H1, H2], [wanting, other], conf=conf)
    assert (finding.kind, finding.subject) == (
        'no-host',
        'flavor fast',
    )
    assert finding.problem == (
        'requires hosts in aggregates with ssd=true, and all of these are '
        'locked; it lacks CUSTOM_X'
    )
    assert first(finding) == (
        'isolate-aggregates key add --flavor=42 --trait CUSTOM_X'
    )


@cases(
    ('more', 'images', 'options'),
    {
        'the flavor has the key': (NEED_X, [], {}),
        'an image has it': (
            {},
            [make_image('i', NEED_X)],
            {'trait_sources': ['flavor', 'image']},
        ),
        'locks have no effect': (
            {},
            [],
            {'enable_isolated_aggregate_filtering': False},
        ),
    },
)
def test_a_flavor_that_can_reach_the_required_hosts_is_accepted(
    more, images, options
):
    ssd = make_aggregate('ssd', {'ssd': 'true', **NEED_X}, ['h2'])
    both = ['isolate_aggregates', REQUEST_FILTER]
    conf = configuration(request_filters=both, **options)
    wanting = flavor(**{KEY: 'true'}, **more)
    findings = kinds([ssd], [H2], [wanting], images, conf=conf)
    assert 'no-host' not in findings


def test_a_flavor_with_other_hosts_is_accepted():
    both = ['isolate_aggregates', REQUEST_FILTER]
    conf = configuration(request_filters=both)
    locked = make_aggregate('ssd', {'ssd': 'true', **NEED_X}, ['h2'])
    ssd = make_aggregate('open', {'ssd': 'true'}, ['h1'])
    wanting = [flavor(**{KEY: 'true'}), make_flavor('x', NEED_X)]
    assert kinds([locked, ssd], [H1, H2], wanting, conf=conf) == []


@LOOKING
def test_metadata_and_what_else_is_requested_exclude_all_hosts(conf, name):
    """Each is possible on some host, and no host has both."""
    ssd = make_aggregate('ssd', {'ssd': 'true'}, ['h2'])
    nodes = [H1, H2]
    wanting = flavor(**{KEY: 'true', f'trait:{X}': 'forbidden'})
    [finding] = findings([ssd], nodes, [wanting], conf=conf)
    assert (finding.kind, finding.subject) == ('no-host', 'flavor fast')
    assert finding.problem == (
        'requires hosts in aggregates with ssd=true, and no host has that '
        'together with what else it requests; it forbids trait '
        'CUSTOM_X'
    )
    assert lines(finding) == [
        f'openstack flavor unset --property {KEY} 42',
        f'openstack flavor unset --property trait:{X} 42',
    ]


def test_what_hosts_with_the_metadata_lack_is_named():
    ssd = make_aggregate('ssd', {'ssd': 'true'}, ['h1'])
    gpu = make_compute_node('h2', inventories={'VGPU': 2, 'VCPU': 8})
    plain = make_compute_node('h1', inventories={'VCPU': 8})
    wanting = make_flavor(
        'gpu',
        {KEY: 'true', 'resources:VGPU': '1'},
        vcpus=1,
        ram=0,
        disk=0,
    )
    [finding] = findings([ssd], [plain, gpu], [wanting], conf=AFTER)
    assert finding.problem.endswith('what else it requests; it requests VGPU')
    # A full or a locked host is not one that lacks something.
    both = make_aggregate('both', {'ssd': 'true'}, ['h1', 'h2'])
    assert kinds([both], [plain, gpu], [wanting], conf=AFTER) == []


def test_of_hosts_with_the_metadata_those_count_that_have_the_rest():
    """The other one is not locked, but has no room for it at all."""
    ssd = make_aggregate('ssd', {'ssd': 'true'}, ['h1', 'h2'])
    locked = make_aggregate('locked', NEED_X, ['h2'])
    small = make_compute_node('h1', inventories={'VCPU': 2})
    large = make_compute_node('h2', inventories={'VCPU': 8}, traits=[X])
    wanting = make_flavor('f', {KEY: 'true'}, vcpus=4, ram=0, disk=0)
    keyed = make_flavor('x', NEED_X, vcpus=4, ram=0, disk=0)
    [finding] = findings(
        [ssd, locked], [small, large], [wanting, keyed], conf=AFTER
    )
    assert finding.problem.endswith('it lacks CUSTOM_X')


@pytest.mark.parametrize(
    'options',
    [
        {'default_schedule_zone': 'empty'},
        {
            'limit_tenants_to_placement_aggregate': True,
            'placement_aggregate_required_for_tenants': True,
        },
    ],
)
def test_what_no_host_has_is_found_even_if_nobody_may_ask_for_it(options):
    large = make_flavor('large', {'resources:CUSTOM_GPU': '1'})
    conf = configuration(**options)
    found = findings([], [H1], [large], conf=conf)
    [problem] = [each.problem for each in found if each.kind == 'no-host']
    assert problem == 'requests CUSTOM_GPU, which no host has'
