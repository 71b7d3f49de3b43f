# SPDX-License-Identifier: Apache-2.0
"""Where requests have the keys to locks, by the class of a request filter.

nova-scheduler needs none of this, so it is not part of the contract of a
filter. Register a class of your own with ``sources.register`` and its siblings
if audits should know more of it.
"""

from collections.abc import Sequence
import dataclasses
import functools

from isolate_aggregates.aggregates.domains import TENANTS
from isolate_aggregates.filters.aggregate_instance_extra_specs import (
    AggregateInstanceExtraSpecs,
)
from isolate_aggregates.filters.blazar_reservation import BlazarReservation
from isolate_aggregates.filters.contract import RequestFilter
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates.filters.isolate_tenants import IsolateTenants
from isolate_aggregates.filters.reservation_prefix import ReservationPrefix


@dataclasses.dataclass(frozen=True)
class ReservationKeys:
    """The keys with which requests name reservations.

    The aggregate of a reservation has the same key in its metadata.

    :param required: Prefixes of keys. A request with such a key may use only
        the aggregates that have the same key.
    :param forbidden: Prefixes of keys. A request without such a key may not
        use the aggregates that have one.
    :param owner_key: The metadata key with the id of the owning project.
    """

    required: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    owner_key: str = ''


@functools.singledispatch
def sources(request_filter: RequestFilter) -> Sequence[str]:
    """Return where a request may have the keys to the locks of a filter.

    Some of ``flavor``, ``image`` and ``hint``, or none if the key comes from
    elsewhere, for example from the project.
    """
    return ('flavor', 'image', 'hint')


@sources.register
def _(request_filter: IsolateAggregates) -> Sequence[str]:
    return request_filter.trait_sources


@sources.register
def _(request_filter: IsolateTenants) -> Sequence[str]:
    return ()


@sources.register
def _(request_filter: BlazarReservation) -> Sequence[str]:
    return ('flavor', 'hint')


@sources.register
def _(request_filter: AggregateInstanceExtraSpecs) -> Sequence[str]:
    return ('flavor',)


@sources.register
def _(request_filter: ReservationPrefix) -> Sequence[str]:
    # Keys of tenants count only if the owner is checked.
    is_checked = request_filter.required_prefixes
    return ('flavor', *(request_filter.key_sources if is_checked else ()))


@functools.singledispatch
def of_reservations(request_filter: RequestFilter) -> ReservationKeys:
    """Return the keys that identify reservations for a filter."""
    return ReservationKeys()


@of_reservations.register
def _(request_filter: ReservationPrefix) -> ReservationKeys:
    return ReservationKeys(
        request_filter.required_prefixes,
        request_filter.forbidden_prefixes,
        request_filter.owner_key,
    )


@functools.singledispatch
def of_projects(request_filter: RequestFilter) -> Sequence[str]:
    """Return the prefixes of the metadata keys that name projects."""
    return ()


@of_projects.register
def _(request_filter: IsolateTenants) -> Sequence[str]:
    return (TENANTS,)
