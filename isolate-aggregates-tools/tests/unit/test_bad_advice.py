# SPDX-License-Identifier: Apache-2.0
"""Advice that was printed once and was bad: none of it comes back."""

import dataclasses

from audit_clouds import LICENSED, LOCK, configuration, first, lines
import pytest

from isolate_aggregates_tools.advice import request_repairs, trial
from isolate_aggregates_tools.advice.effects import Effects
from isolate_aggregates_tools.audit import AuditedCloud, audit
from isolate_aggregates_tools.diagnosis.near_names import closest, closest_id
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.testing import (
    make_aggregate,
    make_compute_node,
    make_flavor,
    make_provider,
    make_snapshot,
    make_tree,
)

PLAIN = make_flavor('plain', vcpus=1, ram=0, disk=0)
KEYED = make_flavor('keyed', LOCK, vcpus=1, ram=0, disk=0)


def cloud(aggregates, nodes, flavors, mirror=True, **options):
    snapshot = make_snapshot(aggregates, nodes, flavors=flavors, mirror=mirror)
    return AuditedCloud.of(snapshot, configuration(**options))


def printed(audited):
    """Return the findings with the repairs that hold."""
    return trial.held(audited, audit(audited), Effects.of(audited))


def explained(audited, flavor, project=None):
    """Return what is advised for a server without a host."""
    request = audited.requests.new(flavor, None, project)
    return [
        commands.shown(repair.commands) or repair.text
        for repair in request_repairs.mendings(Effects.of(audited), request)
    ]


def test_both_give_the_same_command_for_a_misspelled_trait():
    locked = make_aggregate('win', LOCK, ['h1'], id=7)
    wrong = make_flavor('wrong', {'trait:CUSTOM_LICENCED': 'required'})
    audited = cloud(
        [locked], [make_compute_node('h1', traits=[LICENSED])], [wrong, KEYED]
    )
    [finding] = [f for f in printed(audited) if f.kind == 'no-host']
    assert first(finding) == explained(audited, wrong)[0]
    assert f'set --property trait:{LICENSED}=required' in first(finding)


def test_no_lock_gives_hosts_a_trait_of_nova_compute():
    flavor = make_flavor('secure', {'hw:tpm_version': '2.0'})
    audited = cloud([], [make_compute_node('h1')], [flavor])
    [finding] = printed(audited)
    for said in (lines(finding), explained(audited, flavor)):
        assert any('swtpm_enabled' in each for each in said)
        assert not any(' lock ' in each for each in said)


def test_no_key_takes_the_last_host_from_a_flavor():
    # Each of the devices has one of the traits.
    devices = [
        make_provider(
            f'gpu-{name}', inventories={'VGPU': 1}, traits=[f'CUSTOM_{name}']
        )
        for name in 'AB'
    ]
    node = make_tree(make_compute_node('h1'), *devices)
    other = make_compute_node('h2', traits=['CUSTOM_B'])
    flavor = make_flavor(
        'gpu',
        {'resources1:VGPU': '1', 'trait1:CUSTOM_A': 'required'},
        vcpus=1,
        ram=0,
        disk=0,
    )
    locked = make_aggregate('gpu', {'trait:CUSTOM_B': 'required'}, ['h2'])
    audited = cloud([locked], [node, other], [flavor])
    for finding in printed(audited):
        assert not (first(finding) or '').startswith('isolate-aggregates key')


def test_two_settings_of_one_provider_do_not_undo_each_other():
    traits = ['CUSTOM_A', 'CUSTOM_B']
    locked = [
        make_aggregate(name, {f'trait:{name}': 'required'}, ['h1'], id=number)
        for number, name in enumerate(traits, 1)
    ]
    keyed = make_flavor(
        'f', dict.fromkeys((f'trait:{t}' for t in traits), 'required')
    )
    nodes = [make_compute_node(h, traits=traits) for h in ('h1', 'h2')]
    found = [
        f
        for f in printed(cloud(locked, nodes, [keyed]))
        if f.kind == 'trait-outside'
    ]
    # Each changes one trait, whatever the other one has done before.
    assert {first(each).split()[-1] for each in found} == {*traits}
    for each in found:
        command = first(each).split()
        assert command[1:3] == ['provider', 'unset']
        assert command[4:5] == ['--trait']


