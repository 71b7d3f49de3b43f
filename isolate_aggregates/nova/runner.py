# SPDX-License-Identifier: Apache-2.0
"""Runs the request filters over the requests of one nova-scheduler worker."""

from __future__ import annotations

from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
import dataclasses
import threading
import time
from typing import cast
import weakref

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from oslo_config import cfg
from oslo_log import log as logging

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.aggregates.cache import IndexCache
from isolate_aggregates.filters.destination import Destination
from isolate_aggregates.filters.judge import objections
from isolate_aggregates.filters.pipeline import LoadedFilter, Pipeline
from isolate_aggregates.inspect.metrics.observer import Observer
from isolate_aggregates.nova import adapter
from isolate_aggregates.nova.images import ImageProperties
from isolate_aggregates.query_limit import Shortened, Shortener
from isolate_aggregates.request import RequestSpec

LOG = logging.getLogger(__name__)

# Uuids of aggregates, by the name of the host that is in them.
Membership = Mapping[str, frozenset[str]]


class RequestFilter:
    """One of our filters, in the form that Nova calls its own in.

    :param name: The name of the filter.
    :param run: Runs it: takes the name, a context and a request spec, and
        returns whether the filter was on.
    """

    def __init__(
        self,
        name: str,
        run: Callable[
            [str, nova_context.RequestContext, objects.RequestSpec], bool
        ],
    ) -> None:
        self.__name__ = name
        self._run = run

    def __call__(
        self,
        context: nova_context.RequestContext,
        request_spec: objects.RequestSpec,
    ) -> bool:
        """Narrow a request spec, or refuse it.

        :param context: The context of the request.
        :param request_spec: Nova's request spec, which is changed.
        :returns: Whether the filter was on.
        :raises RequestFilterFailed: if no host may serve the request.
        """
        return self._run(self.__name__, context, request_spec)


@dataclasses.dataclass
class _Round:
    """The filters' work on one request: one snapshot serves them all."""

    spec: weakref.ref[objects.RequestSpec]
    request: RequestSpec
    index: AggregateIndex
    started_at: float
    done: list[str] = dataclasses.field(default_factory=list)
    destination: Destination = dataclasses.field(default_factory=Destination)


