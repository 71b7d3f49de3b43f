# SPDX-License-Identifier: Apache-2.0
"""Runs the request filters for a request.

A filter that fails or violates its contract is an error; it is never skipped.
"""

from collections.abc import Callable, Iterable, Mapping
import dataclasses
import inspect
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any

from isolate_aggregates import exception
from isolate_aggregates.aggregates import AggregateIndex, Lock
from isolate_aggregates.filters.constraints import Destination
from isolate_aggregates.filters.contract import RequestFilter
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.request import RequestSpec
from isolate_aggregates.request.properties import DeclaredProperties

if TYPE_CHECKING:
    from oslo_config import cfg

# Called with the name of a filter and its run time in seconds.
Timer = Callable[[str, float], None]


def check_class(name: str, plugin: object) -> None:
    """Raise if a plugin is not the class of a filter."""
    if not isinstance(plugin, type) or not issubclass(plugin, RequestFilter):
        raise exception.FilterError(
            name,
            f'is {plugin!r}, which is not a subclass of '
            'isolate_aggregates.filters.RequestFilter.',
        )


def value_of(
    name: str, option: tuple[str, str], conf: 'cfg.ConfigOpts'
) -> Any:
    """Return the value of an option of the filter with a name."""
    group, key = option
    try:
        return conf[group][key]
    except AttributeError as exc:
        raise exception.FilterError(
            name,
            f'reads the option [{group}] {key}, which is not registered.',
        ) from exc


@dataclasses.dataclass(frozen=True)
class LoadedFilter:
    """A request filter with its name and its declarations.

    :param switch: The ``(group, option)`` that enables it; None if it is
        always enabled.
    :param is_mirrored: Whether it reproduces one of Nova's own filters. Such a
        filter sees all image properties, as it does not declare any.
    """

    name: str
    request_filter: RequestFilter
    switch: tuple[str, str] | None = None
    is_mirrored: bool = dataclasses.field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        check_class(self.name, type(self.request_filter))
        self._check_call('__call__', 'request', 'aggregates')
        self._check_call('locks', 'aggregates')
        for member in (
            'IMAGE_PROPERTIES', 'IMAGE_KEYS', 'METADATA', 'REPLACES'
        ):  # fmt: skip
            self._check_names(member)

    @property
    def image_properties(self) -> DeclaredProperties:
        """The image properties that it reads."""
        keys = frozenset(self.request_filter.IMAGE_KEYS)
        patterns = keys.union(self.request_filter.IMAGE_PROPERTIES)
        return DeclaredProperties(patterns, keys)

    @property
    def metadata(self) -> frozenset[str] | None:
        """The aggregate metadata that it reads; None if not declared."""
        metadata = self.request_filter.METADATA
        return None if metadata is None else frozenset(metadata)

    @property
    def is_own(self) -> bool:
        """Whether it is a filter of this package."""
        package, _, _ = type(self.request_filter).__module__.partition('.')
        return package == 'isolate_aggregates'

    def is_enabled(self, conf: 'cfg.ConfigOpts') -> bool:
        """Return whether the filter is enabled."""
        return not self.switch or bool(value_of(self.name, self.switch, conf))

    def locks(self, aggregates: AggregateIndex) -> tuple[Lock, ...] | None:
        """Return the locks of the filter; None if it does not declare them."""
        try:
            locks = self.request_filter.locks(aggregates)
            return None if locks is None else tuple(locks)
        except BaseException as exc:
            if exception.ends_process(exc):
                raise
            raise exception.FilterError(
                self.name,
                f'failed to return its locks, with {self._described(exc)}.',
            ) from exc

    def narrow(
        self,
        destination: Destination,
        request: RequestSpec,
        aggregates: AggregateIndex,
    ) -> None:
        """Run the filter and add its conclusions to a destination."""
        try:
            for constraint in self.request_filter(request, aggregates):
                destination.add(constraint, self.name)
        except exception.IsolateAggregatesError:
            raise
        # A filter that calls sys.exit() would end the thread of the request,
        # and its server would wait forever.
        except BaseException as exc:
            if exception.ends_process(exc):
                raise
            raise exception.FilterError(
                self.name,
                f'failed with {self._described(exc)}; the request cannot be '
                'evaluated without it.',
            ) from exc

    def _described(self, error: BaseException) -> str:
        """Return an error of the filter with its place in the filter's file.

        The place is missing if the filter yielded something that is not a
        constraint.
        """
        module = sys.modules.get(type(self.request_filter).__module__)
        path = getattr(module, '__file__', None)
        lines = [
            line
            for frame, line in traceback.walk_tb(error.__traceback__)
            if frame.f_code.co_filename == path
        ]
        place = f' ({path}, line {lines[-1]})' if lines else ''
        return f'{type(error).__name__}: {error}{place}'

    def _check_call(self, method: str, *arguments: str) -> None:
        try:
            inspect.signature(getattr(self.request_filter, method)).bind(
                *arguments
            )
        except (TypeError, ValueError) as exc:
            raise exception.FilterError(
                self.name,
                f'has {method}(), which cannot be called with '
                f'({", ".join(arguments)}): {exc}.',
            ) from exc

    def _check_names(self, member: str) -> None:
        names = getattr(self.request_filter, member)
        if member == 'METADATA' and names is None:
            return
        if isinstance(names, str) or not all(
            isinstance(name, str) and name for name in names
        ):
            raise exception.FilterError(
                self.name,
                f'has {member} = {names!r}; it must be a tuple of names.',
            )


def enabled(
    filters: Iterable[LoadedFilter], conf: 'cfg.ConfigOpts'
) -> tuple[LoadedFilter, ...]:
    """Return the filters that are enabled now."""
    return tuple(f for f in filters if f.is_enabled(conf))


class Pipeline:
    """Request filters, in the order in which they run."""

    def __init__(
        self,
        filters: Mapping[str, RequestFilter] | Iterable[LoadedFilter],
        timer: Timer | None = None,
    ) -> None:
        self.filters = (
            tuple(LoadedFilter(*item) for item in filters.items())
            if isinstance(filters, Mapping)
            else tuple(filters)
        )
        self._timer = timer

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the filters, in order."""
        return tuple(f.name for f in self.filters)

    @lazy_property
    def image_properties(self) -> DeclaredProperties:
        """The image properties that the filters read."""
        return DeclaredProperties.union(
            f.image_properties for f in self.filters
        )

    def locks(self, aggregates: AggregateIndex) -> tuple[Lock, ...]:
        """Return the locks of all filters."""
        return tuple(
            lock for f in self.filters for lock in f.locks(aggregates) or ()
        )

    def evaluate(
        self, request: RequestSpec, aggregates: AggregateIndex
    ) -> Destination:
        """Run all filters and return their conclusions, including a refusal.

        Use :func:`isolate_aggregates.decision.decide` instead, which calls
        this.
        """
        destination = Destination()
        declared_request = request.declaring(self.image_properties)
        for named_filter in self.filters:
            visible = request if named_filter.is_mirrored else declared_request
            started_at = time.perf_counter()
            try:
                named_filter.narrow(destination, visible, aggregates)
            finally:
                if self._timer is not None:
                    seconds = time.perf_counter() - started_at
                    self._timer(named_filter.name, seconds)
        return destination
