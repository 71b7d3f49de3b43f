# SPDX-License-Identifier: Apache-2.0
"""What is read for one request explains it like all that Placement has.

A real Placement with random providers, and random requests. ``RANDOM_ROUNDS``
is the number of clouds, ``RANDOM_SEED`` selects them.
"""

import os
import random

import pytest
from written_cloud import (
    CLASSES,
    HOSTS,
    KNOWN,
    TRAITS,
    UNKNOWN,
    Cloud,
)

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.filters.constraints import (
    Destination,
    Forbid,
    Require,
)
from isolate_aggregates_tools.cloud.live import snapshots
from isolate_aggregates_tools.cloud.live.provider_memory import ProviderMemory
from isolate_aggregates_tools.explain.verdicts import explain
from isolate_aggregates_tools.placement.group import ResourceRequest

ROUNDS = int(os.environ.get('RANDOM_ROUNDS', '10'))
SEED = int(os.environ.get('RANDOM_SEED', '58'))
REQUESTS = 6


@pytest.fixture
def cloud(embedded):
    made = Cloud(embedded, random.Random(SEED))
    for _ in range(HOSTS):
        made.host()
    return made


def a_request(chance):
    """Return a random request; each class is in one group only."""
    request = ResourceRequest(group_policy='none')
    classes = chance.sample(CLASSES, chance.randint(1, len(CLASSES)))
    for name in classes:
        group = request.group(chance.choice(['', '', '1']))
        group.resources[name] = chance.randint(1, 4)
    if '' not in request.groups:
        request.groups[''] = request.groups.pop('1')
        request.groups[''].suffix = ''
    if chance.random() < 0.3:
        request.group().required_traits.add(chance.choice(TRAITS))
    return request


def a_destination(chance):
    destination = Destination()
    for constraint in (Forbid, Require):
        if chance.random() < 0.5:
            some = chance.sample(KNOWN + UNKNOWN, chance.randint(1, 2))
            found = tuple(Aggregate(uuid, f'name-{uuid}') for uuid in some)
            destination.add(constraint(found, 'a cause'), 'a-filter')
    return destination


def answer(snapshot, request, destination):
    """Return everything that is said of a request."""
    try:
        found = explain(snapshot, request, destination)
    except exception.BadQuery as exc:
        return str(exc)
    return (
        [
            (v.host, v.provider, [reason.text for reason in v.reasons])
            for v in found.verdicts
        ],
        [
            ([one.label for one in count.cause], count.excludes, count.only)
            for count in found.counts
        ],
        [[one.label for one in remedy] for remedy in found.remedies],
    )


def places(cloud, memory=None, members_of=None, amounts=None):
    return snapshots.take_places(
        (),
        cloud.nova_client,
        cloud.placement,
        memory=memory,
        members_of=members_of,
        amounts=amounts,
    )


@pytest.mark.slow
def test_it_explains_every_host_like_reading_everything(cloud):
    chance = cloud.chance
    memory = ProviderMemory()
    candidates = 0
    for number in range(ROUNDS):
        for _ in range(5):
            cloud.write()
        whole = places(cloud)
        for _ in range(REQUESTS):
            request, destination = a_request(chance), a_destination(chance)
            part = places(
                cloud,
                memory if chance.random() < 0.5 else None,
                destination.forbidden_aggregates.union(
                    *destination.required_aggregates
                ),
                {n: {a} for n, a in request.merged_resources().items()},
            )
            expected = answer(whole, request, destination)
            assert answer(part, request, destination) == expected, number
            assert not isinstance(expected, str), expected
            candidates += any(not reasons for _, _, reasons in expected[0])
    assert candidates


def test_it_takes_few_calls(cloud):
    for entry in cloud.listed():
        cloud.largest(entry['uuid'], 4)
    cloud.wire.calls.clear()
    places(cloud, None, KNOWN[:1], {'VCPU': {2}})
    calls = [url for _, url in cloud.wire.calls]
    # Three lists, sharing providers, members, amounts, candidates of three
    # classes, names of classes and traits.
    number = sum(url.startswith(cloud.endpoint) for url in calls)
    assert number <= 2 + 1 + 1 + 1 + 3 + 2


def test_a_class_that_does_not_exist_is_not_asked_for(cloud):
    part = places(cloud, None, (), {'CUSTOM_NOWHERE': {1}})
    whole = places(cloud)
    request = ResourceRequest()
    request.group().resources['CUSTOM_NOWHERE'] = 1
    assert answer(part, request, Destination()) == answer(
        whole, request, Destination()
    )