def test_no_host_is_named_that_has_no_compute_node():
    locked = make_aggregate('win', LOCK, ['win-1', 'win-2'], id=7)
    node = make_compute_node('win-1', traits=[LICENSED])
    for finding in printed(cloud([locked], [node], [PLAIN], mirror=False)):
        if finding.kind == 'nothing-opens':
            assert 'win-2' not in ' '.join(lines(finding))


def test_no_second_lock_is_dropped():
    tags = {**LOCK, 'filter_tenant_id': 'p1'}
    locked = make_aggregate('win', tags, ['h1'], id=7)
    node = make_compute_node('h1', traits=[LICENSED])
    audited = cloud(
        [locked],
        [node],
        [PLAIN],
        request_filters=['isolate_aggregates', 'isolate_tenants'],
    )
    unset = [
        each
        for each in explained(audited, PLAIN, 'p1')
        if 'aggregate unset' in each
    ]
    assert unset == [
        f'openstack aggregate unset --property trait:{LICENSED} 7'
    ]


def test_nothing_is_advised_in_both_orders():
    locked = [
        make_aggregate(name, {f'trait:{name}': 'required'}, ['h1'], id=number)
        for number, name in enumerate(('CUSTOM_A', 'CUSTOM_B'), 1)
    ]
    flavor = make_flavor('f', {'trait:CUSTOM_NONE': 'required'})
    audited = cloud(locked, [make_compute_node('h1')], [flavor])
    advised = [
        frozenset(each.split(' && ')) for each in explained(audited, flavor)
    ]
    assert len(advised) == len(set(advised))


def test_the_flavor_of_a_reservation_is_not_edited():
    slots = make_provider('blazar_h1', inventories={'CUSTOM_RESERVATION_1': 1})
    node = make_tree(make_compute_node('h1', traits=[LICENSED]), slots)
    flavor = dataclasses.replace(
        make_flavor('lease', {'resources:CUSTOM_RESERVATION_1': '1'}),
        id='42',
    )
    locked = make_aggregate('win', LOCK, ['h1'], id=7)
    audited = cloud([locked], [node], [flavor])
    said = [
        *explained(audited, flavor),
        *(line for each in printed(audited) for line in lines(each)),
    ]
    assert not any(
        each.startswith(('openstack flavor', 'isolate-aggregates key'))
        for each in said
        if 'FLAVOR' not in each
    )


@pytest.mark.parametrize(
    ('wrong', 'known', 'meant'),
    [
        ('CUSTOM_PCI_10DE_20BA', 'CUSTOM_PCI_10DE_20BB', None),
        ('CUSTOM_UNLICENSED', LICENSED, None),
        ('VCPU', 'PCPU', None),
        ('CUSTOM_BAREMETAL_GP2_SMALL', 'CUSTOM_BAREMETAL_GP2SMALL', True),
        ('True', 'true', True),
        ('rack1', 'rack2', None),
    ],
)
def test_no_other_thing_is_proposed_because_it_looks_alike(
    wrong, known, meant
):
    assert closest(wrong, [known]) == (known if meant else None)


def test_a_short_id_is_never_corrected():
    assert closest_id('reservation:1', ['reservation:2']) is None
    assert closest_id('p1', ['P-1']) == 'P-1'


def test_a_missing_project_is_a_missing_key():
    """Opening a customer's hosts to everybody is not the first advice."""
    theirs = make_aggregate('theirs', {'filter_tenant_id': 'acme'}, ['h1'])
    audited = cloud(
        [theirs],
        [make_compute_node('h1')],
        [PLAIN],
        request_filters=['isolate_tenants'],
    )
    name = 'name the project of the server with --project: project acme gets'
    advice = explained(audited, PLAIN)
    assert advice[0] == f'{name} a host'
    assert not any(name in each for each in explained(audited, PLAIN, 'foo'))
    unlock = commands.unset(theirs, 'filter_tenant_id')
    assert commands.shown(unlock) in advice
    [said] = Effects.of(audited).advice([request_repairs.Repair(unlock)])
    assert said.text == 'lets flavor plain use h1 in every project'


def test_no_project_is_named_that_gets_no_host_either():
    theirs = make_aggregate('theirs', {'filter_tenant_id': 'acme'}, ['h1'])
    audited = cloud(
        [theirs],
        [make_compute_node('h1', usages={'VCPU': 16})],
        [PLAIN],
        request_filters=['isolate_tenants'],
    )
    assert not any('--project' in each for each in explained(audited, PLAIN))
