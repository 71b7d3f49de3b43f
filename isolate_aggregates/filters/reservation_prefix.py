# SPDX-License-Identifier: Apache-2.0
"""Keep reserved hosts for the requests that name the reservation.

An operator, or Blazar, tags the aggregate of a reservation with the metadata
key ``reservation:<id>``. A flavor or an image with the same key goes to that
aggregate; a request with no such key stays out of all of them. The flow is
the one in the spec `Support filtering by forbidden aggregate membership
<https://specs.openstack.org/openstack/placement-specs/specs/train/implemented/2005297-negative-aggregate-membership.html>`_.
"""

from collections.abc import Iterator
import dataclasses
from typing import ClassVar

from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.destination import Constraint, Forbid, Refuse, Require
from isolate_aggregates.request import RequestSpec


@dataclasses.dataclass(frozen=True)
class ReservationPrefix:
    """Require the aggregates a request names, forbid those it does not.

    :param required_prefixes: A request key that starts with one of these
        requires an aggregate with that metadata key. Several keys of one
        prefix are alternatives; different prefixes must all be satisfied.
    :param forbidden_prefixes: A request without a key that starts with one of
        these is kept out of every aggregate that has one.
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
    }

    required_prefixes: tuple[str, ...] = ()
    forbidden_prefixes: tuple[str, ...] = ()

    def __call__(
        self, request: RequestSpec, aggregates: AggregateIndex
    ) -> Iterator[Constraint]:
        """Yield at most one constraint per prefix and list.

        :param request: What is being scheduled.
        :param aggregates: The aggregates as of one moment.
        """
        keys = sorted({*request.flavor.extra_specs, *request.image_properties})
        for prefix in self.required_prefixes:
            named = [key for key in keys if key.startswith(prefix)]
            if named:
                yield self._require(named, aggregates)
        for prefix in self.forbidden_prefixes:
            if not any(key.startswith(prefix) for key in keys):
                yield from self._forbid(prefix, request, aggregates)

    @staticmethod
    def _require(named: list[str], aggregates: AggregateIndex) -> Constraint:
        unknown = [key for key in named if not aggregates.with_key(key)]
        if unknown:
            return Refuse(
                f'no aggregate has the metadata key {", ".join(unknown)}, '
                'which the flavor or the image names'
            )
        # A dict keeps the order and drops an aggregate that has two keys.
        found = dict.fromkeys(
            aggregate.uuid
            for key in named
            for aggregate in aggregates.with_key(key)
        )
        members = tuple(a for a in aggregates if a.uuid in found)
        return Require(members, f'the request names {" or ".join(named)}')

    @staticmethod
    def _forbid(
        prefix: str, request: RequestSpec, aggregates: AggregateIndex
    ) -> Iterator[Forbid]:
        members = aggregates.with_prefix(prefix)
        if members:
            names = 'names' if request.image else 'does not name'
            neither = 'neither ' if request.image else ''
            yield Forbid(
                members,
                f'kept for requests that name their {prefix} key, and '
                f'{neither}{request.description} {names} one',
            )
