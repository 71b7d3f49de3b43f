# SPDX-License-Identifier: Apache-2.0
"""Keep reserved hosts for the requests that name the reservation.

An operator or Blazar sets the metadata key ``reservation:<id>`` on the
aggregate of a reservation. A request whose flavor or image has the same key
may use only that aggregate; a request without such a key may use none of these
aggregates. A key in an image or scheduler hint counts only for a project that
owns the reservation. A flavor of an instance reservation requests its resource
class. It is not excluded from any aggregate, because only hosts that have the
class can serve it. The rules are those of the specification `Support filtering
by forbidden aggregate
membership
<https://docs.openstack.org/placement/latest/specs/train/implemented/2005297-negative-aggregate-membership.html>`_.
"""

from collections.abc import Iterable, Iterator, Sequence
import dataclasses
from typing import ClassVar

from isolate_aggregates.aggregates import Aggregate, AggregateIndex, Lock
from isolate_aggregates.aggregates.aggregate import grants
from isolate_aggregates.filters.constraints import (
    Cause,
    Constraint,
    Forbid,
    LazyForbid,
    Refuse,
    Require,
)
from isolate_aggregates.filters.contract import PROJECT_ID, RequestFilter
from isolate_aggregates.request import RequestSpec
from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates.text import lacking, quoted


@dataclasses.dataclass(frozen=True)
class ReservationPrefix(RequestFilter):
    """Require the reservations that a request names, and forbid all others.

    :param required_prefixes: Prefixes of keys. A request with such a key
        requires an aggregate with the same metadata key. Several keys with the
        same prefix are alternatives; different prefixes must all be met.
    :param forbidden_prefixes: Prefixes of keys. A request without such a key
        may not use aggregates with such a metadata key. Upper and lower case
        do not matter.
    :param key_sources: Where a request can name a reservation, in addition to
        its flavor: ``image`` and ``hint``. Tenants control these, so they
        count only for a project that owns the reservation.
    :param owner_key: The metadata key with the id of the owning project. The
        ids of further projects are metadata keys themselves.
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

    @property
    def METADATA(self) -> Sequence[str]:  # noqa: N802
        """The metadata keys of reservations and of their owners."""
        prefixes = (*self.required_prefixes, *self.forbidden_prefixes)
        keys = tuple(f'{prefix}*' for prefix in dict.fromkeys(prefixes))
        return (*keys, self.owner_key, PROJECT_ID)

    @property
    def IMAGE_PROPERTIES(self) -> Sequence[str]:  # noqa: N802
        """The image properties that can name a reservation."""
        return self._image_keys(self.required_prefixes)

    @property
    def IMAGE_KEYS(self) -> Sequence[str]:  # noqa: N802
        """The image properties that can only open locks."""
        return self._image_keys(
            prefix
            for prefix in self.required_prefixes
            if prefix in self.forbidden_prefixes
        )

    def _image_keys(self, prefixes: Iterable[str]) -> tuple[str, ...]:
        if 'image' not in self.key_sources:
            return ()
        return tuple(f'{prefix}*' for prefix in prefixes)

    def __call__(
        self, request: RequestSpec, aggregates: AggregateIndex
    ) -> Iterator[Constraint]:
        """Yield at most one constraint per prefix and list."""
        if not self.required_prefixes and not self.forbidden_prefixes:
            return
        operator_keys = set(request.flavor.extra_specs)
        tenant_keys = self._claimed(request) - operator_keys
        for prefix in self.required_prefixes:
            keys = _starting(prefix, operator_keys | tenant_keys)
            if keys:
                of_tenant = _starting(prefix, tenant_keys)
                yield self._require(keys, of_tenant, request, aggregates)
        if xs.reservation_classes(request.flavor.extra_specs):
            return
        for prefix in self.forbidden_prefixes:
            # The owner was checked above, but only for required prefixes.
            is_checked = prefix in self.required_prefixes
            keys = _starting(
                prefix,
                operator_keys | tenant_keys if is_checked else operator_keys,
            )
            if not keys:
                yield from self._forbid(prefix, request, aggregates)

    def locks(self, aggregates: AggregateIndex) -> Iterator[Lock]:
        """Yield a lock for each forbidden prefix."""
        for prefix in self.forbidden_prefixes:
            members = aggregates.with_prefix_like(prefix)
            if members:
                yield Lock(prefix, prefix, members)

    def _own(
        self, key: str, request: RequestSpec, aggregates: AggregateIndex
    ) -> tuple[Aggregate, ...]:
        """Return the aggregates with a key that the project may use."""
        return tuple(
            aggregate
            for aggregate in aggregates.with_key(key)
            if grants(aggregate, request.project_id, self.owner_key)
        )

    def _claimed(self, request: RequestSpec) -> set[str]:
        """Return the keys from sources that tenants control."""
        keys: set[str] = set()
        if 'image' in self.key_sources:
            keys.update(request.image_properties)
        if 'hint' in self.key_sources:
            keys.update(request.scheduler_hints)
        return keys

    def _require(
        self,
        keys: list[str],
        tenant_keys: list[str],
        request: RequestSpec,
        aggregates: AggregateIndex,
    ) -> Constraint:
        unknown = [key for key in keys if not aggregates.with_key(key)]
        if unknown:
            return Refuse(
                Cause(
                    'unknown-reservation',
                    'no aggregate has the metadata key '
                    f'{", ".join(map(quoted, unknown))}, which the request '
                    'names',
                )
            )
        foreign = [
            key
            for key in tenant_keys
            if not self._own(key, request, aggregates)
        ]
        if foreign:
            requester = (
                f'project {request.project_id}'
                if request.project_id
                else 'a request without a project'
            )
            return Refuse(
                Cause(
                    'foreign-reservation',
                    f'{", ".join(map(quoted, foreign))} is named by the image '
                    f'or a hint, but {requester} does not own it',
                )
            )
        uuids = {
            aggregate.uuid
            for key in keys
            for aggregate in (
                self._own(key, request, aggregates)
                if key in tenant_keys
                else aggregates.with_key(key)
            )
        }
        return Require(
            tuple(a for a in aggregates if a.uuid in uuids),
            Cause(
                'named-reservation', f'the request names {" or ".join(keys)}'
            ),
        )

    def _forbid(
        self,
        prefix: str,
        request: RequestSpec,
        aggregates: AggregateIndex,
    ) -> Iterator[LazyForbid]:
        members = aggregates.with_prefix_like(prefix)
        if not members:
            return
        # Cached: there may be thousands, and they are equal for all requests.
        uuids = aggregates.remember(
            ('uuids with prefix like', prefix),
            lambda: frozenset(aggregate.uuid for aggregate in members),
        )
        image = request.image.name if request.image else None
        cause = Cause(
            'no-reservation-named',
            f'kept for requests that name their {prefix} key, and '
            f'{lacking(request.flavor.name, image, "name")} one',
            (prefix,),
        )
        yield LazyForbid(uuids, lambda: [Forbid(members, cause)])


def _starting(prefix: str, keys: set[str]) -> list[str]:
    return sorted(key for key in keys if key.startswith(prefix))
