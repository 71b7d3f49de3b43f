# SPDX-License-Identifier: Apache-2.0
"""What is said about whom a repair lets in."""

import dataclasses

from audit_clouds import LICENSED, LOCK, configuration
import os_traits
import pytest

from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates_tools.advice.admitted import openings, sentence
from isolate_aggregates_tools.advice.effects import Effects
from isolate_aggregates_tools.answers import deciding, scope
from isolate_aggregates_tools.answers.requests import Requests
from isolate_aggregates_tools.answers.scope import Asker
from isolate_aggregates_tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates_tools.mirrored import chain
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.repairs.repair import Repair
from isolate_aggregates_tools.testing import (
    make_aggregate,
    make_compute_node,
    make_flavor,
    make_image,
    make_snapshot,
)

WIN = make_aggregate('win', LOCK, ['h1'], id=7)
H1 = make_compute_node('h1', traits=[LICENSED])
H2 = make_compute_node('h2')
PLAIN, KEYED = make_flavor('plain'), make_flavor('keyed', LOCK)
WINDOWS = make_image('windows', LOCK)
DISABLED = os_traits.COMPUTE_STATUS_DISABLED
UNLOCK = commands.unset(WIN, f'trait:{LICENSED}')


def effects(snapshot, conf):
    """Return what says the effects of commands."""
    return Effects(
        snapshot,
        chain.as_in_nova(conf),
        Pipeline(loading.load(conf)),
        Requests(SnapshotCloud(snapshot), conf),
    )


def said(todo, snapshot, **options):
    """Return what is said about commands."""
    conf = configuration(**options)
    [advice] = effects(snapshot, conf).advice([Repair(todo)])
    return advice.text


@pytest.mark.parametrize(
    ('flavors', 'words'),
    [
        ([PLAIN, KEYED], 'lets flavor plain use h1'),
        (
            [PLAIN, make_flavor('other'), KEYED],
            'opens h1 to 2 of 3 flavors: other, plain',
        ),
        # A flavor without the key may be made at any time.
        ([KEYED], 'opens h1 to any flavor without extra specs'),
        ([], 'opens h1 to any flavor without extra specs'),
    ],
)
def test_a_removed_lock_lets_in_each_flavor_without_the_key(flavors, words):
    snapshot = make_snapshot([WIN], [H1, H2], flavors=flavors)
    assert said(UNLOCK, snapshot) == words


def test_what_else_commands_do_stands_before_whom_they_let_in():
    snapshot = make_snapshot([WIN], [H1, H2], flavors=[PLAIN, KEYED])
    effect = effects(snapshot, configuration())
    [advice] = effect.advice([Repair(UNLOCK, note='it takes an hour')])
    assert advice.text == 'it takes an hour; lets flavor plain use h1'


def test_a_lock_that_nothing_enforces_excludes_no_server():
    snapshot = make_snapshot([WIN], [H1, H2], flavors=[PLAIN])
    off = {'enable_isolated_aggregate_filtering': False}
    assert said(UNLOCK, snapshot, **off) == ''


@pytest.mark.parametrize(
    'flavor', [PLAIN, dataclasses.replace(PLAIN, id='')], ids=['id', 'no id']
)
def test_a_key_takes_other_hosts_away(flavor):
    snapshot = make_snapshot([WIN], [H1, H2], flavors=[flavor])
    assert said(commands.grant(flavor, [LICENSED]), snapshot) == (
        'lets flavor plain use h1, but no longer h2'
    )


def test_a_key_opens_what_sync_completes_later():
    snapshot = make_snapshot(
        [WIN], [make_compute_node('h1'), H2], flavors=[PLAIN]
    )
    assert said(commands.grant(PLAIN, [LICENSED]), snapshot).startswith(
        'lets flavor plain use h1'
    )


def test_a_host_without_compute_node_is_open_once_it_has_one():
    aggregate = make_aggregate('win', LOCK, ['h1', 'h3'], id=7)
    snapshot = make_snapshot([aggregate], [H1], flavors=[PLAIN], mirror=False)
    todo = commands.remove_hosts(aggregate, ['h3'])
    assert said(todo, snapshot) == 'lets flavor plain use h3'


def test_the_image_that_is_needed_is_named():
    other = make_aggregate('other', {'trait:CUSTOM_B': 'required'}, ['h1'])
    node = make_compute_node('h1', traits=[LICENSED, 'CUSTOM_B'])
    snapshot = make_snapshot(
        [WIN, other], [node], flavors=[PLAIN], images=[WINDOWS]
    )
    todo = commands.unset(other, 'trait:CUSTOM_B')
    assert said(todo, snapshot) == (
        'lets flavor plain use h1 with image windows'
    )


def test_the_project_that_is_let_in_is_named():
    mine = make_aggregate('mine', {'filter_tenant_id': 'p1'}, ['h1'], id=7)
    snapshot = make_snapshot([mine], [H1, H2], flavors=[PLAIN])
    todo = (commands.set_value(mine, 'filter_tenant_id', 'p1,p2'),)
    filters = ['isolate_aggregates', 'isolate_tenants']
    assert said(todo, snapshot, request_filters=filters) == (
        'lets flavor plain use h1 in project p2'
    )


