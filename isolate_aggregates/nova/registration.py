# SPDX-License-Identifier: Apache-2.0
"""Puts our request filters among those of nova-scheduler."""

from collections.abc import Sequence
import functools

import nova.conf
from nova.scheduler import request_filter
from oslo_config import cfg
from oslo_log import log as logging

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.aggregates import sources, tags
from isolate_aggregates.aggregates.cache import IndexCache
from isolate_aggregates.aggregates.index import AggregateIndex
from isolate_aggregates.filters import loading
from isolate_aggregates.inspect.metrics.observer import Observer
from isolate_aggregates.nova import placement
from isolate_aggregates.nova.forced import ForcedHosts
from isolate_aggregates.nova.runner import Finish, Runner
from isolate_aggregates.rest import connection

LOG = logging.getLogger(__name__)

_IN_TREE = request_filter.isolate_aggregates
# Over an API a second each request adds up; the database is asked each time.
_DEFAULT_TTL = {'nova': 0.0}
_OTHER_TTL = 30.0

_runner: Runner | None = None


def install(conf: cfg.ConfigOpts | None = None) -> Runner:
    """Put the configured request filters among Nova's, and return them.

    They stand, as one, where the in-tree filter ``isolate_aggregates`` was;
    that one leaves if a filter of ours replaces it. Another one at the end of
    the list makes the query fit. Done again, as by the
    next worker in the same process, it replaces what it did before.

    :param conf: The configuration; Nova's own if None.
    :raises IsolateAggregatesError: if the configuration can not work.
    """
    global _runner
    conf = nova.conf.CONF if conf is None else conf
    ia_conf.register_opts(conf)
    runner = _make_runner(conf)
    uninstall()
    filters = request_filter.ALL_REQUEST_FILTERS
    place = filters.index(_IN_TREE)
    replaced = any(_IN_TREE.__name__ in one.replaces for one in runner.filters)
    filters[place : place + replaced] = [runner]
    filters.append(Finish(runner))
    _runner = runner
    LOG.info(
        'Request filters of isolate-aggregates: %s',
        ', '.join(one.name for one in runner.filters) or 'none',
    )
    return runner


def uninstall() -> None:
    """Take our request filters away and put the in-tree one back."""
    global _runner
    filters = request_filter.ALL_REQUEST_FILTERS
    places = [
        place for place, one in enumerate(filters) if isinstance(one, Runner)
    ]
    if places and _IN_TREE not in filters:
        filters.insert(places[0], _IN_TREE)
    filters[:] = [
        one for one in filters if not isinstance(one, (Runner, Finish))
    ]
    if _runner is not None:
        _runner.stop()
    _runner = None


def installed() -> Runner | None:
    """Return what :func:`install` has put in place; None if nothing."""
    return _runner


def _make_runner(conf: cfg.ConfigOpts) -> Runner:
    section = conf[ia_conf.GROUP]
    filters = loading.load(conf)
    source = sources.load(conf, lambda: connection.from_conf(conf))
    ttl = section.aggregate_cache_ttl
    if ttl is None:
        ttl = _DEFAULT_TTL.get(section.aggregate_source, _OTHER_TTL)
    stale = section.on_source_failure == 'stale'
    cache = IndexCache(
        source.aggregates,
        ttl=ttl,
        max_stale=section.aggregate_max_stale if stale else None,
        on_new=_TagWarnings(),
    )
    members = sources.membership(source, cache.get)
    return Runner(
        conf,
        filters,
        cache,
        placement.shortener(conf, filters),
        members,
        ForcedHosts(members, functools.cache(placement.impatient_client)),
        _observer(conf, filters),
    )


def _observer(
    conf: cfg.ConfigOpts, filters: Sequence[loading.LoadedFilter]
) -> Observer:
    """Return what counts for Prometheus, if that is wanted."""
    if not conf[ia_conf.GROUP].scheduler_metrics:
        return Observer()
    # prometheus-client is needed for this alone.
    try:
        from isolate_aggregates.inspect.metrics import scheduler
    except ImportError as exc:
        raise exception.ConfigError(
            f'[{ia_conf.GROUP}] scheduler_metrics',
            'needs prometheus-client; install isolate-aggregates[metrics].',
        ) from exc
    return scheduler.WorkerMetrics(loaded.name for loaded in filters)


class _TagWarnings:
    """Warns of metadata that can not work, once for each."""

    def __init__(self) -> None:
        self._warned: Sequence[str] = ()

    def __call__(self, index: AggregateIndex) -> None:
        """Warn of what is wrong with these aggregates but was not before."""
        found = tuple(tags.problems(index))
        for problem in found:
            if problem not in self._warned:
                LOG.warning('%s.', problem)
        self._warned = found
