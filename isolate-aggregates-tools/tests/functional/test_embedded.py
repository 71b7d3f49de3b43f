# SPDX-License-Identifier: Apache-2.0
"""The real Placement inside this process."""

from concurrent import futures
import sys
import time
from unittest import mock

import pytest

from isolate_aggregates import exception
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools.cloud.file import load
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.embedded import (
    EmbeddedPlacement,
    embedded_client,
)
from isolate_aggregates_tools.placement.group import ResourceRequest
from isolate_aggregates_tools.placement.microversion import Feature
from isolate_aggregates_tools.placement.provider import Inventory, Provider

UUID = '11111111-1111-4111-8111-111111111111'
TRAIT = '/traits/CUSTOM_LEFT_OVER'


def make_provider(client):
    body = {'name': 'cn1', 'uuid': UUID}
    client.send('POST', '/resource_providers', body)


def names(client):
    return [provider['name'] for provider in client.resource_providers()]


def test_a_new_placement_has_only_standard_traits_and_classes(placement):
    assert placement.resource_providers() == []
    traits = placement.get('/traits')['traits']
    assert 'COMPUTE_STATUS_DISABLED' in traits
    assert not [trait for trait in traits if trait.startswith('CUSTOM_')]
    classes = placement.get('/resource_classes')['resource_classes']
    assert 'VCPU' in [entry['name'] for entry in classes]


def test_every_microversion_used_is_supported(placement):
    [version] = placement.get('/')['versions']
    assert version['min_version'] == '1.0'
    assert int(version['max_version'].partition('.')[2]) >= 39


def test_data_is_kept_while_placement_runs(placement):
    make_provider(placement)
    assert names(placement) == ['cn1']


def test_data_is_kept_for_days(placement):
    """SQLAlchemy replaces a connection that it takes for too old."""
    make_provider(placement)
    later = time.time() + 7 * 24 * 3600
    with mock.patch.object(time, 'time', return_value=later):
        assert names(placement) == ['cn1']


def test_a_placement_opened_after_another_is_empty():
    for _ in range(3):
        with embedded_client() as client:
            assert names(client) == []
            traits = client.get('/traits')['traits']
            assert 'CUSTOM_LEFT_OVER' not in traits
            assert 'COMPUTE_STATUS_DISABLED' in traits
            classes = client.get('/resource_classes')['resource_classes']
            assert classes[0]['name'] == 'VCPU'
            make_provider(client)
            client.send('PUT', TRAIT)
            assert names(client) == ['cn1']


def test_a_second_placement_in_one_process_is_refused(placement):
    make_provider(placement)
    with pytest.raises(tools_errors.EmbeddedPlacementUnavailable) as caught:
        EmbeddedPlacement().open()
    assert str(caught.value) == (
        'An embedded Placement is running already; only one can run in a '
        'process.'
    )
    assert names(placement) == ['cn1'], 'the first one was harmed'


def test_a_failing_user_does_not_leave_placement_open():
    with pytest.raises(ZeroDivisionError), embedded_client():
        raise ZeroDivisionError
    with embedded_client() as client:
        assert names(client) == []


def test_closing_twice_does_not_close_the_next_one():
    first = EmbeddedPlacement()
    first.open()
    first.close()
    with embedded_client() as client:
        first.close()
        make_provider(client)
        assert names(client) == ['cn1']


def test_a_missing_placement_is_refused_with_what_to_install(monkeypatch):
    # Makes the import fail as if the package were not installed.
    monkeypatch.setitem(sys.modules, 'wsgi_intercept', None)
    with pytest.raises(tools_errors.EmbeddedPlacementUnavailable) as caught:
        EmbeddedPlacement().open()
    assert 'install isolate-aggregates-tools[embedded]' in str(caught.value)
    monkeypatch.undo()
    with embedded_client() as client:
        assert names(client) == []


def test_threads_share_one_database(placement):
    make_provider(placement)
    with futures.ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(lambda _: names(placement), range(32)))
    assert seen == [['cn1']] * 32


@pytest.mark.parametrize('where', ['a file', 'the environment'])
def test_the_configuration_of_this_machine_is_ignored(
    monkeypatch, tmp_path, where
):
    """A Placement service on this machine may limit candidates to one."""
    if where == 'a file':
        folder = tmp_path / '.placement'
        folder.mkdir()
        setting = '[placement]\nmax_allocation_candidates = 1\n'
        (folder / 'placement.conf').write_text(setting)
        monkeypatch.setenv('HOME', str(tmp_path))
    else:
        monkeypatch.setenv('OS_PLACEMENT__MAX_ALLOCATION_CANDIDATES', '1')
    request = ResourceRequest()
    request.group().resources = {'VCPU': 1}
    providers = tuple(
        Provider(UUID[:-1] + digit, digit, inventories={'VCPU': Inventory(1)})
        for digit in '123'
    )
    with embedded_client() as client:
        load.into_placement(Snapshot('test', providers=providers), client)
        answer = client.allocation_candidates(request)
    assert len(answer.allocation_requests) == 3


def test_an_unsupported_microversion_is_named_with_the_newest(placement):
    future = Feature(999, 'looking into the future', 'Zebra')
    with pytest.raises(exception.ServiceTooOld) as caught:
        placement.get('/resource_providers', future)
    assert caught.value.needed == '1.999 (Zebra)'
    assert caught.value.maximum == '1.39'
