# SPDX-License-Identifier: Apache-2.0
"""Runs the request filters over the requests of one nova-scheduler worker."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
import itertools
import time
import weakref

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
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
from isolate_aggregates.query_limit import Shortener
from isolate_aggregates.text import escaped

LOG = logging.getLogger(__name__)


class Runner:
    """The request filters of one worker, as one request filter of Nova.

    :param conf: Nova's configuration with our options.
    :param filters: The filters, in the order in which they run.
    :param cache: Gives the index of the aggregates.
    :param shortener: Makes what is asked of Placement fit.
    :param members: Knows which aggregates hosts are in, as of now.
    :param observer: Is told what the filters do.
    """

    # Nova's log and its own filters tell request filters by name.
    __name__ = 'isolate_aggregates_pipeline'

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        filters: Sequence[LoadedFilter],
        cache: IndexCache,
        shortener: Shortener,
        members: Membership,
        observer: Observer | None = None,
    ) -> None:
        self.filters = tuple(filters)
        self._conf = conf
        self._observer = observer or Observer()
        self._cache = cache
        self._shortener = shortener
        self._members = members
        # By which of the filters are switched on.
        self._pipelines: dict[tuple[bool, ...], Pipeline] = {}
        # What was decided on the requests that are being worked on.
        self._decisions: weakref.WeakKeyDictionary[
            objects.RequestSpec, Decision | None
        ] = weakref.WeakKeyDictionary()

    def __call__(
        self,
        context: nova_context.RequestContext,
        request_spec: objects.RequestSpec,
    ) -> bool:
        """Narrow a request spec, or refuse it.

        :param context: The context of the request.
        :param request_spec: Nova's request spec, which is changed.
        :returns: Whether any filter was on.
        :raises RequestFilterFailed: if no host may serve the request.
        """
        started_at = time.monotonic()
        pipeline = self._pipeline()
        if not pipeline.filters:
            self._decisions[request_spec] = None
            return False
        decision = None
        try:
            decision = decide(
                adapter.NovaRequest(request_spec),
                self._cache.get(),
                pipeline,
                self._shortener,
                adapter.asked_so_far(request_spec),
            )
            adapter.apply(decision, request_spec)
        except exception.IsolateAggregatesError as exc:
            raise self._refusal(context, request_spec, decision, exc) from exc
        self._decisions[request_spec] = decision
        self._observer.passed(started_at, bool(decision.shortened))
        messages.narrowed(request_spec, decision.destination)
        if LOG.isEnabledFor(logging.DEBUG):
            _log(request_spec, decision, pipeline, started_at)
        return True

    def objections(
        self, spec: objects.RequestSpec, hosts: Collection[str]
    ) -> Mapping[str, Sequence[str]]:
        """Return the reasons why a request may not be on hosts, by host.

        A request that the filters have just seen was judged by Placement. It
        is judged again only if its query was shortened: what stands for the
        forbidden aggregates rests on who was in them a moment ago. A request
        that they have not seen, such as a rebuild, is judged here.

        :param spec: Nova's request spec; not changed.
        :param hosts: The names of the compute services.
        :raises IsolateAggregatesError: if the request cannot be judged.
        """
        if spec in self._decisions:
            decision = self._decisions[spec]
            if decision is None or not decision.shortened:
                return {}
        else:
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
        """Return the filters that are switched on now."""
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


def _log(
    spec: objects.RequestSpec,
    decision: Decision,
    pipeline: Pipeline,
    started_at: float,
) -> None:
    destination = decision.destination
    instead = (
        f'; in their place: {sorted(decision.forbidden)}'
        if decision.shortened
        else ''
    )
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
