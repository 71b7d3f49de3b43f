# SPDX-License-Identifier: Apache-2.0
"""Runs the request filters for the requests of a nova-scheduler worker."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
import dataclasses
import itertools
import time
import weakref

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova.scheduler import request_filter
from oslo_config import cfg
from oslo_log import log as logging

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Membership
from isolate_aggregates.aggregates.cache import IndexCache
from isolate_aggregates.decision import Decision, decide
from isolate_aggregates.filters import judge
from isolate_aggregates.filters.loading import LoadedFilter
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.inspect.metrics.observer import Observer
from isolate_aggregates.nova import adapter, messages
from isolate_aggregates.nova.forced import ForcedHosts
from isolate_aggregates.query_limit import Shortener
from isolate_aggregates.text import escaped

LOG = logging.getLogger(__name__)


@dataclasses.dataclass
class _Seen:
    """A request for which the filters have run.

    :param decision: The decision.
    :param pipeline: The filters that were enabled.
    :param took: The run time of the filters in seconds.
    :param finished: Whether the complete decision is in the request spec.
    """

    decision: Decision
    pipeline: Pipeline
    took: float
    finished: bool = False


class Runner:
    """The request filters of a worker, as a single request filter of Nova.

    :class:`Finish` adds the forbidden aggregates to the request later.

    :param conf: Nova's configuration with our options.
    :param filters: The filters, in the order in which they run.
    :param cache: Returns the index of the aggregates.
    :param shortener: Shortens queries.
    :param members: Reads the current aggregates of hosts.
    :param forced: Checks hosts for which Nova skips its host filters.
    :param observer: Records metrics.
    """

    # Nova logs the names of request filters.
    __name__ = 'isolate_aggregates_pipeline'

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        filters: Sequence[LoadedFilter],
        cache: IndexCache,
        shortener: Shortener,
        members: Membership,
        forced: ForcedHosts,
        observer: Observer | None = None,
    ) -> None:
        self.filters = tuple(filters)
        self._conf = conf
        self._observer = observer or Observer()
        self._cache = cache
        self._shortener = shortener
        self._members = members
        self._forced = forced
        self._has_warned = False
        # Pipelines, by which of the filters are enabled.
        self._pipelines: dict[tuple[bool, ...], Pipeline] = {}
        # The requests in progress.
        self._seen: weakref.WeakKeyDictionary[
            objects.RequestSpec, _Seen | None
        ] = weakref.WeakKeyDictionary()

    def __call__(
        self,
        context: nova_context.RequestContext,
        request_spec: objects.RequestSpec,
    ) -> bool:
        """Add constraints to a request spec, or refuse it.

        Forbidden aggregates are added by :meth:`finish`.

        :param context: The context of the request.
        :param request_spec: Nova's request spec, which is modified.
        :returns: Whether any filter was enabled.
        :raises RequestFilterFailed: if no host may serve the request.
        """
        started_at = time.monotonic()
        pipeline = self._pipeline()
        if not pipeline.filters:
            self._seen[request_spec] = None
            return False
        decision = None
        try:
            decision = decide(
                adapter.NovaRequest(request_spec),
                self._cache.get(),
                pipeline,
            )
            adapter.apply(decision, request_spec)
        except exception.IsolateAggregatesError as exc:
            raise self._refusal(context, request_spec, decision, exc) from exc
        self._seen[request_spec] = _Seen(
            decision, pipeline, time.monotonic() - started_at
        )
        self._see_to_the_finish()
        return True

    def finish(
        self,
        context: nova_context.RequestContext,
        request_spec: objects.RequestSpec,
    ) -> bool:
        """Add the forbidden aggregates to the request, or refuse it.

        :param context: The context of the request.
        :param request_spec: Nova's request spec after all request filters,
            which is modified.
        :returns: Whether any filter was enabled.
        :raises RequestFilterFailed: if the query cannot be shortened enough,
            or the request may not use the host that it is forced to.
        """
        if request_spec not in self._seen:
            # Another runner has run, which this one has replaced meanwhile.
            self(context, request_spec)
        seen = self._seen[request_spec]
        if seen is None:
            return False
        # Leave out the time that Nova's other filters took.
        started_at = time.monotonic() - seen.took
        decision = seen.decision
        try:
            decision = decision.fit(
                self._shortener,
                lambda: adapter.query_length(request_spec),
                host_forced=adapter.forced(request_spec) is not None,
            )
            if decision.shortened:
                self._forced.check(context, request_spec, decision.destination)
            adapter.complete(decision, seen.decision, request_spec)
        except exception.IsolateAggregatesError as exc:
            raise self._refusal(context, request_spec, decision, exc) from exc
        seen.decision, seen.finished = decision, True
        self._observer.passed(
            started_at, decision.destination, decision.is_looked_at_again
        )
        self._tell_what_is_left(request_spec, decision)
        messages.narrowed(request_spec, decision.destination)
        if LOG.isEnabledFor(logging.DEBUG):
            _log(request_spec, decision, seen.pipeline, started_at)
        return True

    def _see_to_the_finish(self) -> None:
        """Restore our last entry in Nova's list, if it was removed.

        Without it no aggregate would be forbidden.
        """
        filters: list[object] = request_filter.ALL_REQUEST_FILTERS
        if self in filters and not any(
            isinstance(one, Finish) for one in filters
        ):
            filters.append(Finish(self))

    def _tell_what_is_left(
        self, spec: objects.RequestSpec, decision: Decision
    ) -> None:
        """Warn once that requirements are left to host filters."""
        if not decision.left or self._has_warned:
            return
        self._has_warned = True
        LOG.warning(
            'The query to Placement for %(server)s would be longer than '
            '[isolate_aggregates] max_query_length, so these constraints are '
            'left to %(host_filter)s. Host filters check only the hosts that '
            'Placement returns, at most [scheduler] max_placement_results. '
            'This is logged only once: %(left)s',
            {
                'server': messages.server(spec),
                'host_filter': ' and '.join(
                    sorted({one.host_filter for one in decision.left})
                ),
                'left': '; '.join(
                    escaped(one.constraint.reason) for one in decision.left
                ),
            },
        )

    def stop(self) -> None:
        """Stop all background threads."""
        self._shortener.stop()

    def objections(
        self, spec: objects.RequestSpec, hosts: Collection[str]
    ) -> Mapping[str, Sequence[str]]:
        """Return the reasons why a request may not use hosts, by host.

        If the filters have just run for the request, Placement has excluded
        the other hosts. Then hosts are checked again only if the query was
        shortened, because rollups depend on earlier memberships, and some
        requirements may have been left to host filters. If the filters have
        not run for the request, for example for a rebuild, they run here.

        :param spec: Nova's request spec, which is not modified.
        :param hosts: The names of the compute services.
        :raises RequestRefused: if the request is not the rebuild that it is
            marked as.
        :raises IsolateAggregatesError: if the hosts cannot be checked.
        """
        if spec in self._seen:
            seen = self._seen[spec]
            if seen is None or (
                seen.finished and not seen.decision.is_looked_at_again
            ):
                return {}
            decision = seen.decision
        else:
            adapter.check_rebuild(spec)
            decision = decide(
                adapter.NovaRequest(spec), self._cache.get(), self._pipeline()
            )
        destination = decision.destination
        looks_at_hosts = (
            destination.required_aggregates or destination.forbidden
        ) and not destination.refusals
        held = self._members.aggregates_of(hosts) if looks_at_hosts else {}
        return {
            host: judge.objections(destination, held.get(host, frozenset()))
            for host in hosts
        }

    def _pipeline(self) -> Pipeline:
        """Return the filters that are enabled now."""
        on = tuple(one.is_enabled(self._conf) for one in self.filters)
        try:
            return self._pipelines[on]
        except KeyError:
            filters = itertools.compress(self.filters, on)
            made = Pipeline(filters, self._observer.timer)
            return self._pipelines.setdefault(on, made)

    def _refusal(
        self,
        context: nova_context.RequestContext,
        spec: objects.RequestSpec,
        decision: Decision | None,
        error: exception.IsolateAggregatesError,
    ) -> nova_exception.RequestFilterFailed:
        name = ''
        if isinstance(error, exception.FilterError):
            name = error.name
        elif decision is not None:
            name = decision.destination.refused_by or ''
        self._observer.refused(name, error)
        return messages.refused(context, spec, error)


class Finish:
    """Calls :meth:`Runner.finish`, as the last of Nova's request filters.

    Other filters extend the query too, so its length is known only after all
    of them. Filters can be added to the list at any time. If this one is no
    longer the last, another one is appended that does the work; Nova reaches
    it because it iterates over the same list.
    """

    __name__ = 'isolate_aggregates_query_limit'

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def __call__(
        self,
        context: nova_context.RequestContext,
        request_spec: objects.RequestSpec,
    ) -> bool:
        """Finish the request, if this is the last request filter.

        :raises RequestFilterFailed: if no host may serve the request.
        """
        filters: list[object] = request_filter.ALL_REQUEST_FILTERS
        # If another runner has just replaced the list, Nova reaches no other
        # entry of ours.
        if self not in filters or filters[-1] is self:
            return self._runner.finish(context, request_spec)
        if not isinstance(filters[-1], Finish):
            filters.append(Finish(self._runner))
        return False


def _log(
    spec: objects.RequestSpec,
    decision: Decision,
    pipeline: Pipeline,
    started_at: float,
) -> None:
    destination = decision.destination
    instead = (
        f'; forbidden instead: {sorted(decision.forbidden)}'
        if decision.shortened
        else ''
    )
    if decision.left:
        names = sorted({one.host_filter for one in decision.left})
        instead += f'; left to {", ".join(names)}: {len(decision.left)}'
    LOG.debug(
        'For %(server)s request filters %(names)s took %(milliseconds).1f ms; '
        'constraints: %(constraints)s; required aggregates: %(required)s; '
        'forbidden aggregates: %(forbidden)s%(instead)s',
        {
            'server': messages.server(spec),
            'names': ', '.join(pipeline.names),
            'milliseconds': 1000 * (time.monotonic() - started_at),
            'constraints': '; '.join(
                f'{one.filter_name}: {escaped(one.constraint.reason)}'
                for one in destination.conclusions
            )
            or 'none',
            'required': [
                sorted(choice) for choice in destination.required_aggregates
            ],
            'forbidden': sorted(destination.forbidden_aggregates),
            'instead': instead,
        },
    )