class Runner:
    """The request filters of one worker.

    :param conf: Nova's configuration with our options.
    :param filters: The filters, in the order in which they run.
    :param cache: Gives the index of the aggregates.
    :param shortener: Makes what is asked of Placement fit.
    :param aggregates_of: Returns the uuids of the aggregates that hosts are
        in, by host; None if the aggregates in the index know their hosts.
    :param observer: Is told what the filters do.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        filters: Sequence[LoadedFilter],
        cache: IndexCache,
        shortener: Shortener,
        aggregates_of: Callable[[Iterable[str]], Membership] | None = None,
        observer: Observer | None = None,
    ) -> None:
        self._conf = conf
        self._filters = {loaded.name: loaded for loaded in filters}
        self._observer = observer or Observer()
        self._narrow_by = {
            name: self._observer.timed(
                name, Pipeline({name: loaded.request_filter}).narrow
            )
            for name, loaded in self._filters.items()
        }
        self._last_name = next(reversed(self._filters), None)
        self._cache = cache
        self._shortener = shortener
        self._aggregates_of = aggregates_of
        self._images = ImageProperties()
        # A request is worked on by one thread, from filter to filter.
        self._local = threading.local()

    def request_filters(self) -> list[RequestFilter]:
        """Return the filters in the form that Nova calls them in."""
        return [RequestFilter(name, self._run_one) for name in self._filters]

    def verdict(
        self, context: nova_context.RequestContext, spec: objects.RequestSpec
    ) -> Verdict | None:
        """Return what is to be held against the hosts of a request.

        :param context: The context to read with.
        :param spec: Nova's request spec; not changed.
        :returns: None if Placement was asked for all that the request filters
            concluded, and in full.
        :raises IsolateAggregatesError: if the request can not be judged.
        """
        judged, verdict = getattr(self._local, 'judged', (None, None))
        if judged is not None and judged() is spec:
            return cast('Verdict | None', verdict)
        return self.judge(context, spec)

    def judge(
        self, context: nova_context.RequestContext, spec: objects.RequestSpec
    ) -> Verdict:
        """Judge a request that no request filter has seen, such as a rebuild.

        :param context: The context to read with.
        :param spec: Nova's request spec; not changed.
        :raises IsolateAggregatesError: if it can not be judged.
        """
        pipeline = Pipeline(
            {
                name: loaded.request_filter
                for name, loaded in self._filters.items()
                if loaded.is_enabled(self._conf)
            }
        )
        index = self._cache.get()
        try:
            dropped = self._dropped(context, spec)
        except exception.ServiceError as exc:
            # There may be no credentials of the user to read the image with.
            # A reservation that is not seen to be named opens nothing.
            LOG.debug('Judging without the properties of the image: %s', exc)
            dropped = {}
        request = adapter.NovaRequest(spec, dropped)
        return Verdict(pipeline.evaluate(request, index), index, self._members)

    def _run_one(
        self,
        name: str,
        context: nova_context.RequestContext,
        spec: objects.RequestSpec,
    ) -> bool:
        try:
            enabled = self._filters[name].is_enabled(self._conf)
            if enabled:
                self._narrow(name, context, spec)
            if name == self._last_name:
                self._finish(spec)
        except exception.IsolateAggregatesError as exc:
            raise self._refusal(name, spec, exc) from exc
        return enabled

    def _narrow(
        self,
        name: str,
        context: nova_context.RequestContext,
        spec: objects.RequestSpec,
    ) -> None:
        current = self._round(name, context, spec)
        self._narrow_by[name](
            current.destination, current.request, current.index
        )
        current.done.append(name)
        current.destination.check()

    def _round(
        self,
        name: str,
        context: nova_context.RequestContext,
        spec: objects.RequestSpec,
    ) -> _Round:
        current: _Round | None = getattr(self._local, 'round', None)
        if current and current.spec() is spec and name not in current.done:
            return current
        started_at = time.monotonic()
        index = self._cache.get()
        current = _Round(
            spec=weakref.ref(spec),
            request=adapter.NovaRequest(spec, self._dropped(context, spec)),
            index=index,
            started_at=started_at,
        )
        self._local.round = current
        return current

    def _finish(self, spec: objects.RequestSpec) -> None:
        """Put what all filters concluded onto the request spec."""
        current: _Round | None = getattr(self._local, 'round', None)
        self._local.round = None
        if current is None or current.spec() is not spec:
            # All of them are off.
            self._local.judged = weakref.ref(spec), None
            return
        shortened = self._shortener.shorten(
            current.destination, current.index, adapter.asked_so_far(spec)
        )
        adapter.apply(
            current.destination,
            spec,
            shortened.forbidden if shortened else None,
        )
        # What stands for the forbidden aggregates rests on who was in them a
        # moment ago, so the hosts that come back are looked at again.
        verdict = (
            Verdict(current.destination, current.index, self._members)
            if shortened
            else None
        )
        self._local.judged = weakref.ref(spec), verdict
        self._observer.passed(current.started_at, bool(shortened))
        if LOG.isEnabledFor(logging.DEBUG):
            self._log(current, shortened)

    def _log(self, done: _Round, shortened: Shortened | None) -> None:
        destination = done.destination
        LOG.debug(
            'Request filters %(names)s took %(milliseconds).1f ms; '
            'constraints: %(constraints)s; required aggregates: %(required)s; '
            'forbidden aggregates: %(forbidden)s%(shortened)s',
            {
                'names': ', '.join(done.done),
                'milliseconds': 1000 * (time.monotonic() - done.started_at),
                'constraints': '; '.join(
                    f'{c.filter_name}: {c.constraint.reason}'
                    for c in destination.conclusions
                )
                or 'none',
                'required': [
                    sorted(choice)
                    for choice in destination.required_aggregates
                ],
                'forbidden': sorted(destination.forbidden_aggregates),
                'shortened': f'; in their place: {sorted(shortened.forbidden)}'
                if shortened
                else '',
            },
        )

    def _refusal(
        self,
        name: str,
        spec: objects.RequestSpec,
        error: exception.IsolateAggregatesError,
    ) -> nova_exception.RequestFilterFailed:
        self._local.round = None
        self._observer.refused(name, error)
        reason = (
            '; '.join(error.reasons)
            if isinstance(error, exception.RequestRefused)
            else str(error)
        )
        server = spec.instance_uuid if 'instance_uuid' in spec else None
        LOG.info(
            'Refused to schedule server %(server)s: %(reason)s',
            {'server': server, 'reason': reason},
        )
        return nova_exception.RequestFilterFailed(reason=reason)

    def _dropped(
        self, context: nova_context.RequestContext, spec: objects.RequestSpec
    ) -> Mapping[str, str]:
        """Return image properties that Nova has dropped, if they matter."""
        if (
            'reservation_prefix' not in self._filters
            or 'image' not in self._conf[ia_conf.GROUP].reservation_key_sources
        ):
            return {}
        section = self._conf[ia_conf.SCHEDULER]
        prefixes = (
            section.placement_req_required_member_prefix
            + section.placement_req_default_forbidden_member_prefix
        )
        if not prefixes or 'image' not in spec or not spec.image:
            return {}
        # A server that boots from a volume has an image without an id.
        image_id = spec.image.id if 'id' in spec.image else None
        if not image_id:
            return {}
        properties = self._images.get(context, image_id)
        return {
            key: value
            for key, value in properties.items()
            if key.startswith(tuple(prefixes))
        }

    def _members(
        self, hosts: Iterable[str], index: AggregateIndex
    ) -> Membership:
        if self._aggregates_of:
            return self._aggregates_of(hosts)
        return index.aggregates_of


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What the filters say of a request, to be held against hosts.

    :param destination: What they concluded.
    :param index: The aggregates they looked at.
    :param members: Returns the uuids of the aggregates that hosts are in, by
        host.
    """

    destination: Destination
    index: AggregateIndex
    members: Callable[[Iterable[str], AggregateIndex], Membership]

    def against(self, hosts: Collection[str]) -> dict[str, list[str]]:
        """Return the reasons why a request may not be on hosts, by host.

        :param hosts: The names of the compute services.
        :raises IsolateAggregatesError: if the hosts' aggregates can not be
            read.
        """
        destination = self.destination
        looks_at_hosts = (
            destination.required_aggregates or destination.forbidden
        ) and not destination.refusals
        held = self.members(hosts, self.index) if looks_at_hosts else {}
        return {
            host: objections(destination, held.get(host, frozenset()))
            for host in hosts
        }
