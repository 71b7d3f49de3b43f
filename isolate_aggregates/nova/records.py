# SPDX-License-Identifier: Apache-2.0
"""Watches nova-scheduler, and leaves a record of each decision.

Nova calls no plugin when Placement returns nothing, when a host filter drops
the last host, or when it gives up. So four of its functions are wrapped, which
are alike in Nova 31 to 34, to count what passes through them. They are called
with the same arguments, return the same results and raise the same errors.
What fails here is logged, and never fails a request.

A record is built in the thread of its request. What needs Placement or a
database again is left to another thread (``recorder.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import datetime
import functools
import itertools
import threading
import time
from typing import TYPE_CHECKING, Any

from nova import exception as nova_exception
from nova import filters as nova_filters
from nova import objects
from nova.scheduler import manager
from nova.scheduler import utils as scheduler_utils
from nova.scheduler.client import report
from oslo_log import log as logging

from isolate_aggregates import exception
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.nova import adapter, placed
from isolate_aggregates.nova.adapter import field
from isolate_aggregates.query_limit import OUR_HOST_FILTER
from isolate_aggregates.record import SCHEMA, cut, of_decision
from isolate_aggregates.text import short

if TYPE_CHECKING:
    from isolate_aggregates.decision import Decision
    from isolate_aggregates.nova.recorder import Recorder

LOG = logging.getLogger(__name__)

# The most entries of each kind that are shown of a request.
_MOST = 20

_current = threading.local()
_recorder: Recorder | None = None
# Nova's own functions, by owner and name.
_replaced: dict[tuple[Any, str], Any] = {}


class Trace:
    """What a request meets on its way; only its own thread writes it."""

    def __init__(
        self, context: Any, spec: objects.RequestSpec, servers: Any
    ) -> None:
        self.context, self.spec = context, spec
        self.servers = list(servers or ())
        self.began_at = time.monotonic()
        self.decision: Decision | None = None
        self.error: exception.IsolateAggregatesError | None = None
        #: What other request filters forbid and require.
        self.others: frozenset[str] = frozenset()
        self.others_required: tuple[frozenset[str], ...] = ()
        #: The queries and the numbers of their candidates; None for one that
        #: Placement has rejected, -1 if it cannot be reached.
        self.asked: list[tuple[Any, int | None]] = []
        # What Placement tells of the hosts that it offers, and Nova's states
        # of hosts before and after the last round of host filters. Most
        # requests leave no record, so that nobody asks for their names.
        self._offered: list[Mapping[str, Any]] = []
        self._given: Sequence[Any] = ()
        self._passed: Sequence[Any] = ()
        #: For each server the host filters that ran, and how many hosts each
        #: was given.
        self.rounds: list[list[tuple[str, int]]] = []
        #: How many hosts passed, but have no candidate that may be used.
        self.unusable = 0
        self.placed = 0
        #: The chosen hosts.
        self.hosts: list[str] = []
        #: When Nova answered, in seconds since 1970, and how long it took.
        self.answered_at = self.took_ms = 0.0

    def answered(self, result: Any) -> None:
        """Note that Nova has an answer."""
        self.hosts = list(_hosts(result))
        self.answered_at = time.time()
        self.took_ms = round(1000 * (time.monotonic() - self.began_at), 1)

    def asked_for(
        self, resources: Any, number: int | None, offered: Mapping[str, Any]
    ) -> None:
        """Note a query to Placement, and what it tells of hosts."""
        self.asked.append((resources, number))
        self._offered.append(offered)

    def filtered(
        self,
        given: Sequence[Any],
        passed: Sequence[Any],
        seen: list[tuple[str, int]],
    ) -> None:
        """Note a round of host filters."""
        self.rounds.append([*seen, ('', len(passed))])
        self._given, self._passed = given, passed
        self.unusable = 0
        for name in ('given', 'passed'):
            vars(self).pop(name, None)

    def keep_names(self) -> None:
        """Keep only names of hosts, as the request may wait in a queue."""
        _ = self.offered, self.given, self.passed
        self._offered, self._given, self._passed = [], (), ()

    @lazy_property
    def offered(self) -> frozenset[str]:
        """The uuids of the hosts that Placement offers."""
        return frozenset(
            [
                summary.get('root_provider_uuid') or uuid
                for summaries in self._offered
                for uuid, summary in summaries.items()
            ]
        )

    @lazy_property
    def given(self) -> list[tuple[str, str]]:
        """The uuids and names of the hosts before the last round."""
        return [
            (getattr(host, 'uuid', ''), getattr(host, 'host', ''))
            for host in self._given
        ]

    @lazy_property
    def passed(self) -> list[str]:
        """The names of the hosts after the last round."""
        return [getattr(host, 'host', '') for host in self._passed]


def current() -> Trace | None:
    """Return the trace of the request that this thread serves."""
    return getattr(_current, 'trace', None)


def _noted(note: Callable[[Trace], None]) -> None:
    """Note something of the request of this thread, if that is possible."""
    trace = current()
    if trace is None:
        return
    try:
        note(trace)
    except Exception:
        LOG.exception('A decision is recorded in part.')


def decided(decision: Decision, spec: objects.RequestSpec) -> None:
    """Note a decision, before it is in the request spec."""

    def note(trace: Trace) -> None:
        trace.decision = decision
        target = adapter.destination_of(spec)
        trace.others = frozenset(
            (target and target.forbidden_aggregates) or ()
        )
        trace.others_required = tuple(
            frozenset(choice.split(','))
            for choice in (target and target.aggregates) or ()
        )

    _noted(note)


def failed(
    error: exception.IsolateAggregatesError, decision: Decision | None
) -> None:
    """Note that a request is refused, or that its hosts cannot be checked."""

    def note(trace: Trace) -> None:
        trace.error = error
        trace.decision = decision or trace.decision

    _noted(note)


def unusable(host: str) -> None:
    """Note that a host that passed the host filters may not be used."""

    def note(trace: Trace) -> None:
        if host in trace.passed:
            trace.passed.remove(host)
            trace.unusable += 1

    _noted(note)


def install(recorder: Recorder) -> None:
    """Record the decisions of this process from now on."""
    global _recorder
    former, _recorder = _recorder, recorder
    if former is not None:
        former.close()
    _wrap(manager.SchedulerManager, 'select_destinations', _selected)
    _wrap(manager.SchedulerManager, '_ensure_sufficient_hosts', _ensured)
    _wrap(report.SchedulerReportClient, 'get_allocation_candidates', _asked)
    _wrap(nova_filters.BaseFilterHandler, 'get_filtered_objects', _filtered)


def _wrap(owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
    if (owner, name) in _replaced:
        return
    former = _replaced[owner, name] = getattr(owner, name)

    @functools.wraps(former)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return wrapper(former, *args, **kwargs)

    setattr(owner, name, wrapped)


def uninstall() -> None:
    """Give Nova its functions back."""
    global _recorder
    former, _recorder = _recorder, None
    if former is not None:
        former.close()
    while _replaced:
        (owner, name), former = _replaced.popitem()
        setattr(owner, name, former)


def _selected(
    former: Any, self: Any, context: Any, *args: Any, **kwargs: Any
) -> Any:
    spec = kwargs.get('spec_obj')
    recorder = _recorder
    if not isinstance(spec, objects.RequestSpec) or recorder is None:
        return former(self, context, *args, **kwargs)
    trace = Trace(context, spec, kwargs.get('instance_uuids'))
    _current.trace = trace
    result: Any = None
    error: BaseException | None = None
    try:
        result = former(self, context, *args, **kwargs)
        return result
    except Exception as exc:
        # Nova wraps what its caller expects.
        error = getattr(exc, 'exc_info', (None, exc))[1]
        raise
    finally:
        _current.trace = None
        try:
            _finish(recorder, trace, result, error)
        except Exception:
            LOG.exception('A decision is not recorded.')
        # It holds the frame that holds it.
        del error


def _asked(former: Any, self: Any, context: Any, resources: Any) -> Any:
    answer = former(self, context, resources)

    def note(trace: Trace) -> None:
        candidates, summaries = (answer or (None, None))[:2]
        number = None if candidates is None else len(candidates)
        trace.asked_for(
            resources, number if answer is not None else -1, summaries or {}
        )

    _noted(note)
    return answer


def _ensured(former: Any, self: Any, context: Any, hosts: Any, *args: Any,
             **kwargs: Any) -> Any:  # fmt: skip
    _noted(lambda trace: setattr(trace, 'placed', len(hosts)))
    return former(self, context, hosts, *args, **kwargs)


class _Counted:
    """One of Nova's host filters; notes how many hosts it is given.

    Nova takes two attributes of it and logs the name of its class, ten times
    for most requests, so that these are no properties.
    """

    def __init__(self, host_filter: Any, seen: list[tuple[str, int]]) -> None:
        self._filter, self._seen = host_filter, seen
        self.run_filter_for_index = host_filter.run_filter_for_index

    def __getattr__(self, name: str) -> Any:
        return getattr(self._filter, name)

    def filter_all(self, hosts: Any, spec: Any) -> Any:
        """Run the filter."""
        self._seen.append((type(self._filter).__name__, len(hosts)))
        return self._filter.filter_all(hosts, spec)


@functools.cache
def _counted(kind: type) -> type[_Counted]:
    """Return what watches the host filters of a class, and says to be it."""
    return type(kind.__name__, (_Counted,), {'__class__': kind})


def _filtered(
    former: Any, self: Any, filters: Any, objs: Any, *args: Any, **kwargs: Any
) -> Any:
    if current() is None:
        return former(self, filters, objs, *args, **kwargs)
    hosts = list(objs)
    seen: list[tuple[str, int]] = []
    watched = [_counted(each.__class__)(each, seen) for each in filters]
    passed = former(self, watched, hosts, *args, **kwargs)
    _noted(lambda trace: trace.filtered(hosts, passed or (), seen))
    return passed


def _finish(
    recorder: Recorder,
    trace: Trace,
    result: Any,
    error: BaseException | None,
) -> None:
    """Build and write the record of a request, if it needs one."""
    trace.answered(result)
    is_narrowed = bool(trace.decision and trace.decision.destination.yielded)
    is_wanted = recorder.wants(error is not None, is_narrowed)
    if not is_wanted and recorder.shadow is None:
        return
    outcome: dict[str, Any] = {'result': 'placed', 'hosts': trace.hosts}
    if error is not None:
        outcome = {'result': 'refused' if trace.error else 'no_host'}
        outcome['cause'], detail = _cause(trace, error)
        if detail:
            outcome['detail'] = detail
    recorder.write(
        lambda: _record(recorder, trace) | outcome, trace, is_wanted
    )


def _hosts(result: Any) -> Iterator[str]:
    for selections in result or ():
        first = selections[0] if isinstance(selections, list) else selections
        yield str(
            first['host'] if isinstance(first, dict) else first.service_host
        )


def _cause(trace: Trace, error: BaseException) -> tuple[str, dict[str, Any]]:
    """Return the primary cause of a failure: the first of a fixed order."""
    if trace.error is not None:
        return _cause_of_ours(trace, trace.error)
    if placed.has_failed(trace.spec):
        return 'not_recorded', {}
    if not isinstance(error, nova_exception.NoValidHost):
        return 'error', {'reason': cut(f'{type(error).__name__}: {error}')}
    numbers = [number for _, number in trace.asked]
    if not numbers and not trace.rounds:
        return 'nova_refused', {'reason': short(error)}
    if numbers and not any((number or 0) > 0 for number in numbers):
        if -1 in numbers:
            return 'placement_down', {}
        return 'placement_rejected' if None in numbers else 'no_candidates', {}
    detail: dict[str, Any] = {}
    if len(trace.servers) > 1:
        detail = {'servers': len(trace.servers), 'placed': trace.placed}
    last = trace.rounds[-1] if trace.rounds else []
    if last and not last[-1][1]:
        *filters, _ = last
        if not trace.given:
            # Of a cell that does not answer Nova knows no host.
            return 'unknown_hosts', detail | {'offered': len(trace.offered)}
        name = filters[-1][0] if filters else ''
        if name == OUR_HOST_FILTER:
            return 'locked', detail | {'filter': name}
        return 'host_filter', detail | {'filter': name}
    if not last and not trace.placed and field(trace.spec, 'ignore_hosts'):
        # Placement has offered only hosts that Nova was told to ignore.
        return 'no_candidates', {'ignored': len(trace.offered)}
    if trace.unusable and not trace.passed:
        return 'locked', detail | {'filter': OUR_HOST_FILTER}
    if trace.placed:
        return 'full', detail
    return 'claims', detail


def _cause_of_ours(
    trace: Trace, error: exception.IsolateAggregatesError
) -> tuple[str, dict[str, Any]]:
    if isinstance(error, exception.QueryNotShortened):
        return 'query_too_long', {'reason': cut(error.reasons[0])}
    if isinstance(error, exception.FilterError):
        return 'filter_failed', {
            'filter': error.name,
            'reason': cut(error.problem),
        }
    if not isinstance(error, exception.RequestRefused):
        return 'source_failed', {'reason': short(error)}
    reason = {'reason': cut('; '.join(error.reasons))}
    if error.__cause__ is not None:
        # What the decision needs cannot be read.
        return 'source_failed', reason
    decision = trace.decision
    if decision is not None and not decision.destination.refusals:
        # The host that it is forced to, as the query was shortened.
        return 'locked', reason
    return 'refused', reason


def _record(recorder: Recorder, trace: Trace) -> dict[str, Any]:
    """Return what is known of a request, whatever became of it."""
    spec = trace.spec
    servers = trace.servers or [field(spec, 'instance_uuid')]
    has_names = 'names' not in recorder.omitted
    flavor = field(spec, 'flavor')
    record: dict[str, Any] = {
        'schema': SCHEMA,
        'at': datetime.datetime.fromtimestamp(
            trace.answered_at, datetime.UTC
        ).isoformat(timespec='milliseconds'),
        'request': trace.context.request_id,
        'server': servers[0],
        'project': field(spec, 'project_id'),
        'operation': _operation(spec),
        'flavor': {'id': field(flavor, 'flavorid', '')},
        'config': recorder.digest,
    }
    if has_names:
        record['flavor']['name'] = cut(field(flavor, 'name', ''))
    if recorder.omitted:
        record['omitted'] = sorted(recorder.omitted)
    if len(servers) > 1:
        record['servers'] = {'number': len(servers), 'some': servers[:_MOST]}
    if image := field(spec, 'image'):
        identity = field(image, 'id') or ''
        record['image'] = {'id': identity}
        if has_names:
            # The image of a server that boots from a volume has no name.
            name = field(image, 'name') or identity or 'unnamed'
            record['image']['name'] = cut(name)
    record['keys'] = _keys(recorder, spec)
    if trace.decision is not None:
        record |= of_decision(trace.decision)
    if trace.asked:
        record['placement'] = {
            'candidates': sum(max(n or 0, 0) for _, n in trace.asked),
            'hosts': len(trace.offered),
        }
    if trace.rounds:
        last = trace.rounds[-1]
        dropped = {
            name: before - after
            for (name, before), (_, after) in itertools.pairwise(last)
            if before > after
        }
        if trace.unusable:
            dropped[OUR_HOST_FILTER] = (
                dropped.get(OUR_HOST_FILTER, 0) + trace.unusable
            )
        record['host_filters'] = {'start': last[0][1], 'dropped': dropped}
    record['took_ms'] = trace.took_ms
    return record


def _operation(spec: objects.RequestSpec) -> str:
    hints = field(spec, 'scheduler_hints')
    if hints and scheduler_utils.request_is_rebuild(spec):
        return 'rebuild'
    return 'move' if adapter.is_for_existing(spec, field) else 'boot'


def _keys(recorder: Recorder, spec: objects.RequestSpec) -> dict[str, Any]:
    """Return what the request carries that may open or require something."""
    flavor, image = field(spec, 'flavor'), field(spec, 'image')
    properties = image and field(image, 'properties')
    target = field(spec, 'requested_destination')
    specs = field(flavor, 'extra_specs')
    hints = 'hints' not in recorder.omitted and field(spec, 'scheduler_hints')
    zone = field(spec, 'availability_zone')
    host = target and field(target, 'host')
    keys = {
        'extra_specs': specs
        and {cut(name): cut(value) for name, value in _some(specs.items())},
        'image_traits': properties
        and _texts(field(properties, 'traits_required')),
        'hints': hints
        and {
            cut(name): [cut(value) for value in values[:3]]
            for name, values in _some(adapter.scheduler_hints(hints).items())
        },
        'zone': zone and cut(zone),
        'requested_host': host and cut(host),
        'forced': _texts(field(spec, 'force_hosts')),
        'forced_nodes': _texts(field(spec, 'force_nodes')),
        'ignored': _texts(field(spec, 'ignore_hosts')),
    }
    return {name: value for name, value in keys.items() if value}


def _texts(values: Iterable[Any] | None) -> list[str] | None:
    return [cut(each) for each in _some(values)] if values else None


def _some(entries: Iterable[Any]) -> list[Any]:
    return sorted(entries)[:_MOST]
