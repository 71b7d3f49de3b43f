# SPDX-License-Identifier: Apache-2.0
"""Keep reserved hosts for the requests that name the reservation.

An operator, or Blazar, tags the aggregate of a reservation with the metadata
key ``reservation:<id>``. A flavor or an image with the same key goes to that
aggregate; a request with no such key stays out of all of them. What an image
or a hint names counts only for a project that owns the reservation. A flavor
of an instance reservation, which asks for the resource class of one, stays out
of no aggregate: only the hosts that have its class can serve it. The flow
is the one in the spec `Support filtering by forbidden aggregate membership
<https://docs.openstack.org/placement/latest/specs/train/implemented/2005297-negative-aggregate-membership.html>`_.
"""

from collections.abc import Iterator
import dataclasses
from typing import ClassVar

from isolate_aggregates.aggregates import AggregateIndex, Lock, grants
from isolate_aggregates.filters.destination import (
    Constraint,
    Forbid,
    Refuse,
    Require,
)
from isolate_aggregates.request import RequestSpec
from isolate_aggregates.request import extra_specs as xs


@dataclasses.dataclass(frozen=True)
class ReservationPrefix:
    """Require the aggregates a request names, forbid those it does not.

    :param required_prefixes: A request key that starts with one of these
        requires an aggregate with that metadata key. Several keys of one
        prefix are alternatives; different prefixes must all be satisfied.
    :param forbidden_prefixes: A request without a key that starts with one of
        these is kept out of every aggregate that has one, in whatever case.
    :param key_sources: Where a request may name a reservation beside its
        flavor: ``image``, ``hint``. Tenants write those, so they count only
        for a project that owns the reservation.
    :param owner_key: The metadata key that holds the id of the owning
        project; further projects are granted by a key that is their id.
    """

    SETTINGS: ClassVar = {
        'required_prefixes': (
            'scheduler',
            'placement_req_required_member_prefix',
        ),
        'forbidden_prefixes': (
            'scheduler',
            'placement_req_default_forbidden_member_prefix',
        ),
        'key_sources': ('isolate_aggregates', 'reservation_key_sources'),
        'owner_key': ('blazar:physical:host', 'blazar_owner'),
    }

    required_prefixes: tuple[str, ...] = ()
    forbidden_prefixes: tuple[str, ...] = ()
    key_sources: tuple[str, ...] = ('image',)
    owner_key: str = 'blazar:owner'

    def __call__(
        self, request: RequestSpec, aggregates: AggregateIndex
    ) -> Iterator[Constraint]:
        """Yield at most one constraint per prefix and list.

        :param request: What is being scheduled.
        :param aggregates: The aggregates as of one moment.
        """
        trusted = set(request.flavor.extra_specs)
        claimed = self._claimed(request) - trusted
        for prefix in self.required_prefixes:
            named = _starting(prefix, trusted | claimed)
            if named:
                mine = _starting(prefix, claimed)
                yield self._require(named, mine, request, aggregates)
        if xs.reservation_classes(request.flavor.extra_specs):
            return
        for prefix in self.forbidden_prefixes:
            # Whose reservation a tenant claims is looked at above, and only
            # for the prefixes that require.
            checked = prefix in self.required_prefixes
            opening = trusted | claimed if checked else trusted
            if not _starting(prefix, opening):
                yield from self._forbid(prefix, request, aggregates)

    def locks(self, aggregates: AggregateIndex) -> Iterator[Lock]:
        """Yield the lock of each prefix that forbids.

        :param aggregates: The aggregates as of one moment.
        """
        for prefix in self.forbidden_prefixes:
            members = aggregates.with_prefix_like(prefix)
            if members:
                yield Lock(prefix, prefix, members)

    def _claimed(self, request: RequestSpec) -> set[str]:
        """Return the keys that a tenant may have written."""
        keys: set[str] = set()
        if 'image' in self.key_sources:
            keys.update(request.image_properties)
        if 'hint' in self.key_sources:
            keys.update(request.scheduler_hints)
        return keys

    def _require(
        self,
        named: list[str],
        claimed: list[str],
        request: RequestSpec,
        aggregates: AggregateIndex,
    ) -> Constraint:
        unknown = [key for key in named if not aggregates.with_key(key)]
        if unknown:
            return Refuse(
                f'no aggregate has the metadata key {", ".join(unknown)}, '
                'which the request names'
            )
        foreign = [
            key
            for key in claimed
            if not any(
                grants(aggregate, request.project_id, self.owner_key)
                for aggregate in aggregates.with_key(key)
            )
        ]
        if foreign:
            who = (
                f'project {request.project_id}'
                if request.project_id
                else 'a request without a project'
            )
            return Refuse(
                f'{", ".join(foreign)} is named by the image or a hint, but '
                f'{who} does not own it'
            )
        found = {
            aggregate.uuid
            for key in named
            for aggregate in aggregates.with_key(key)
            if key not in claimed
            or grants(aggregate, request.project_id, self.owner_key)
        }
        members = tuple(a for a in aggregates if a.uuid in found)
        return Require(members, f'the request names {" or ".join(named)}')

    @staticmethod
    def _forbid(
        prefix: str, request: RequestSpec, aggregates: AggregateIndex
    ) -> Iterator[Forbid]:
        members = aggregates.with_prefix_like(prefix)
        if members:
            names = 'names' if request.image else 'does not name'
            neither = 'neither ' if request.image else ''
            yield Forbid(
                members,
                f'kept for requests that name their {prefix} key, and '
                f'{neither}{request.description} {names} one',
            )


def _starting(prefix: str, keys: set[str]) -> list[str]:
    return sorted(key for key in keys if key.startswith(prefix))
