# SPDX-License-Identifier: Apache-2.0
"""Adds our request filters to those of nova-scheduler."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
import contextlib
import functools
from importlib import metadata

from nova import context as nova_context
from nova import objects
import nova.conf
from nova.scheduler import request_filter
from oslo_config import cfg
from oslo_log import log as logging

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.aggregates import AggregateSource, sources
from isolate_aggregates.aggregates.aggregate import ZONE
from isolate_aggregates.aggregates.cache import IndexCache
from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import LoadedFilter
from isolate_aggregates.nova import candidates, claims, placed, placement
from isolate_aggregates.nova.messages import Observer
from isolate_aggregates.nova.recheck import HostCheck
from isolate_aggregates.nova.runner import Runner
from isolate_aggregates.nova.source import NovaDatabaseSource
from isolate_aggregates.rest import connection
from isolate_aggregates.rest.deadline import Deadline

LOG = logging.getLogger(__name__)

# The configuration of the programs of Nova.
CONF: cfg.ConfigOpts = nova.conf.CONF

_IN_TREE = request_filter.isolate_aggregates

# The default source. It is fast enough to be read for every request, as
# nova-scheduler reads its database for each request anyway.
_DATABASE = 'nova'
_TTL = 30.0

_runner: Runner | None = None

# Nova's function that runs all request filters; None while it is not replaced.
_process: Callable[..., None] | None = None


def install() -> Runner:
    """Add the configured request filters to Nova's list, and return them.

    They are added as one entry at the position of the in-tree filter
    ``isolate_aggregates``, which is removed if one of our filters replaces it.
    The query is made to fit after all entries of the list, by replacing Nova's
    function that runs them. Calling this again, for example for another worker
    in the same process, replaces the previous entry.
    """
    global _runner
    conf = CONF
    ia_conf.register_opts(conf)
    filters = loading.load(conf)
    _read_once(conf)
    in_shadow = shadowed(conf, filters)
    observer = _observer(conf, filters)
    runner = build(
        conf, [each for each in filters if each not in in_shadow], observer
    )
    runner.is_idle = bool(in_shadow) and not runner.filters
    new_list, _runner = _with_ours(runner), runner
    # Replaced atomically, as other threads may iterate over the list.
    request_filter.ALL_REQUEST_FILTERS[:] = new_list
    if in_shadow or conf[ia_conf.GROUP].decisions != 'none':
        _record(conf, filters, in_shadow, observer)
    if runner.is_idle:
        LOG.info(
            'All request filters of isolate-aggregates are in shadow: they '
            'change nothing.'
        )
        return runner
    _wrap()
    if conf[ia_conf.GROUP].check_claims:
        claims.install()
    placed.install(runner.placed)
    LOG.info(
        'Request filters of isolate-aggregates: %s',
        ', '.join(
            _state(loaded_filter, conf) for loaded_filter in runner.filters
        )
        or 'none',
    )
    return runner


def _process_and_finish(
    context: nova_context.RequestContext, request_spec: objects.RequestSpec
) -> None:
    """Run all request filters, and then make the query fit.

    Filters of others extend the query too, and may be added to Nova's list at
    any time, so its length is known only after all of them.
    """
    assert _process is not None
    _process(context, request_spec)
    # Another worker may have installed its own meanwhile.
    assert _runner is not None
    _runner.finish(context, request_spec)


def _wrap() -> None:
    """Replace Nova's function that runs all request filters, once."""
    global _process
    if _process is None:
        _process = request_filter.process_reqspec
        request_filter.process_reqspec = _process_and_finish
    candidates.install()


def _with_ours(runner: Runner) -> list[object]:
    """Return Nova's list with a runner in place of the previous one."""
    filters = without_ours()
    if runner.is_idle:
        return filters
    # Another package may have removed the in-tree filter.
    is_there = _IN_TREE in filters
    place = filters.index(_IN_TREE) if is_there else len(filters)
    if is_there and any(
        _IN_TREE.__name__ in loaded_filter.request_filter.REPLACES
        for loaded_filter in runner.filters
    ):
        runner.replaced = [_IN_TREE]
    filters[place : place + len(runner.replaced)] = [runner]
    return filters


def without_ours() -> list[object]:
    """Return Nova's list as it would be without this package."""
    filters: list[object] = []
    for entry in request_filter.ALL_REQUEST_FILTERS:
        filters += entry.replaced if isinstance(entry, Runner) else [entry]
    return filters


def installed() -> Runner | None:
    """Return the result of :func:`install`; None if nothing is installed."""
    return _runner


def source(conf: cfg.ConfigOpts) -> AggregateSource:
    """Return the aggregate source for nova-scheduler."""
    longest = conf[ia_conf.GROUP].aggregate_deadline
    return sources.load(
        conf,
        lambda: connection.from_conf(conf, longest),
        _source_name(conf),
    )


def _source_name(conf: cfg.ConfigOpts) -> str:
    return str(conf[ia_conf.GROUP].aggregate_source or _DATABASE)


