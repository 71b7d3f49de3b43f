# SPDX-License-Identifier: Apache-2.0
"""Withdraws claims of slots that Placement should not have accepted.

When claims are written at the same time, Placement may accept more of them
than fit (see "Known Placement bugs" in the documentation). So after each claim
of a slot nova-scheduler reads usage and inventories of the claimed providers.
If they are oversold, it withdraws its claim. The last of several claims sees
all others, so one that remains was not oversold by an earlier one.

Nova calls no plugin after a claim. So the method of its client is wrapped that
nova-scheduler calls for each host. It returns False if the claim failed, and
Nova tries the next host.
"""

from __future__ import annotations

from collections.abc import Mapping
import functools
import math
import random
import time
from typing import Any

from keystoneauth1 import exceptions as ks_exceptions
from nova import context as nova_context
from nova import exception as nova_exception
from nova.scheduler.client import report
from oslo_log import log as logging

from isolate_aggregates import exception
from isolate_aggregates.nova.placement import TIMEOUT
from isolate_aggregates.request.extra_specs import RESERVATION_CLASS
from isolate_aggregates.rest.deadline import Deadline
from isolate_aggregates.text import short

LOG = logging.getLogger(__name__)

_CLAIM = report.SchedulerReportClient.claim_resources

# Claims that withdraw at the same time must not collide again: each waits for
# a random time, at most this number of seconds, doubled for each further try.
_TRIES = 6
_WAIT = 0.2
# The conductor waits a minute for nova-scheduler, which tries host by host.
# So many seconds after the first failure of a request no claim waits for a
# further try, and so many seconds after it none is tried at all: Placement may
# be slow.
_LONGEST = 15.0
_LONGEST_IN_ALL = 30.0
# The attribute of the context of a request with the time of its first failure.
# Nova sends only its own.
_FAILED_AT = '_isolate_aggregates_claim_failed_at'

# What Nova's client raises if it gets no answer, or not the one it expects.
_FAILURES = (
    exception.IsolateAggregatesError,
    ks_exceptions.ClientException,
    nova_exception.NovaException,
    LookupError,
    TypeError,
    ValueError,
)

_deadline = Deadline('Placement', TIMEOUT)


def install() -> None:
    """Check claims of slots from now on."""
    report.SchedulerReportClient.claim_resources = _checked