def test_access_between_two_commands_is_reported():
    snapshot = make_snapshot([WIN], [H1, H2], flavors=[PLAIN, KEYED])
    again = (commands.set_value(WIN, f'trait:{LICENSED}', 'required'),)
    assert said((*UNLOCK, *again), snapshot) == 'lets flavor plain use h1'


def test_a_request_that_is_no_longer_refused_may_use_other_hosts_too():
    bad = make_aggregate('bad', {'gpus': 'many'}, ['h1'], id=7)
    good = make_aggregate('good', {'gpus': '4'}, ['h2'])
    wanting = make_flavor('f', {'aggregate_instance_extra_specs:gpus': '>= 2'})
    snapshot = make_snapshot([bad, good], [H1, H2], flavors=[wanting])
    filters = ['aggregate_instance_extra_specs']
    todo = commands.unset(bad, 'gpus')
    assert said(todo, snapshot, request_filters=filters) == (
        'lets flavor f use h2'
    )


def test_a_repair_without_commands_is_only_a_text():
    conf = configuration()
    shown = effects(make_snapshot(), conf).advice(
        [Repair(text='do it'), Repair()]
    )
    assert [str(one) for one in shown] == ['do it']


def test_what_each_flavor_needs_is_said_of_it_alone():
    # plain needs the image for what keyed may use without.
    other = make_aggregate('other', {'trait:CUSTOM_B': 'required'}, ['h1'])
    node = make_compute_node('h1', traits=[LICENSED, 'CUSTOM_B'])
    snapshot = make_snapshot(
        [WIN, other], [node], flavors=[PLAIN, KEYED], images=[WINDOWS]
    )
    todo = commands.unset(other, 'trait:CUSTOM_B')
    assert said(todo, snapshot) == (
        'opens h1 to flavor keyed; h1 with image windows to flavor plain'
    )


def test_every_combination_of_an_opening_gains_its_hosts():
    gains = {
        Asker('f', 'a', 'p'): frozenset({'h1', 'h2'}),
        Asker('f', 'b', 'q'): frozenset({'h1', 'h2'}),
        Asker('g', None, None): frozenset({'h1'}),
        Asker('g', 'a', None): frozenset({'h1', 'h2'}),
    }
    some = openings(gains)
    assert {
        (flavor, image, project, host)
        for each in some
        for flavor in each.flavors
        for image in each.images or [None]
        for project in each.projects or [None]
        for host in each.hosts
    } == {
        *(('f', 'a', 'p', host) for host in ('h1', 'h2')),
        *(('f', 'b', 'q', host) for host in ('h1', 'h2')),
        ('g', None, None, 'h1'),
        ('g', 'a', None, 'h2'),
    }
    assert sentence(some, 2) == (
        'opens h1, and h2 with image a to flavor g; h[1-2] with image a in '
        'project p, and h[1-2] with image b in project q to flavor f'
    )


def test_what_sync_does_is_worked_out_once(monkeypatch):
    """It is the repair of many findings, and changes no decision."""
    asked = []

    def counting(request, *others):
        asked.append((request.flavor.name, request.project_id))
        return decided(request, *others)

    decided = deciding.decided
    monkeypatch.setattr(deciding, 'decided', counting)
    out = make_compute_node('h1')
    snapshot = make_snapshot([WIN], [out, H2], flavors=[PLAIN, KEYED])
    some = effects(snapshot, configuration())
    repair = Repair(commands.SYNC)
    [first, second] = some.advice([repair, repair])
    assert first == second
    assert first.text
    assert len(asked) == len(set(asked)) == 3


@pytest.mark.parametrize(
    ('change', 'alike'),
    [
        ({'providers': (dataclasses.replace(H1, traits=frozenset()), H2)}, 1),
        ({'traits': frozenset({'CUSTOM_NEW'})}, 1),
        ({'providers': (H1,)}, 0),
        ({'providers': (dataclasses.replace(H1, host='h3'), H2)}, 0),
        ({'providers': (H1, make_compute_node('h2', traits=[DISABLED]))}, 0),
        ({'flavors': (KEYED,)}, 1),
        ({'images': (), 'settings': {('a', 'b'): 1}}, 0),
        ({'aggregates': ()}, 0),
        ({'services': ()}, 0),
    ],
)
def test_requests_are_decided_alike_if_only_flavors_or_placement_differ(
    change, alike
):
    before = make_snapshot([WIN], [H1, H2], flavors=[PLAIN])
    after = dataclasses.replace(before, **change)
    assert scope.decided_alike(before, after) is bool(alike)


def test_nothing_is_lost_that_could_not_be_used_yet():
    """Only sync would give the host its trait."""
    snapshot = make_snapshot(
        [WIN], [make_compute_node('h1'), H2], flavors=[KEYED, PLAIN]
    )
    [key] = KEYED.extra_specs
    text = said(commands.unset(KEYED, key), snapshot)
    assert text == 'lets flavor keyed use h2'
