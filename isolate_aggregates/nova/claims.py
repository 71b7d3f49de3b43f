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
# All claims of a request together wait no longer than this number of seconds:
# the conductor waits a minute for nova-scheduler, which tries host by host.
_LONGEST = 15.0
# The attribute of the context of a request with the end of that time. Nova
# sends only its own.
_UNTIL = '_isolate_aggregates_claims_until'

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
            _withdraw(client, context, consumer_uuid, former)
            return False
        if not oversold:
            return True
        LOG.warning(
            'The claim of a slot for %(consumer)s is withdrawn, because '
            'Placement has accepted more claims than fit: %(oversold)s',
            {'consumer': consumer_uuid, 'oversold': '; '.join(oversold)},
        )
        _withdraw(client, context, consumer_uuid, former)
        wait = random.uniform(0, _WAIT * 2**number)  # noqa: S311
        if number + 1 == _TRIES or wait > _time_left(context):
            break
        time.sleep(wait)
    return False


def _time_left(context: nova_context.RequestContext) -> float:
    """Return for how many seconds the claims of a request may still wait.

    Without any, each other host is tried once.
    """
    until = getattr(context, _UNTIL, None)
    if until is None:
        until = time.monotonic() + _LONGEST
        setattr(context, _UNTIL, until)
    return float(until) - time.monotonic()


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
