# SPDX-License-Identifier: Apache-2.0
"""Loads the request filters and runs them over a request.

A filter that is missing, can not be loaded or breaks its contract is an
error, never a filter less.
"""

from collections.abc import Iterable, Mapping
import dataclasses
from importlib import metadata
import inspect
from typing import Any

from oslo_config import cfg
from stevedore import extension

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import entry_points, exception
from isolate_aggregates.aggregates import AggregateIndex, Lock
from isolate_aggregates.filters.destination import Destination
from isolate_aggregates.request import RequestSpec

NAMESPACE = 'isolate_aggregates.request_filters'


class Pipeline:
    """Request filters in the order in which they run.

    :param filters: The filters by name. Tests give them directly; programs
        use :meth:`from_conf`.
    """

    def __init__(self, filters: Mapping[str, Any]) -> None:
        self._filters = dict(filters)
        for name, request_filter in self._filters.items():
            _verify(name, request_filter)

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> 'Pipeline':
        """Load the filters that the configuration names and enables.

        :param conf: A configuration with our options registered.
        :raises ConfigError: if the configuration can not work.
        :raises FilterError: if a filter is missing or can not be loaded.
        """
        return cls(
            {
                loaded.name: loaded.request_filter
                for loaded in load(conf)
                if loaded.is_enabled(conf)
            }
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the filters, in the order in which they run."""
        return tuple(self._filters)

    def locks(self, aggregates: AggregateIndex) -> tuple[Lock, ...]:
        """Return all locks that the filters know of.

        :param aggregates: The aggregates as of one moment.
        :raises FilterError: if a filter fails.
        """
        return locks(
            (LoadedFilter(name, one) for name, one in self._filters.items()),
            aggregates,
        )

    def evaluate(
        self, request: RequestSpec, aggregates: AggregateIndex
    ) -> Destination:
        """Run every filter and return what they concluded, even a refusal.

        :param request: What is being scheduled.
        :param aggregates: The aggregates as of one moment.
        :raises FilterError: if a filter fails or yields something else than
            constraints.
        """
        destination = Destination()
        self.narrow(destination, request, aggregates)
        return destination

    def narrow(
        self,
        destination: Destination,
        request: RequestSpec,
        aggregates: AggregateIndex,
    ) -> None:
        """Run every filter and add what they conclude to a destination.

        :param destination: The destination, which is changed.
        :param request: What is being scheduled.
        :param aggregates: The aggregates as of one moment.
        :raises FilterError: if a filter fails or yields something else than
            constraints.
        """
        for name, request_filter in self._filters.items():
            try:
                for constraint in request_filter(request, aggregates):
                    destination.add(constraint, name)
            except exception.IsolateAggregatesError:
                raise
            except Exception as exc:
                raise exception.FilterError(
                    name,
                    f'failed with {type(exc).__name__}: {exc}; the request '
                    'can not be judged without it.',
                ) from exc

    def run(
        self, request: RequestSpec, aggregates: AggregateIndex
    ) -> Destination:
        """Run every filter and return where the request may go.

        :param request: What is being scheduled.
        :param aggregates: The aggregates as of one moment.
        :raises RequestRefused: if a filter refuses the request.
        :raises FilterError: if a filter fails or yields something else than
            constraints.
        """
        destination = self.evaluate(request, aggregates)
        destination.check()
        return destination


@dataclasses.dataclass(frozen=True)
class LoadedFilter:
    """A request filter that the configuration names.

    :param name: The name of its entry point.
    :param request_filter: The filter itself.
    :param switch: ``(group, option)`` that switches it on; None if it is
        always on.
    """

    name: str
    request_filter: Any
    switch: tuple[str, str] | None = None

    def is_enabled(self, conf: cfg.ConfigOpts) -> bool:
        """Tell whether the filter is switched on.

        :param conf: A configuration with our options registered.
        :raises FilterError: if nobody registered its switch.
        """
        return not self.switch or bool(_option(self.name, self.switch, conf))


def load(conf: cfg.ConfigOpts) -> list[LoadedFilter]:
    """Return the filters that the configuration names, on or off.

    :param conf: A configuration with our options registered.
    :raises ConfigError: if the configuration can not work.
    :raises FilterError: if a filter is missing, can not be loaded or does not
        keep its contract.
    """
    ia_conf.check(conf)
    loaded = [
        LoadedFilter(
            name,
            _build(name, plugin, conf),
            getattr(plugin, 'ENABLED_BY', None),
        )
        for name, plugin in entry_points.load(
            NAMESPACE,
            conf[ia_conf.GROUP].request_filters,
            exception.FilterError,
        ).items()
    ]
    for one in loaded:
        _verify(one.name, one.request_filter)
    return loaded


def locks(
    filters: Iterable[LoadedFilter], aggregates: AggregateIndex
) -> tuple[Lock, ...]:
    """Return all locks that some filters know of.

    :param filters: The filters, switched on or not.
    :param aggregates: The aggregates as of one moment.
    :raises FilterError: if a filter fails.
    """
    found: list[Lock] = []
    for loaded in filters:
        own = getattr(loaded.request_filter, 'locks', None)
        if own is None:
            continue
        try:
            found.extend(own(aggregates))
        except Exception as exc:
            raise exception.FilterError(
                loaded.name,
                f'failed to name its locks with {type(exc).__name__}: {exc}.',
            ) from exc
    return tuple(found)


@dataclasses.dataclass(frozen=True)
class InstalledFilter:
    """A request filter that some installed package offers.

    :param name: The name of its entry point.
    :param origin: The package and the class it comes from.
    :param enabled: Whether it runs.
    :param note: Its place in the order, or why it does not run.
    """

    name: str
    origin: str
    enabled: bool
    note: str


def installed_filters(conf: cfg.ConfigOpts) -> list[InstalledFilter]:
    """Return all installed filters: first those that run, in order.

    :param conf: A configuration with our options registered.
    :raises ConfigError: if the configuration can not work.
    :raises FilterError: if a filter that is to run is missing or broken.
    """
    order = conf[ia_conf.GROUP].request_filters
    load(conf)
    found: extension.ExtensionManager[Any] = extension.ExtensionManager(
        NAMESPACE
    )
    rows = [_describe(ext, order, conf) for ext in found]
    place = {name: number for number, name in enumerate(order)}
    return sorted(
        rows,
        key=lambda row: (
            not row.enabled,
            place.get(row.name, len(place)),
            row.name,
        ),
    )


# In quotes: a class that takes no type argument before stevedore 5.5.
def _describe(
    ext: 'extension.Extension[Any]', order: list[str], conf: cfg.ConfigOpts
) -> InstalledFilter:
    origin = ext.entry_point.value
    # stevedore's cache of entry points does not say which package they are of.
    for entry_point in metadata.entry_points(group=NAMESPACE, name=ext.name):
        if entry_point.dist:
            package = entry_point.dist
            origin = f'{package.name} {package.version}, {origin}'
    if ext.name not in order:
        note = f'not named in [{ia_conf.GROUP}] request_filters'
        return InstalledFilter(ext.name, origin, False, note)
    switch = getattr(ext.plugin, 'ENABLED_BY', None)
    if switch and not _option(ext.name, switch, conf):
        note = f'[{switch[0]}] {switch[1]} is false'
        return InstalledFilter(ext.name, origin, False, note)
    note = f'number {order.index(ext.name) + 1} of {len(order)}'
    return InstalledFilter(ext.name, origin, True, note)


def _build(name: str, plugin: Any, conf: cfg.ConfigOpts) -> Any:
    """Make a filter from its class."""
    register = getattr(plugin, 'register_opts', None)
    if register:
        register(conf)
    settings = {
        argument: _frozen(_option(name, option, conf))
        for argument, option in getattr(plugin, 'SETTINGS', {}).items()
    }
    try:
        return plugin(**settings)
    except TypeError as exc:
        raise exception.FilterError(
            name, f'can not be made from its SETTINGS: {exc}.'
        ) from exc


def _option(name: str, option: tuple[str, str], conf: cfg.ConfigOpts) -> Any:
    try:
        return conf[option[0]][option[1]]
    except cfg.NoSuchOptError as exc:
        raise exception.FilterError(
            name,
            f'reads the option [{option[0]}] {option[1]}, which nobody '
            'registered.',
        ) from exc


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _verify(name: str, request_filter: Any) -> None:
    try:
        inspect.signature(request_filter).bind('request', 'aggregates')
    except (TypeError, ValueError) as exc:
        raise exception.FilterError(
            name,
            'is not callable with a request and the aggregates: '
            f'{type(request_filter).__name__}, {exc}.',
        ) from exc
