# SPDX-License-Identifier: Apache-2.0
"""Runs the request filters for the requests of a nova-scheduler worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import dataclasses
import time
import weakref

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.aggregates.cache import IndexCache
from isolate_aggregates.decision import Decision
from isolate_aggregates.filters.pipeline import LoadedFilter, Pipeline, enabled
from isolate_aggregates.nova import adapter, messages, placed
from isolate_aggregates.nova.candidates import CandidateCheck
from isolate_aggregates.nova.messages import Observer
from isolate_aggregates.nova.recheck import HostCheck
from isolate_aggregates.query_limit import Shortener
from isolate_aggregates.request.placed import Placed

# The attribute of a request spec with its progress. The request holds it,
# because a conclusion of a filter may lead back to the request: any collection
# of ours, also one with weak keys, would then keep both forever. Nova copies
# and sends only the fields of a request spec, so no other request gets it.
_ATTRIBUTE = '_isolate_aggregates_progress'


@dataclasses.dataclass(eq=False)
class Progress:
    """How far a runner has come with a request.

    :param request: The request, to tell it from a shallow copy.
    :param decision: The decision; None if no filter was enabled, or if the
        request is finished and its hosts need no check.
    :param took: The run time of the filters in seconds.
    :param is_complete: Whether the complete decision is in the request spec.
    """

    runner: Runner
    request: weakref.ref[objects.RequestSpec]
    decision: Decision | None
    took: float = 0.0
    is_complete: bool = False


class Runner:
    """The request filters of a worker, as a single request filter of Nova.

    :meth:`finish` adds the constraints after all of Nova's filters.
    """

    # Nova logs the names of request filters.
    __name__ = 'isolate_aggregates_pipeline'

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        filters: Sequence[LoadedFilter],
        cache: IndexCache,
        shortener: Shortener,
        hosts: HostCheck,
        observer: Observer,
    ) -> None:
        self.filters = tuple(filters)
        self._conf = conf
        self._observer = observer
        self._cache = cache
        self._shortener = shortener
        self._hosts = hosts
        self._decider = adapter.Decider(
            lambda: bool(conf[ia_conf.GROUP].servers_recorded)
        )
        self._has_warned = False
        #: Whether all filters are in shadow, so that nothing is done here.
        self.is_idle = False
        #: The filters of Nova that it replaces in Nova's list.
        self.replaced: list[object] = []
        # Pipelines, by the names of the filters that are enabled.
        self._pipelines: dict[tuple[str, ...], Pipeline] = {}

    def __call__(
        self,
        context: nova_context.RequestContext,
        request_spec: objects.RequestSpec,
    ) -> bool:
        """Decide about a request, or refuse it; :meth:`finish` follows.

        :returns: Whether any filter was enabled.
        :raises RequestFilterFailed: if no host may serve the request.
        """
        started_at = time.monotonic()
        pipeline = self._pipeline()
        progress = Progress(self, weakref.ref(request_spec), None)
        if not pipeline.filters:
            setattr(request_spec, _ATTRIBUTE, progress)
            return False
        # If Nova runs the filters again, an earlier result does not count.
        _forget(request_spec)
        decision = None
        try:
            decision = self._decider.decide(
                request_spec, self._cache.get(), pipeline
            )
            decision.check()
        except exception.IsolateAggregatesError as exc:
            raise self._refusal(context, request_spec, decision, exc) from exc
        progress.decision = decision
        progress.took = time.monotonic() - started_at
        setattr(request_spec, _ATTRIBUTE, progress)
        return True

    def finish(
        self,
        context: nova_context.RequestContext,
        request_spec: objects.RequestSpec,
    ) -> bool:
        """Add the constraints to the request, or refuse it.

        :param request_spec: Nova's request spec after all request filters,
            which is modified.
        :returns: Whether any filter was enabled.
        :raises RequestFilterFailed: if the query cannot be shortened enough,
            or the request may not use the host that it is forced to.
        """
        progress = self.progress(request_spec)
        if progress is None:
            # Another runner has run, which this one has replaced meanwhile.
            self(context, request_spec)
            progress = self.progress(request_spec)
            assert progress is not None
        decision = progress.decision
        if decision is None or progress.is_complete:
            return progress.is_complete
        # If the request is refused now, no part of the decision counts.
        _forget(request_spec)
        # Leave out the time that Nova's other filters took.
        started_at = time.monotonic() - progress.took
        try:
            decision = decision.fit(
                self._shortener,
                lambda: adapter.query_length(request_spec),
                host_forced=adapter.forced(request_spec) is not None,
            )
            adapter.check_length(decision, request_spec)
            if decision.replacement:
                decision = self._hosts.forced(context, request_spec, decision)
            self._observer.decided(decision, request_spec)
            adapter.apply(decision, request_spec)
        except exception.IsolateAggregatesError as exc:
            raise self._refusal(context, request_spec, decision, exc) from exc
        progress.is_complete = True
        # Keep the decision, and the aggregates with it, only if it is needed.
        needs_check = decision.needs_host_check
        progress.decision = decision if needs_check else None
        setattr(request_spec, _ATTRIBUTE, progress)
        self._observer.passed(started_at, decision.destination, needs_check)
        if decision.left_to_host_filters and not self._has_warned:
            self._has_warned = True
            messages.left_to_host_filters(request_spec, decision)
        return True

    def placed(self, spec: objects.RequestSpec) -> Placed | None:
        """Return what the servers of a request are placed with.

        :returns: None if it needs no record.
        :raises IsolateAggregatesError: if it cannot be read.
        """
        return self._decider.read(spec.obj_clone(), self._pipeline())[1]

    def progress(self, spec: objects.RequestSpec) -> Progress | None:
        """Return how far this runner has come with a request.

        :returns: None if it has not run for the request, or has refused it.
        """
        progress: Progress | None = getattr(spec, _ATTRIBUTE, None)
        if progress and progress.runner is self and progress.request() is spec:
            return progress
        return None

    def objections(
        self, spec: objects.RequestSpec, nodes: Mapping[str, str]
    ) -> Mapping[str, Sequence[str]]:
        """Return the reasons why a request may not use compute nodes, by uuid.

        If the filters have just run for the request, Placement has excluded
        the other hosts. Then hosts are checked again only if the query was
        shortened: a host must be allowed by its memberships in Nova; those in
        Placement are for :meth:`candidate_check`. If the filters have not run
        for the request, for example for a rebuild, they run here, and
        memberships in Nova count.

        :param nodes: The name of the host of each compute node, by uuid.
        :raises RequestRefused: if the request is not the rebuild that it is
            marked as.
        :raises IsolateAggregatesError: if the hosts cannot be checked.
        """
        progress = self.progress(spec)
        if progress is not None:
            if progress.decision is None:
                return {}
            decision = progress.decision
        else:
            adapter.check_rebuild(spec)
            # Traits may be replaced in the copy.
            copy = spec.obj_clone()
            decision = self._decider.decide(
                copy, self._cache.get(), self._pipeline()
            )
            placed.remember(spec, placed.remembered(copy))
            self._observer.decided(decision, copy)
        reasons = self._hosts.in_nova(decision.destination, nodes)
        if progress is not None:
            self._observer.excluded(
                len(reasons), self._conf.scheduler.max_placement_results
            )
        return reasons

    def failed(self, error: exception.IsolateAggregatesError) -> None:
        """Note that the hosts of a request could not be checked."""
        self._observer.failed(error, None)

    def unusable(self, host: str) -> None:
        """Note that no allocation candidate of a host may be used."""
        self._observer.unusable(host)

    def decide(self, spec: objects.RequestSpec) -> Decision:
        """Decide about a request without any effect.

        :param spec: A copy of the request, after all request filters.
        :raises IsolateAggregatesError: if it cannot be decided.
        """
        decision = self._decider.decide(
            spec, self._cache.get(), self._pipeline()
        )
        return decision.fit(
            self._shortener,
            lambda: adapter.query_length(spec),
            host_forced=adapter.forced(spec) is not None,
        )

    @property
    def hosts(self) -> HostCheck:
        """What checks hosts."""
        return self._hosts

    def candidate_check(
        self, spec: objects.RequestSpec
    ) -> CandidateCheck | None:
        """Return what checks the allocation candidates of a request.

        :returns: None if its query was not shortened.
        """
        progress = self.progress(spec)
        if progress is None or progress.decision is None:
            return None
        return self._hosts.candidates(progress.decision, self.failed)

    def _pipeline(self) -> Pipeline:
        """Return the filters that are enabled now."""
        filters = enabled(self.filters, self._conf)
        names = tuple(loaded_filter.name for loaded_filter in filters)
        try:
            return self._pipelines[names]
        except KeyError:
            pipeline = Pipeline(filters, self._observer.timer)
            return self._pipelines.setdefault(names, pipeline)

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
        self._observer.failed(error, decision)
        return messages.refused(context, spec, error)


def _forget(spec: objects.RequestSpec) -> None:
    vars(spec).pop(_ATTRIBUTE, None)
