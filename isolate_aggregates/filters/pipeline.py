# SPDX-License-Identifier: Apache-2.0
"""Runs the request filters over a request.

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

# Is told the name of a filter and for how many seconds it ran.
Timer = Callable[[str, float], None]


@dataclasses.dataclass(frozen=True)
class NamedFilter:
    """A request filter with its name, and what it declares.

    :param name: The name of its entry point.
    :param request_filter: The filter itself.
    :raises FilterError: if it does not keep the contract.
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
        """The image properties that it looks at."""
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
        """Return whether it says that it reads a metadata key."""
        return any(matches(pattern, key) for pattern in self.metadata or ())

    @property
    def key_sources(self) -> frozenset[str]:
        """Where a request may have the keys to its locks."""
        if isinstance(self.request_filter, contract.HasKeySources):
            return frozenset(self.request_filter.KEY_SOURCES)
        return frozenset({'flavor', 'image', 'hint'})

    @property
    def reservation_keys(self) -> contract.ReservationKeys:
        """The keys by which it knows reservations; empty if it does not."""
        if isinstance(self.request_filter, contract.NamesReservations):
            return self.request_filter.RESERVATION_KEYS
        return contract.ReservationKeys()

    @property
    def project_keys(self) -> tuple[str, ...]:
        """How the metadata keys start by which it knows projects."""
        if isinstance(self.request_filter, contract.NamesProjects):
            return tuple(self.request_filter.PROJECT_KEYS)
        return ()

    @property
    def replaces(self) -> frozenset[str]:
        """Filters of Nova, or for Nova, whose work it does."""
        if isinstance(self.request_filter, contract.Replaces):
            return frozenset(self.request_filter.REPLACES)
        return frozenset()

    @functools.cached_property
    def is_mirrored(self) -> bool:
        """Whether it repeats what Nova itself does.

        It sees the whole image: Nova reads properties that no filter declares.
        """
        return isinstance(self.request_filter, MirroringFilter)

    def locks(self, aggregates: AggregateIndex) -> Iterable[Lock]:
        """Return which aggregates the filter forbids together.

        :raises FilterError: if it fails.
        """
        if not isinstance(self.request_filter, contract.HasLocks):
            return ()
        try:
            return tuple(self.request_filter.locks(aggregates))
        except Exception as exc:
            raise exception.FilterError(
                self.name,
                f'failed to name its locks with {type(exc).__name__}: {exc}.',
            ) from exc

    def narrow(
        self,
        destination: Destination,
        request: RequestSpec,
        aggregates: AggregateIndex,
    ) -> None:
        """Add what the filter concludes to a destination.

        :raises FilterError: if it fails or yields something else than
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
    """Request filters in the order in which they run.

    :param filters: The filters by name, or with their names.
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
        """The names of the filters, in the order in which they run."""
        return tuple(one.name for one in self.filters)

    @functools.cached_property
    def image_properties(self) -> Declared:
        """The image properties that the filters look at."""
        return Declared.union(one.image_properties for one in self.filters)

    def locks(self, aggregates: AggregateIndex) -> tuple[Lock, ...]:
        """Return all locks that the filters know of.

        :raises FilterError: if a filter fails.
        """
        return tuple(
            lock for one in self.filters for lock in one.locks(aggregates)
        )

    def evaluate(
        self, request: RequestSpec, aggregates: AggregateIndex
    ) -> Destination:
        """Run every filter and return what they concluded, even a refusal.

        Programs call :func:`isolate_aggregates.decision.decide`, which does.

        :raises RequestRefused: if an image property that a filter declares
            cannot be had.
        :raises FilterError: if a filter fails or yields something else than
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