def build(
    conf: cfg.ConfigOpts,
    filters: Sequence[LoadedFilter],
    observer: Observer,
) -> Runner:
    """Build the request filters of a worker."""
    section = conf[ia_conf.GROUP]
    read_from = source(conf)
    if isinstance(read_from, NovaDatabaseSource) and not loading.may_read(
        filters, ZONE
    ):
        read_from.leave_out_zones()
    is_database = _source_name(conf) == _DATABASE
    ttl = section.aggregate_cache_ttl
    if ttl is None:
        ttl = 0 if is_database else _TTL
    stale = section.on_source_failure == 'stale'
    make: Callable[..., IndexCache] = IndexCache
    if not is_database:
        # Imported late: Nova's database needs no thread to wait for.
        from isolate_aggregates.aggregates.waiting import WaitingCache

        make = functools.partial(
            WaitingCache, deadline=section.aggregate_deadline
        )
    cache = make(
        read_from.aggregates,
        ttl=ttl,
        max_stale=section.aggregate_max_stale if stale else None,
        on_failure=observer.unreadable,
    )
    members = sources.membership(read_from, cache.get)
    client = functools.cache(placement.impatient_client)
    return Runner(
        conf,
        filters,
        cache,
        placement.shortener(
            conf,
            filters,
            sizes=read_from.sizes
            if isinstance(read_from, NovaDatabaseSource)
            else None,
            warn=True,
        ),
        HostCheck(members, client, section.max_query_length),
        observer,
    )


def shadowed(
    conf: cfg.ConfigOpts, filters: Sequence[LoadedFilter]
) -> list[LoadedFilter]:
    """Return the filters that decide without an effect.

    :raises ConfigError: if ``shadow_filters`` names one that is not loaded.
    """
    section = conf[ia_conf.GROUP]
    names = {each.name for each in filters}
    if unknown := sorted({*section.shadow_filters} - names):
        raise exception.ConfigError(
            f'[{ia_conf.GROUP}] shadow_filters',
            f'names {", ".join(unknown)}, which request_filters does not; '
            'name it there, too.',
        )
    is_all = section.mode == 'shadow'
    return [
        each
        for each in filters
        if is_all or each.name in section.shadow_filters
    ]


def _record(
    conf: cfg.ConfigOpts,
    filters: Sequence[LoadedFilter],
    in_shadow: Sequence[LoadedFilter],
    observer: Observer,
) -> None:
    """Record decisions from now on."""
    # Imported late: without records and shadow nothing of it is loaded.
    from isolate_aggregates.nova import records
    from isolate_aggregates.nova.recorder import Recorder

    section = conf[ia_conf.GROUP]
    shadow = None
    if in_shadow:
        from isolate_aggregates.nova.shadow import Shadow

        shadow = Shadow(
            # Of its refusals and failures nothing may be counted.
            build(conf, in_shadow, Observer()),
            conf.scheduler.max_placement_results,
            replaces=_IN_TREE in request_filter.ALL_REQUEST_FILTERS
            and any(
                _IN_TREE.__name__ in each.request_filter.REPLACES
                for each in in_shadow
            ),
        )
    observer.decided, observer.failed = records.decided, records.failed
    observer.unusable = records.unusable
    records.install(
        Recorder(
            section.decisions,
            frozenset(section.decisions_omit),
            _configuration(conf, filters, in_shadow),
            placement.impatient_client,
            observer,
            shadow,
        )
    )


def _configuration(
    conf: cfg.ConfigOpts,
    filters: Sequence[LoadedFilter],
    in_shadow: Sequence[LoadedFilter],
) -> Mapping[str, object]:
    """Return what records are to be read with."""
    return {
        'version': metadata.version('isolate-aggregates'),
        'mode': conf[ia_conf.GROUP].mode,
        'filters': [
            {
                'name': each.name,
                'enabled': each.is_enabled(conf),
                'shadow': each in in_shadow,
                # An option of another package may be secret.
                'settings': {
                    name: getattr(each.request_filter, name)
                    for name in each.request_filter.SETTINGS
                    if each.is_own
                },
            }
            for each in filters
        ],
    }


def _state(loaded_filter: LoadedFilter, conf: cfg.ConfigOpts) -> str:
    if loaded_filter.switch is None:
        return f'{loaded_filter.name} (on)'
    state = 'on' if loaded_filter.is_enabled(conf) else 'off'
    group, option = loaded_filter.switch
    return f'{loaded_filter.name} ({state} by [{group}] {option})'


def _read_once(conf: cfg.ConfigOpts) -> None:
    """Read the aggregates, so that a failure is logged at startup.

    A failure may be temporary, so it does not prevent the start. Nothing but
    the separate thread of the reader may remain after this: workers are forked
    later, and must not inherit connections.
    """
    read = source(conf).aggregates
    deadline = Deadline('Nova', conf[ia_conf.GROUP].aggregate_deadline)
    first = IndexCache(lambda: deadline.run(read))
    # The failure has been logged.
    with contextlib.suppress(Exception):
        first.get()


def _observer(
    conf: cfg.ConfigOpts, filters: Sequence[LoadedFilter]
) -> Observer:
    """Return the observer for Prometheus metrics, if they are enabled.

    If nothing can be counted, servers are scheduled nevertheless.
    """
    directory = conf[ia_conf.GROUP].scheduler_metrics_directory
    if not directory:
        return Observer()
    names = [loaded_filter.name for loaded_filter in filters]
    try:
        # prometheus-client is an optional dependency.
        from isolate_aggregates.nova import worker_metrics

        return worker_metrics.WorkerMetrics(names, directory)
    except ImportError:
        problem = (
            f'[{ia_conf.GROUP}] scheduler_metrics_directory needs '
            'prometheus-client; install isolate-aggregates[metrics].'
        )
    except exception.ConfigError as exc:
        problem = str(exc)
    LOG.warning('Nothing is counted for Prometheus: %s', problem)
    return Observer()
