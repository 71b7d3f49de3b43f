# SPDX-License-Identifier: Apache-2.0
"""Runs the request filters for a request.

A filter that fails or violates its contract is an error; it is never skipped.
"""

from collections.abc import Callable, Iterable, Mapping
import dataclasses
import functools
import inspect
import time

from isolate_aggregates import exception
from isolate_aggregates.aggregates import AggregateIndex, Lock
from isolate_aggregates.filters import contract
from isolate_aggregates.filters.contract import RequestFilter
from isolate_aggregates.filters.destination import Destination
from isolate_aggregates.filters.mirrored.mirror import MirroringFilter
from isolate_aggregates.request import RequestSpec
from isolate_aggregates.request.properties import Declared, matches

# Called with the name of a filter and its run time in seconds.
Timer = Callable[[str, float], None]


@dataclasses.dataclass(frozen=True)
class NamedFilter:
    """A request filter with its name and its declarations.

    :param name: The name of its entry point.
    :param request_filter: The filter.
    :raises FilterError: if it violates the contract.
    """

    name: str
    request_filter: RequestFilter

    def __post_init__(self) -> None:
        self._check_call('request', 'aggregates')
        if isinstance(self.request_filter, contract.HasLocks):
            self._check_call('aggregates', of='locks')
        for member in (
            'IMAGE_PROPERTIES', 'IMAGE_KEYS', 'METADATA', 'KEY_SOURCES',
            'PROJECT_KEYS', 'REPLACES'
        ):  # fmt: skip
            self._check_names(member)

    @functools.cached_property
    def image_properties(self) -> Declared:
        """The image properties that it reads."""
        found = self.request_filter
        needed: Iterable[str] = ()
        keys: Iterable[str] = ()
        if isinstance(found, contract.ReadsImageProperties):
            needed = found.IMAGE_PROPERTIES
        if isinstance(found, contract.HasImageKeys):
            keys = found.IMAGE_KEYS
        return Declared(frozenset(needed) | frozenset(keys), frozenset(keys))

    @property
    def metadata(self) -> frozenset[str] | None:
        """The aggregate metadata that it reads; None if not declared."""
        if isinstance(self.request_filter, contract.ReadsMetadata):
            return frozenset(self.request_filter.METADATA)
        return None

    def reads(self, key: str) -> bool:
        """Return whether it declares that it reads a metadata key."""
        return any(matches(pattern, key) for pattern in self.metadata or ())

    @property
    def key_sources(self) -> frozenset[str]:
        """The sources of keys to its locks."""
        if isinstance(self.request_filter, contract.HasKeySources):
            return frozenset(self.request_filter.KEY_SOURCES)
        return frozenset({'flavor', 'image', 'hint'})

    @property
    def reservation_keys(self) -> contract.ReservationKeys:
        """The keys with which requests name reservations; may be empty."""
        if isinstance(self.request_filter, contract.NamesReservations):
            return self.request_filter.RESERVATION_KEYS
        return contract.ReservationKeys()

    @property
    def project_keys(self) -> tuple[str, ...]:
        """The prefixes of the metadata keys that name projects."""
        if isinstance(self.request_filter, contract.NamesProjects):
            return tuple(self.request_filter.PROJECT_KEYS)
        return ()

    @property
    def replaces(self) -> frozenset[str]:
        """The names of filters of Nova or other packages that it replaces."""
        if isinstance(self.request_filter, contract.Replaces):
            return frozenset(self.request_filter.REPLACES)
        return frozenset()

    @functools.cached_property
    def is_mirrored(self) -> bool:
        """Whether it reproduces one of Nova's own filters.

        Such a filter sees all image properties, as it does not declare any.
        """
        return isinstance(self.request_filter, MirroringFilter)

    def locks(self, aggregates: AggregateIndex) -> Iterable[Lock]:
        """Return the sets of aggregates that the filter forbids together.

        :raises FilterError: if the filter fails.
        """
        if not isinstance(self.request_filter, contract.HasLocks):
            return ()
        try:
            return tuple(self.request_filter.locks(aggregates))
        except Exception as exc:
            raise exception.FilterError(
                self.name,
                f'failed to return its locks, with {type(exc).__name__}: '
                f'{exc}.',
            ) from exc

    def narrow(
        self,
        destination: Destination,
        request: RequestSpec,
        aggregates: AggregateIndex,
    ) -> None:
        """Run the filter and add its conclusions to a destination.

        :raises FilterError: if the filter fails or yields anything other than
            constraints.
        """
        try:
            for constraint in self.request_filter(request, aggregates):
                destination.add(constraint, self.name)
        except exception.IsolateAggregatesError:
            raise
        except Exception as exc:
            raise exception.FilterError(
                self.name,
                f'failed with {type(exc).__name__}: {exc}; the request '
                'cannot be judged without it.',
            ) from exc

    def _check_call(self, *arguments: str, of: str = '') -> None:
        called = self.request_filter
        try:
            if of:
                called = getattr(called, of)
            inspect.signature(called).bind(*arguments)
        except (TypeError, ValueError) as exc:
            wanted = ' and '.join(_CALLED_WITH[one] for one in arguments)
            raise exception.FilterError(
                self.name,
                f'{of and f"has {of}(), which "}is not callable with {wanted}'
                f': {type(self.request_filter).__name__}, {exc}.',
            ) from exc

    def _check_names(self, member: str) -> None:
        names = getattr(self.request_filter, member, ())
        if isinstance(names, str) or not all(
            isinstance(name, str) and name for name in names
        ):
            raise exception.FilterError(
                self.name,
                f'has {member} = {names!r}; it must be a tuple of names.',
            )


_CALLED_WITH = {'request': 'a request', 'aggregates': 'the aggregates'}


class Pipeline:
    """Request filters, in the order in which they run.

    :param filters: The filters by name, or as named filters.
    :param timer: Called with the name and the duration of each filter.
    """

    def __init__(
        self,
        filters: Mapping[str, RequestFilter] | Iterable[NamedFilter],
        timer: Timer | None = None,
    ) -> None:
        self.filters = (
            tuple(NamedFilter(name, one) for name, one in filters.items())
            if isinstance(filters, Mapping)
            else tuple(filters)
        )
        self._timer = timer

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the filters, in order."""
        return tuple(one.name for one in self.filters)

    @functools.cached_property
    def image_properties(self) -> Declared:
        """The image properties that the filters read."""
        return Declared.union(one.image_properties for one in self.filters)

    def locks(self, aggregates: AggregateIndex) -> tuple[Lock, ...]:
        """Return the locks of all filters.

        :raises FilterError: if a filter fails.
        """
        return tuple(
            lock for one in self.filters for lock in one.locks(aggregates)
        )

    def evaluate(
        self, request: RequestSpec, aggregates: AggregateIndex
    ) -> Destination:
        """Run all filters and return their conclusions, including a refusal.

        Use :func:`isolate_aggregates.decision.decide` instead, which calls
        this.

        :raises RequestRefused: if an image property that a filter declares is
            not available.
        :raises FilterError: if a filter fails or yields anything other than
            constraints.
        """
        destination = Destination()
        seen = request.declaring(self.image_properties)
        for one in self.filters:
            shown = request if one.is_mirrored else seen
            if self._timer is None:
                one.narrow(destination, shown, aggregates)
                continue
            started_at = time.perf_counter()
            try:
                one.narrow(destination, shown, aggregates)
            finally:
                self._timer(one.name, time.perf_counter() - started_at)
        return destination
