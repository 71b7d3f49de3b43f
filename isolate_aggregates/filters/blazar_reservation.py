# SPDX-License-Identifier: Apache-2.0
"""Keep Blazar's hosts for the owners of the reservations.

The rules are those of `BlazarFilter
<https://docs.openstack.org/blazar/latest/>`_ of blazar-nova, applied before
the query to Placement instead of host by host after it. Blazar's aggregates
are the free pool, the preemptible aggregate, and those whose availability zone
starts with ``blazar_`` (formerly ``blazar:``).

====  ==========================================  ===========================
rule  request                                     meaning
====  ==========================================  ===========================
1     scheduler hint ``reservation``              only the named aggregates
                                                  that are the project's
2     flavor of an instance reservation           no constraint from here: the
                                                  flavor picks the host
3     preemptible flavor, and those are allowed   only the preemptible
                                                  aggregate
4     any other                                   none of Blazar's aggregates
====  ==========================================  ===========================
"""

from collections.abc import Iterator, Sequence
import dataclasses
from typing import ClassVar

from isolate_aggregates.aggregates import Aggregate, AggregateIndex, Lock
from isolate_aggregates.aggregates.aggregate import ZONE, grants, zone_of
from isolate_aggregates.filters.constraints import (
    Cause,
    Constraint,
    Forbid,
    Refuse,
    Require,
)
from isolate_aggregates.filters.contract import PROJECT_ID, RequestFilter
from isolate_aggregates.request import Flavor, RequestSpec
from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates.text import quoted

_HINT = 'reservation'
_INSTANCE_RESERVATION = 'aggregate_instance_extra_specs:reservation'
_PREEMPTIBLE = 'blazar:preemptible'
_OLD_ZONE_PREFIX = 'blazar:'
_BLAZAR = 'blazar:physical:host'
_NOT_RESERVED = Cause(
    'no-reservation-named',
    'managed by Blazar, and the request names no reservation',
)


@dataclasses.dataclass(frozen=True)
class BlazarReservation(RequestFilter):
    """Require or forbid the aggregates that Blazar manages.

    :param free_pool: The name of the aggregate of hosts that can be reserved.
    :param owner_key: The metadata key with the id of the owning project.
    """

    SETTINGS: ClassVar = {
        'free_pool': (_BLAZAR, 'aggregate_freepool_name'),
        'preemptible_aggregate': (_BLAZAR, 'preemptible_aggregate'),
        'allow_preemptibles': (_BLAZAR, 'allow_preemptibles'),
        'owner_key': (_BLAZAR, 'blazar_owner'),
        'zone_prefix': (_BLAZAR, 'blazar_az_prefix'),
        'reservation_required': ('isolate_aggregates', 'reservation_required'),
    }

    REPLACES: ClassVar = ('BlazarFilter',)
    free_pool: str = 'freepool'
    preemptible_aggregate: str = 'freepool'
    allow_preemptibles: bool = False
    owner_key: str = 'blazar:owner'
    zone_prefix: str = 'blazar_'
    reservation_required: bool = False

    @property
    def METADATA(self) -> Sequence[str]:  # noqa: N802
        """The metadata keys of the zone and of the reservation's owner."""
        return (ZONE, self.owner_key, PROJECT_ID)

    def __call__(
        self, request: RequestSpec, aggregates: AggregateIndex
    ) -> Iterator[Constraint]:
        """Yield the constraints of the rule that applies."""
        names = request.scheduler_hints.get(_HINT, ())
        if names:
            yield self._require(names, request.project_id, aggregates)
        elif _is_instance_reservation(request.flavor):
            return
        elif self.reservation_required:
            yield Refuse(
                Cause(
                    'reservation-required',
                    'every server needs a reservation in this cloud; give '
                    f'the scheduler hint {_HINT}=<id>',
                )
            )
        else:
            yield from self._unreserved(request, aggregates)

    def locks(self, aggregates: AggregateIndex) -> Iterator[Lock]:
        """Yield one lock for all reservations.

        The free pool is not part of the lock; it is forbidden separately.
        """
        reserved = tuple(
            a for a in self._pools(aggregates) if self._has_zone(a)
        )
        if reserved:
            name = f'availability_zone={self.zone_prefix}'
            yield Lock(name, name, reserved)

    def _require(
        self,
        names: tuple[str, ...],
        project_id: str | None,
        aggregates: AggregateIndex,
    ) -> Constraint:
        hint = f'the hint {_HINT}={",".join(map(quoted, names))}'
        pools = [a for a in self._pools(aggregates) if a.name in names]
        if not pools:
            return Refuse(
                Cause(
                    'unknown-reservation',
                    f'{hint} names no existing reservation',
                )
            )
        own = tuple(a for a in pools if grants(a, project_id, self.owner_key))
        if not own:
            return Refuse(
                Cause(
                    'foreign-reservation',
                    f'{hint} names a reservation that project {project_id} '
                    'does not own',
                )
            )
        return Require(own, Cause('named-reservation', hint))

    def _unreserved(
        self, request: RequestSpec, aggregates: AggregateIndex
    ) -> Iterator[Constraint]:
        pools = self._pools(aggregates)
        if self.allow_preemptibles and _is_preemptible(request):
            # An aggregate of a reservation is not for preemptible servers.
            usable = tuple(
                a
                for a in pools
                if a.name == self.preemptible_aggregate
                and not self._has_zone(a)
            )
            yield Require(
                usable,
                Cause(
                    'preemptible-server',
                    'preemptible servers use aggregate '
                    f'{self.preemptible_aggregate}',
                ),
            )
            pools = tuple(a for a in pools if a not in usable)
        if pools:
            yield Forbid(pools, _NOT_RESERVED)

    def _pools(self, aggregates: AggregateIndex) -> tuple[Aggregate, ...]:
        names = (self.free_pool, self.preemptible_aggregate)
        return aggregates.where(
            ('blazar', self.zone_prefix, *names),
            lambda a: self._has_zone(a) or a.name in names,
        )

    def _has_zone(self, aggregate: Aggregate) -> bool:
        zone = zone_of(aggregate)
        # With an empty prefix, every aggregate with a zone matches.
        if not zone:
            return False
        return zone.startswith((self.zone_prefix, _OLD_ZONE_PREFIX))


def _is_instance_reservation(flavor: Flavor) -> bool:
    return _INSTANCE_RESERVATION in flavor.extra_specs or bool(
        xs.reservation_classes(flavor.extra_specs)
    )


def _is_preemptible(request: RequestSpec) -> bool:
    value = request.flavor.extra_specs.get(_PREEMPTIBLE)
    if not value:
        return False
    # Imported late: compiling its patterns takes a tenth of a command's start.
    from oslo_utils import strutils

    return bool(strutils.bool_from_string(value))
