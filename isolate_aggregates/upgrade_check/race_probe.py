# SPDX-License-Identifier: Apache-2.0
"""Tries whether Placement sells more than there is.

Claims are written at the same time for one unit of a scratch provider, which
has no parent, aggregate or trait, and a resource class that nothing requests.
"""

from collections.abc import Iterator
from concurrent import futures
import contextlib
import uuid

from isolate_aggregates.placement import PlacementWriter

ROUNDS = 20
CLAIMS = 8

_NAME = 'isolate-aggregates-probe'
_CLASS = 'CUSTOM_ISOLATE_AGGREGATES_PROBE'
# Claims may still be under way after an interruption.
_TRIES = 5


def most_sold(placement: PlacementWriter) -> int:
    """Return how many claims Placement accepts at most for one unit.

    It stops at the first round in which that is more than one. What an earlier
    run has left is deleted first; two must not run at the same time.
    """
    _clean_up(placement)
    try:
        with futures.ThreadPoolExecutor(CLAIMS) as threads:
            for _ in range(ROUNDS):
                with _scratch_provider(placement) as provider:
                    calls = [
                        threads.submit(_claim, placement, provider)
                        for _ in range(CLAIMS)
                    ]
                    for call in calls:
                        call.result()
                    found = _consumers(placement, provider)
                    if len(found) > 1:
                        return len(found)
        return 1
    finally:
        _clean_up(placement)


@contextlib.contextmanager
def _scratch_provider(placement: PlacementWriter) -> Iterator[str]:
    placement.send('PUT', f'/resource_classes/{_CLASS}')
    found = str(uuid.uuid4())
    body = {'name': _NAME, 'uuid': found}
    placement.send('POST', '/resource_providers', body)
    placement.send(
        'PUT',
        f'/resource_providers/{found}/inventories',
        {
            'resource_provider_generation': 0,
            'inventories': {_CLASS: {'total': 1}},
        },
    )
    yield found
    _clean_up(placement)


def _claim(placement: PlacementWriter, provider: str) -> None:
    placement.send(
        'PUT',
        f'/allocations/{uuid.uuid4()}',
        {
            'allocations': {provider: {'resources': {_CLASS: 1}}},
            'project_id': _NAME,
            'user_id': _NAME,
            'consumer_generation': None,
        },
        accept=(204, 409),
    )


def _consumers(placement: PlacementWriter, provider: str) -> list[str]:
    """Return the uuids of what has allocations of a provider."""
    return placement.read(
        f'/resource_providers/{provider}/allocations',
        lambda document: list(document['allocations']),
    )


def _clean_up(placement: PlacementWriter) -> None:
    """Delete all that a probe creates, this one or an earlier one."""
    for provider in placement.resource_providers(name=_NAME):
        path = f'/resource_providers/{provider["uuid"]}'
        for number in range(_TRIES):
            for consumer in _consumers(placement, provider['uuid']):
                placement.send(
                    'DELETE', f'/allocations/{consumer}', accept=(204, 404)
                )
            is_last = number == _TRIES - 1
            accept = (204, 404) if is_last else (204, 404, 409)
            placement.send('DELETE', path, accept=accept)
            if not placement.resource_providers(name=_NAME):
                break
    placement.send('DELETE', f'/resource_classes/{_CLASS}', accept=(204, 404))
