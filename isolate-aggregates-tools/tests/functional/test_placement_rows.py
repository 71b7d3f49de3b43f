# SPDX-License-Identifier: Apache-2.0
"""Loading a cloud into Placement's tables is the same as by its API."""

import dataclasses
from unittest import mock

from hypothesis import event, given
import placement_backup
import pytest
import random_clouds
from thorough import examples

from isolate_aggregates_tools import placement_rows
from isolate_aggregates_tools.cloud.file import load
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.embedded import embedded_client
from isolate_aggregates_tools.placement.microversion import Feature


@pytest.fixture(scope='module')
def empty():
    with embedded_client() as client:
        for trait in random_clouds.CUSTOM_TRAITS:
            client.send('PUT', f'/traits/{trait}')
        for resource_class in random_clouds.CUSTOM_CLASSES:
            client.send('PUT', f'/resource_classes/{resource_class}')
        yield client, placement_backup.keep()


# What Placement returns about a provider.
PARTS = ('', '/inventories', '/usages', '/traits', '/aggregates')


def contents(snapshot, placement):
    """Return all that the API returns about a cloud."""
    newest = Feature(39, 'a test', 'Yoga')
    paths = [
        *(
            f'/resource_providers/{provider.uuid}{part}'
            for provider in snapshot.providers
            for part in (*PARTS, '/allocations')
        ),
        *(
            f'/allocations/{placement_rows.consumer(provider)}'
            for provider in snapshot.providers
        ),
        *('/resource_providers', '/traits', '/resource_classes'),
        f'/usages?project_id={placement_rows.OWNER}',
    ]
    return [_in_order(placement.get(path, newest)) for path in paths]


def _in_order(document):
    """Return a document with its lists in a certain order."""
    if isinstance(document, dict):
        return {key: _in_order(value) for key, value in document.items()}
    if isinstance(document, list):
        return sorted(map(_in_order, document), key=repr)
    return document


@pytest.mark.slow
@examples(20)
@given(cloud=random_clouds.clouds())
def test_rows_are_the_same_as_what_the_api_writes(empty, cloud):
    client, backup = empty
    # A cloud file is read without usages of nothing, which the API rejects.
    providers = tuple(
        dataclasses.replace(
            p, usages={rc: used for rc, used in p.usages.items() if used}
        )
        for p in cloud
    )
    snapshot = Snapshot('test', providers=providers)
    found = []
    for is_valid in (True, False):
        placement_backup.put_back(backup)
        with pytest.MonkeyPatch.context() as patch:
            check = mock.Mock(return_value=is_valid)
            patch.setattr(load, '_is_valid_in', mock.Mock(return_value=check))
            load.into_placement(snapshot, client)
        found.append(contents(snapshot, client))
    by_rows, by_api = found
    assert by_rows == by_api
    event('usage' if any(p.usages for p in providers) else 'no usage')
    event('a tree' if any(p.parent for p in providers) else 'no tree')
