# SPDX-License-Identifier: Apache-2.0
"""What a service remembers of resource providers is what Placement has.

A real Placement, random writes of all kinds by other clients, between the
rounds of a service and before each of its calls. After each round another one,
during which nothing is written, is compared with reading everything. Only what
the documentation says may be seen late.

``RANDOM_ROUNDS`` is the number of rounds, ``RANDOM_SEED`` selects the writes.
"""

import contextlib
import dataclasses
import os
import random

import placement_backup
import pytest
from written_cloud import (
    HOSTS,
    KNOWN,
    TRAITS,
    Cloud,
    amounts,
)

from isolate_aggregates import exception
from isolate_aggregates_tools.cloud.live import provider_memory

ROUNDS = int(os.environ.get('RANDOM_ROUNDS', '25'))
SEED = int(os.environ.get('RANDOM_SEED', '58'))


@pytest.fixture
def cloud(embedded):
    made = Cloud(embedded, random.Random(SEED))
    for _ in range(HOSTS):
        made.host()
    return made


def seen(providers, hidden):
    """Return providers without the traits that may be seen late."""
    return [
        dataclasses.replace(provider, traits=frozenset())
        if provider.uuid in hidden
        else provider
        for provider in providers
    ]


def test_a_round_reads_what_placement_has_whatever_was_written(cloud):
    kinds = set()
    chance = cloud.chance

    def meddle(method, url):
        if chance.random() < 0.1:
            kinds.add(cloud.write())

    for number in range(ROUNDS):
        for _ in range(chance.choice([0, 1, 3])):
            kinds.add(cloud.write())
        if chance.random() < 0.5:
            cloud.calls(meddle)
        found = {p.uuid: p for p in cloud.read(cloud.memory)}
        truth = {p.uuid: p for p in cloud.truth()}
        assert list(found) == list(truth)
        different = {u for u, p in truth.items() if found[u] != p}
        assert different <= cloud.late, (number, different)
        for provider in different:
            # Only what no generation tells, and no summary of its tree.
            late = {'inventories': found[provider].inventories}
            if provider in cloud.hidden():
                late['traits'] = found[provider].traits
            assert found[provider] == dataclasses.replace(
                truth[provider], **late
            )
        capacities = cloud.read_capacities()
        assert capacities == [amounts(provider) for provider in truth.values()]
        hidden = cloud.late & cloud.hidden()
        roots = seen(cloud.read_roots(cloud.memory_of_roots), hidden)
        assert roots == seen(cloud.read_roots(), hidden)
        assert {
            (r.uuid, r.traits, r.aggregates & set(KNOWN)) for r in roots
        } == {
            (p.uuid, p.traits, p.aggregates & set(KNOWN))
            for p in seen(truth.values(), hidden)
            if p.parent is None
        }
        for _ in range(len(truth) - 2 * HOSTS):
            with contextlib.suppress(exception.ServiceError):
                cloud.free()
            with contextlib.suppress(exception.ServiceError):
                cloud.delete()
    assert len(kinds - {None}) >= min(ROUNDS // 4, 10), kinds


@pytest.mark.slow
def test_two_services_at_once_read_the_same(cloud):
    """A round of another service, and a write, in the midst of a round."""
    other = provider_memory.ProviderMemory()
    is_busy = []
    rounds = []

    def meddle(method, url):
        if is_busy or cloud.chance.random() > 0.2:
            return
        is_busy.append(url)
        with contextlib.suppress(exception.ServiceError):
            cloud.write()
            rounds.append(cloud.read(other))
        is_busy.clear()

    for _ in range(3):
        cloud.calls(meddle)
        truth = {p.uuid: p for p in cloud.truth()}
        for memory in (cloud.memory, other):
            found = {p.uuid: p for p in cloud.read(memory)}
            assert list(found) == list(truth)
            different = {u for u, p in truth.items() if found[u] != p}
            assert different <= cloud.late
    assert len(rounds) > 3


def test_an_unchanged_cloud_costs_as_many_calls_as_it_has_aggregates(cloud):
    first = cloud.calls()
    assert first > HOSTS + 2 * len(KNOWN)
    # Three lists, sharing providers twice, candidates of three classes twice,
    # and providers whose turn it is, which is that of few at a time.
    assert cloud.calls() <= 2 * len(KNOWN) + 3 + 2 + 6 + 2 * 4


def test_a_changed_provider_costs_few_calls(cloud):
    cloud.calls()
    steady = cloud.calls()
    cloud.inventories(cloud.listed()[0]['uuid'])
    assert cloud.calls() <= steady + 3 + 4


def test_the_whole_memory_is_read_anew_within_its_rounds(cloud, monkeypatch):
    """What nothing tells is seen late, and no later."""
    monkeypatch.setattr(provider_memory, 'ROUNDS', 10)
    host = cloud.host()
    cloud.largest(host, 1)
    cloud.calls()
    cloud.create_alike(host, 2)

    def seen():
        [found] = [p for p in cloud.read(cloud.memory) if p.uuid == host]
        return found.inventories['VCPU'].max_unit == 2

    seen_in = [seen() for _ in range(10)]
    assert any(seen_in)
    assert seen_in == sorted(seen_in)


def test_what_is_freed_is_seen_though_no_generation_tells(cloud):
    host = cloud.host()
    cloud.largest(host, 4)
    claim = '/allocations/5dde4b13-764a-5a81-93fd-8ecdac212f2f'
    cloud.direct.send(
        'PUT',
        claim,
        {
            'allocations': {host: {'resources': {'VCPU': 3}}},
            'project_id': 'p',
            'user_id': 'u',
            'consumer_generation': None,
        },
    )

    def usages():
        [found] = [p for p in cloud.read(cloud.memory) if p.uuid == host]
        return found.usages

    assert usages() == {'VCPU': 3}
    path = f'/resource_providers/{host}'
    generation = cloud.direct.get(path)['generation']
    cloud.direct.send('DELETE', claim)
    assert cloud.direct.get(path)['generation'] == generation
    assert usages() == {}
    assert list(cloud.read(cloud.memory)) == cloud.truth()


def test_a_restored_database_is_read_anew(cloud):
    """Generations fall, and then rise to those that are known."""
    hosts = [provider['uuid'] for provider in cloud.listed()]
    for host in hosts:
        cloud.largest(host, 1)
    before = placement_backup.keep()
    for host in hosts:
        cloud.largest(host, 2)
    cloud.read(cloud.memory)
    placement_backup.put_back(before)
    # All but the last have what they had in the meantime.
    for host in hosts[:-1]:
        cloud.largest(host, 3)
    assert list(cloud.read(cloud.memory)) == cloud.truth()


def test_capacities_take_a_few_calls_whatever_the_number_of_hosts(cloud):
    for entry in cloud.listed():
        cloud.largest(entry['uuid'], 4)
    cloud.wire.calls.clear()
    cloud.read_capacities()
    calls = [url for _, url in cloud.wire.calls]
    assert sum(url.startswith(cloud.endpoint) for url in calls) <= 4


def test_equal_values_are_kept_once(cloud):
    for entry in cloud.listed():
        cloud.put(entry['uuid'], 'traits', list(TRAITS))
    for _ in range(2):
        cloud.calls()
    kept = {id(known.traits) for known in cloud.memory.known.values()}
    assert len(kept) <= 2


def test_providers_that_are_gone_are_forgotten(cloud):
    cloud.calls()
    gone = cloud.listed()[0]['uuid']
    cloud.direct.send('DELETE', f'/resource_providers/{gone}')
    cloud.calls()
    assert gone not in cloud.memory.known
