# SPDX-License-Identifier: Apache-2.0
"""Runs the request filters over the requests of one nova-scheduler worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import threading
import time
from typing import Any
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
from isolate_aggregates.destination import Destination
from isolate_aggregates.nova import adapter
from isolate_aggregates.nova.images import ImageProperties
from isolate_aggregates.objections import objections
from isolate_aggregates.pipeline import LoadedFilter, Pipeline
from isolate_aggregates.request import RequestSpec

LOG = logging.getLogger(__name__)


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
    :param host_aggregates: Returns the uuids of the aggregates that a host is
        in; None if the aggregates in the index know their hosts.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        filters: Sequence[LoadedFilter],
        cache: IndexCache,
        host_aggregates: Callable[[str], frozenset[str]] | None = None,
    ) -> None:
        self._conf = conf
        self._filters = {loaded.name: loaded for loaded in filters}
        self._last_name = next(reversed(self._filters), None)
        self._cache = cache
        self._host_aggregates = host_aggregates
        self._images = ImageProperties()
        # A request is worked on by one thread, from filter to filter.
        self._local = threading.local()

    def request_filters(self) -> list[RequestFilter]:
        """Return the filters in the form that Nova calls them in."""
        return [RequestFilter(name, self._run_one) for name in self._filters]

    def has_judged(self, spec: objects.RequestSpec) -> bool:
        """Tell whether the request filters have just run over a request.

        :param spec: Nova's request spec.
        """
        judged = getattr(self._local, 'judged', None)
        return judged is not None and judged() is spec

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
        request = adapter.to_request(spec, dropped)
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
        except exception.RequestRefused as exc:
            raise self._refusal(spec, '; '.join(exc.reasons)) from exc
        except exception.IsolateAggregatesError as exc:
            raise self._refusal(spec, str(exc)) from exc
        if name == self._last_name:
            self._finish(spec)
        return enabled

    def _narrow(
        self,
        name: str,
        context: nova_context.RequestContext,
        spec: objects.RequestSpec,
    ) -> None:
        current = self._round(name, context, spec)
        only = Pipeline({name: self._filters[name].request_filter})
        found = only.run(current.request, current.index)
        adapter.apply(found, spec)
        current.done.append(name)
        for conclusion in found.conclusions:
            current.destination.add(conclusion.constraint, name)

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
            request=adapter.to_request(spec, self._dropped(context, spec)),
            index=index,
            started_at=started_at,
        )
        self._local.round = current
        return current

    def _finish(self, spec: objects.RequestSpec) -> None:
        current: _Round | None = getattr(self._local, 'round', None)
        self._local.round = None
        self._local.judged = weakref.ref(spec)
        if current is None or current.spec() is not spec:
            return
        if LOG.isEnabledFor(logging.DEBUG):
            LOG.debug(
                'Request filters %(names)s took %(milliseconds).1f ms; '
                'constraints: %(constraints)s; required aggregates: '
                '%(required)s; forbidden aggregates: %(forbidden)s',
                {
                    'names': ', '.join(current.done),
                    'milliseconds': 1000
                    * (time.monotonic() - current.started_at),
                    'constraints': '; '.join(
                        f'{c.filter_name}: {c.constraint.reason}'
                        for c in current.destination.conclusions
                    )
                    or 'none',
                    'required': [
                        sorted(choice)
                        for choice in current.destination.required_aggregates
                    ],
                    'forbidden': sorted(
                        current.destination.forbidden_aggregates
                    ),
                },
            )

    def _refusal(
        self, spec: objects.RequestSpec, reason: str
    ) -> nova_exception.RequestFilterFailed:
        self._local.round = None
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
        section = self._conf[ia_conf.SCHEDULER]
        prefixes = (
            section.placement_req_required_member_prefix
            + section.placement_req_default_forbidden_member_prefix
        )
        wanted = (
            prefixes
            and 'reservation_prefix' in self._filters
            and 'image' in self._conf[ia_conf.GROUP].reservation_key_sources
        )
        if not wanted or 'image' not in spec or not spec.image:
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

    def _members(self, host: str, index: AggregateIndex) -> frozenset[str]:
        if self._host_aggregates:
            return self._host_aggregates(host)
        return frozenset(a.uuid for a in index if host in a.hosts)


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What the filters say of a request, to be held against single hosts.

    :param destination: What they concluded.
    :param index: The aggregates they looked at.
    :param members: Returns the uuids of the aggregates that a host is in.
    """

    destination: Destination
    index: AggregateIndex
    members: Callable[[str, AggregateIndex], Any]

    def against(self, host: str) -> list[str]:
        """Return the reasons why the request may not be on a host.

        :param host: The name of the compute service.
        :raises IsolateAggregatesError: if the host's aggregates can not be
            read.
        """
        destination = self.destination
        if destination.refusals:
            return list(destination.refusals)
        if not (
            destination.required_aggregates or destination.forbidden_aggregates
        ):
            return []
        return objections(destination, self.members(host, self.index))
