# SPDX-License-Identifier: Apache-2.0
"""What has changed between two snapshots."""

import dataclasses

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.request import Flavor
from isolate_aggregates_tools.cloud import diff
from isolate_aggregates_tools.cloud.diff import Change
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.placement.provider import Inventory, Provider

ROOT = Provider(
    'uuid-root', 'cn1', host='cn1', inventories={'VCPU': Inventory(8)}
)
CHILD = Provider('uuid-child', 'numa', 'uuid-root', usages={'VCPU': 1})
AGGREGATE = Aggregate(
    'uuid-win', 'win', {'trait:X': 'required', 'a': 'b'}, frozenset({'cn1'})
)
BEFORE = Snapshot(
    'before',
    aggregates=(AGGREGATE,),
    providers=(ROOT, CHILD),
    flavors=(Flavor('small', '1', vcpus=1),),
    settings={('scheduler', 'max_placement_results'): 1000},
)


def changed(**fields):
    after = dataclasses.replace(BEFORE, origin='after', **fields)
    return list(diff.changes(BEFORE, after))


def test_equal_snapshots_have_no_changes():
    assert changed() == []


def test_a_change_names_the_object_and_its_field():
    aggregate = dataclasses.replace(
        AGGREGATE, metadata={'trait:X': 'forbidden', 'c': 'd'}
    )
    assert changed(aggregates=(aggregate,)) == [
        Change('aggregate', 'win', 'metadata.a', 'b', None),
        Change('aggregate', 'win', 'metadata.c', None, 'd'),
        Change(
            'aggregate', 'win', 'metadata.trait:X', 'required', 'forbidden'
        ),
    ]


def test_nested_providers_are_compared_one_by_one():
    used = dataclasses.replace(CHILD, usages={'VCPU': 3})
    assert changed(providers=(ROOT, used)) == [
        Change('resource provider', 'numa', 'usages.VCPU', 1, 3)
    ]


def test_a_renamed_object_is_the_same_object():
    renamed = dataclasses.replace(AGGREGATE, name='windows')
    assert changed(aggregates=(renamed,)) == [
        Change('aggregate', 'windows', 'name', 'win', 'windows')
    ]


def test_added_and_removed_objects_are_single_changes():
    [gone] = changed(flavors=())
    assert (gone.kind, gone.name, gone.what, gone.after) == (
        'flavor',
        'small',
        '',
        None,
    )
    [come] = changed(flavors=(*BEFORE.flavors, Flavor('big', '2')))
    assert (come.name, come.before) == ('big', None)


def test_added_and_removed_names_are_changes():
    assert changed(
        traits=frozenset({'CUSTOM_B', 'CUSTOM_A'}),
        resource_classes=frozenset({'CUSTOM_C'}),
    ) == [
        Change('trait', 'CUSTOM_A', '', None, 'CUSTOM_A'),
        Change('trait', 'CUSTOM_B', '', None, 'CUSTOM_B'),
        Change('resource class', 'CUSTOM_C', '', None, 'CUSTOM_C'),
    ]


def test_a_name_that_a_provider_gets_or_loses_exists_as_before():
    idle = dataclasses.replace(
        BEFORE,
        traits=frozenset({'CUSTOM_B'}),
        resource_classes=frozenset({'CUSTOM_C'}),
    )
    root, *others = BEFORE.providers
    used = dataclasses.replace(
        BEFORE,
        providers=(
            dataclasses.replace(
                root,
                traits=root.traits | {'CUSTOM_B'},
                inventories={**root.inventories, 'CUSTOM_C': Inventory(1)},
            ),
            *others,
        ),
    )
    for before, after in ((idle, used), (used, idle)):
        kinds = {change.kind for change in diff.changes(before, after)}
        assert kinds == {'resource provider'}


def test_changed_settings_are_changes():
    assert changed(settings={('scheduler', 'max_placement_results'): 7}) == [
        Change(
            'setting', 'settings', 'scheduler.max_placement_results', 1000, 7
        )
    ]