@functools.wraps(_CLAIM)
def _checked(
    client: report.SchedulerReportClient,
    context: nova_context.RequestContext,
    consumer_uuid: str,
    alloc_request: Mapping[str, Any],
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Claim resources; withdraw the claim if they are oversold.

    :returns: Whether the resources are claimed; None if Placement cannot be
        reached.
    :raises AllocationUpdateFailed: if a claim cannot be withdrawn.
    """
    claim = functools.partial(
        _CLAIM, client, context, consumer_uuid, alloc_request, *args, **kwargs
    )
    if not _takes_slots(alloc_request):
        return claim()
    for number in range(_TRIES):
        lost = _seconds_lost(context)
        if lost > _LONGEST_IN_ALL:
            # Say so once, and not for each of the other hosts.
            if lost < math.inf:
                LOG.warning(
                    'No further slot is claimed for %(consumer)s, because '
                    'claims of its request have failed for %(seconds)d s.',
                    {'consumer': consumer_uuid, 'seconds': lost},
                )
                setattr(context, _FAILED_AT, -math.inf)
            return False
        try:
            former = _deadline.run(
                lambda: client.get_allocs_for_consumer(context, consumer_uuid)
            )
            taken = _taken(alloc_request, former)
        except _FAILURES as exc:
            LOG.warning(
                'No slot is claimed for %(consumer)s, because its allocations '
                'cannot be read from Placement: %(problem)s',
                {'consumer': consumer_uuid, 'problem': short(exc)},
            )
            _note_failure(context)
            return False
        if not (is_claimed := claim()):
            return is_claimed
        try:
            oversold = _deadline.run(
                functools.partial(_oversold, client, context, taken)
            )
        except _FAILURES as exc:
            LOG.warning(
                'The claim of a slot for %(consumer)s is withdrawn, because '
                'it cannot be checked: %(problem)s',
                {'consumer': consumer_uuid, 'problem': short(exc)},
            )
            _note_failure(context)
            _withdraw(client, context, consumer_uuid, former)
            return False
        if not oversold:
            return True
        LOG.warning(
            'The claim of a slot for %(consumer)s is withdrawn, because '
            'Placement has accepted more claims than fit: %(oversold)s',
            {'consumer': consumer_uuid, 'oversold': '; '.join(oversold)},
        )
        _note_failure(context)
        _withdraw(client, context, consumer_uuid, former)
        wait = random.uniform(0, _WAIT * 2**number)  # noqa: S311
        if number + 1 == _TRIES or _seconds_lost(context) + wait > _LONGEST:
            break
        time.sleep(wait)
    return False


def _note_failure(context: nova_context.RequestContext) -> None:
    """Record when a claim of a request failed for the first time."""
    if not hasattr(context, _FAILED_AT):
        setattr(context, _FAILED_AT, time.monotonic())


def _seconds_lost(context: nova_context.RequestContext) -> float:
    """Return how long ago a claim of a request failed; 0 if none has.

    The time before does not count: a request may be for many servers.
    """
    now = time.monotonic()
    return now - float(getattr(context, _FAILED_AT, now))


def _takes_slots(alloc_request: Mapping[str, Any]) -> bool:
    return any(
        name.startswith(RESERVATION_CLASS)
        for allocation in alloc_request['allocations'].values()
        for name in allocation['resources']
    )


def _taken(
    alloc_request: Mapping[str, Any], former: Mapping[str, Any]
) -> dict[str, list[str]]:
    """Return the resource classes that a claim adds, by provider uuid.

    When a server is evacuated, Nova claims nothing from providers of which the
    server already has allocations. These may lawfully be oversold, for example
    because an operator has reduced an inventory.
    """
    return {
        uuid: list(allocation['resources'])
        for uuid, allocation in alloc_request['allocations'].items()
        if uuid not in former['allocations']
    }


def _oversold(
    client: report.SchedulerReportClient,
    context: nova_context.RequestContext,
    taken: Mapping[str, list[str]],
) -> list[str]:
    """Return what is oversold of the claimed resources, as clauses."""
    oversold = []
    for uuid, names in taken.items():
        inventories = _read(client, context, uuid, 'inventories')
        usages = _read(client, context, uuid, 'usages')
        for name in names:
            inventory = inventories[name]
            # As in Placement.
            capacity = (
                inventory['total'] - inventory['reserved']
            ) * inventory['allocation_ratio']
            if usages[name] > capacity:
                oversold.append(
                    f'resource provider {uuid} has {capacity:g} {name}, of '
                    f'which {usages[name]} are used'
                )
    return oversold


def _read(
    client: report.SchedulerReportClient,
    context: nova_context.RequestContext,
    uuid: str,
    what: str,
) -> Any:
    path = f'/resource_providers/{uuid}/{what}'
    answer = client.get(path, global_request_id=context.global_id)
    if answer.status_code != 200:
        raise exception.ServiceUnreachable(
            'Placement', None, f'answered {answer.status_code} to GET {path}.'
        )
    return answer.json()[what]


def _withdraw(
    client: report.SchedulerReportClient,
    context: nova_context.RequestContext,
    consumer_uuid: str,
    former: Mapping[str, Any],
) -> None:
    """Give a consumer the allocations that it had before the claim.

    :raises AllocationUpdateFailed: if that fails. Nova then tries no other
        host, whose resources would be added to those of the claim.
    """
    try:
        if former['allocations']:
            now = client.get_allocs_for_consumer(context, consumer_uuid)
            is_withdrawn = client.put_allocations(
                context,
                consumer_uuid,
                {**now, 'allocations': former['allocations']},
            )
        else:
            # False if there are none; None if Placement cannot be reached.
            is_withdrawn = (
                client.delete_allocation_for_instance(
                    context, consumer_uuid, force=True
                )
                is not None
            )
        problem = 'Placement does not accept it'
    except _FAILURES as exc:
        is_withdrawn, problem = False, short(exc)
    if not is_withdrawn:
        raise nova_exception.AllocationUpdateFailed(
            consumer_uuid=consumer_uuid,
            error=f'the claim of a slot cannot be withdrawn: {problem}',
        )
