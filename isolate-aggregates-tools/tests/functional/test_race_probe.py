# SPDX-License-Identifier: Apache-2.0
"""The probe of Placement leaves nothing, whatever happens.

That it finds something is in ``tests/databases``.
"""

import pytest

from isolate_aggregates import exception
from isolate_aggregates.upgrade_check import race_probe, status


@pytest.fixture(autouse=True)
def _few_claims(monkeypatch):
    # SQLite in memory has only one connection.
    monkeypatch.setattr(race_probe, 'CLAIMS', 1)
    monkeypatch.setattr(race_probe, 'ROUNDS', 2)


def names(placement):
    return [
        *(entry['name'] for entry in placement.resource_providers()),
        *(
            entry['name']
            for entry in placement.get('/resource_classes')['resource_classes']
            if entry['name'].startswith('CUSTOM_')
        ),
    ]


def test_a_placement_that_sells_no_unit_twice(placement):
    before = names(placement)
    assert race_probe.most_sold(placement) == 1
    assert names(placement) == before


def test_what_is_sold_twice_is_found(placement, monkeypatch):
    claim = race_probe._claim

    def shrink_between(client, provider):
        claim(client, provider)
        path = f'/resource_providers/{provider}/inventories'
        now = client.get(path)
        now['inventories'][race_probe._CLASS]['total'] = 2
        client.send('PUT', path, now)
        claim(client, provider)

    monkeypatch.setattr(race_probe, '_claim', shrink_between)
    before = names(placement)
    assert race_probe.most_sold(placement) == 2
    assert names(placement) == before


@pytest.mark.parametrize('error', [KeyboardInterrupt, ValueError])
def test_it_cleans_up_after_an_interruption(placement, monkeypatch, error):
    claim = race_probe._claim

    def interrupted(client, provider):
        claim(client, provider)
        raise error

    monkeypatch.setattr(race_probe, '_claim', interrupted)
    before = names(placement)
    with pytest.raises(error):
        race_probe.most_sold(placement)
    assert names(placement) == before


def test_it_deletes_what_a_killed_run_has_left(placement, monkeypatch):
    before = names(placement)
    with monkeypatch.context() as patch:
        patch.setattr(race_probe, '_clean_up', lambda client: None)
        with race_probe._scratch_provider(placement) as provider:
            race_probe._claim(placement, provider)
    assert names(placement) != before
    assert race_probe.most_sold(placement) == 1
    assert names(placement) == before


@pytest.mark.parametrize(
    ('sold', 'code', 'part'),
    [
        (1, 0, 'This is no proof'),
        (3, 2, 'allocation_conflict_retry_count = 1'),
    ],
)
def test_the_command_names_the_setting(monkeypatch, capsys, sold, code, part):
    monkeypatch.setattr(status, 'placement_client', lambda: None)
    monkeypatch.setattr(race_probe, 'most_sold', lambda client: sold)
    assert status._probe_placement() == code
    assert part in capsys.readouterr().out


def test_a_placement_that_does_not_answer(monkeypatch, capsys):
    def fail(client):
        raise exception.ServiceUnreachable('Placement', None, 'is down.')

    monkeypatch.setattr(status, 'placement_client', lambda: None)
    monkeypatch.setattr(race_probe, 'most_sold', fail)
    assert status._probe_placement() == 255
    assert 'is down' in capsys.readouterr().err
