# SPDX-License-Identifier: Apache-2.0
"""The upgrade checks: they build what nova-scheduler builds."""

from collections.abc import Callable, Iterable, Iterator, Sequence
import functools
from importlib import metadata
import tempfile
from typing import NamedTuple
import uuid

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck
from oslo_utils import importutils

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception, filter_sets, options
from isolate_aggregates.aggregates import AggregateIndex, AggregateSource, tags
from isolate_aggregates.decision import decide
from isolate_aggregates.filters import loading
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.options import NEWEST_NOVA, OLDEST_NOVA
from isolate_aggregates.placement import FORBIDDEN_AGGREGATES, PlacementWriter
from isolate_aggregates.query_limit import OUR_HOST_FILTER
from isolate_aggregates.request import Flavor
from isolate_aggregates.request.plain import PlainRequest
from isolate_aggregates.suggestions import meant
from isolate_aggregates.upgrade_check import (
    environment,
    ineffective,
    unknown,
)
from isolate_aggregates.upgrade_check.limit_probe import (
    LimitVerdict,
    measure,
)

_PLUGIN = 'isolate_aggregates.nova.all_filters'
_IN_TREE = 'isolate_aggregates'

Result = upgradecheck.Result
Code = upgradecheck.Code


def placement_client() -> PlacementWriter:
    """Return a client for Placement with the options of Nova."""
    from isolate_aggregates.nova import placement

    return PlacementWriter(
        placement.patient_adapter(), options=placement.OPTIONS
    )


class Checks(upgradecheck.UpgradeCommands):
    """The upgrade checks.

    A cause is told once, by the first check that it makes fail.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._results: dict[str, Result] = {}

    def check(self) -> Code:
        """Make the checks and print their results; return the exit status."""
        self._upgrade_checks = tuple(
            (name, functools.partial(_same, result))
            for name, result in self.told()
        )
        return super().check()

    def told(self) -> Iterator[tuple[str, Result]]:
        """Yield the results to tell, by the names of the checks."""
        names: dict[object, list[str]] = {}
        for name in CHECKS:
            result = self.result(name)
            is_failure = result.code == Code.FAILURE
            cause = result.details if is_failure else id(result)
            names.setdefault(cause, []).append(name)
        for first, *others in names.values():
            yield first, _with_names(self.result(first), others)

    def result(self, name: str) -> Result:
        """Return the result of a check, or that of the one that prevents it.

        :param name: A key of ``CHECKS``.
        """
        if name not in self._results:
            self._results[name] = self._made(CHECKS[name])
        return self._results[name]

    def _made(self, check: '_Check') -> Result:
        for name in check.needs:
            needed = self.result(name)
            if needed.code == Code.FAILURE:
                return needed
        try:
            return check.make(self)
        except (exception.IsolateAggregatesError, cfg.Error) as exc:
            return Result(Code.FAILURE, str(exc))

    def _check_nova(self) -> Result:
        try:
            version = metadata.version('nova')
        except metadata.PackageNotFoundError:
            return Result(
                Code.FAILURE,
                'Nova is not installed in this Python environment; install '
                'isolate-aggregates where nova-scheduler is.',
            )
        major = int(version.partition('.')[0])
        if major < OLDEST_NOVA:
            return Result(
                Code.FAILURE,
                f'Nova {version} is too old; {OLDEST_NOVA} or newer is '
                'needed.',
            )
        if major > NEWEST_NOVA:
            return Result(
                Code.WARNING,
                f'Nova {version} is newer than {NEWEST_NOVA}, the newest '
                'this release was tested with.',
            )
        return Result(Code.SUCCESS, f'Nova {version}.')

    def _check_names(self) -> Result:
        """Check for options that nothing reads, or an empty variable hides."""
        names: list[unknown.UnknownName]
        if self.result('Nova').code == Code.FAILURE:
            names = unknown.misspelt_names(self._conf)
        else:
            # Registers the options of the configured request filters.
            starts = self.result('Start').code != Code.FAILURE
            names = [
                name
                for name in unknown.unknown_names(self._conf)
                if starts or not name.is_plugin
            ]
        variables = list(environment.damaging_variables(self._conf))
        if not names and not variables:
            return Result(Code.SUCCESS)
        is_certain = bool(variables) or any(n.is_certain for n in names)
        problems = '. '.join([*(n.problem for n in names), *variables])
        return Result(
            Code.FAILURE if is_certain else Code.WARNING, f'{problems}.'
        )

    def _obstacle(self) -> str | None:
        """Return why nova-scheduler would not start; None if it would."""
        from isolate_aggregates.nova import registration, source
        from isolate_aggregates.nova.messages import Observer

        try:
            section = self._conf.filter_scheduler
            if problem := _unknown_host_filters(
                section.available_filters, section.enabled_filters
            ):
                return problem
            source.configure(self._conf)
            options.check(self._conf)
            filters = loading.load(self._conf)
            # Without metrics, as this process is none of the workers.
            registration.build(self._conf, filters, Observer())
        except (exception.IsolateAggregatesError, cfg.Error) as exc:
            return str(exc)
        except Exception as exc:
            return (
                'nova-scheduler would not start, because of an unexpected '
                f'{type(exc).__name__}: {exc}.'
            )
        return None

    def _check_start(self) -> Result:
        """Build what nova-scheduler builds."""
        if obstacle := self._obstacle():
            return Result(Code.FAILURE, obstacle)
        directory = self._conf[ia_conf.GROUP].scheduler_metrics_directory
        if directory and (problem := _uncounted(directory)):
            return Result(
                Code.WARNING,
                f'[{ia_conf.GROUP}] scheduler_metrics_directory {problem}, so '
                'nothing is counted for Prometheus.',
            )
        return Result(Code.SUCCESS)

    def _check_registration(self) -> Result:
        section = self._conf.filter_scheduler
        if _PLUGIN not in section.available_filters:
            return Result(
                Code.FAILURE,
                f'[filter_scheduler] available_filters lacks {_PLUGIN}, so '
                'no request filter runs; add it after '
                'nova.scheduler.filters.all_filters.',
            )
        if OUR_HOST_FILTER not in section.enabled_filters:
            return Result(
                Code.WARNING,
                '[filter_scheduler] enabled_filters lacks '
                f'{OUR_HOST_FILTER}, so a rebuild may put any image onto an '
                'isolated host, and no query to Placement is shortened: a '
                'request whose query is longer than [isolate_aggregates] '
                'max_query_length is refused; add it.',
            )
        return Result(Code.SUCCESS)

    def _check_filters(self) -> Result:
        filters = loading.load(self._conf)
        enabled = [
            loaded_filter
            for loaded_filter in filters
            if loaded_filter.is_enabled(self._conf)
        ]
        names = [loaded_filter.name for loaded_filter in enabled]
        replacements = frozenset().union(
            *(
                loaded_filter.request_filter.REPLACES
                for loaded_filter in enabled
            )
        )
        in_tree = (
            self._conf.scheduler.enable_isolated_aggregate_filtering
            and _IN_TREE not in replacements
        )
        if in_tree:
            return Result(
                Code.WARNING,
                "Nova's in-tree isolate_aggregates runs in addition to these "
                'filters; add isolate_aggregates to [isolate_aggregates] '
                'request_filters to replace it.',
            )
        for loaded_filter in enabled:
            twice = frozenset(
                loaded_filter.request_filter.REPLACES
            ).intersection(self._conf.filter_scheduler.enabled_filters)
            if twice:
                return Result(
                    Code.WARNING,
                    f'{", ".join(sorted(twice))} repeats for every host what '
                    f'{loaded_filter.name} does before the query to '
                    'Placement; remove it from [filter_scheduler] '
                    'enabled_filters.',
                )
        if not names:
            if any(ineffective.ineffective_options(self._conf, filters)):
                return self.result('Switched-off filters')
            return Result(
                Code.WARNING,
                'No request filter is enabled, so no aggregate is isolated.',
            )
        return Result(Code.SUCCESS, f'Request filters: {", ".join(names)}.')

    def _check_source(self) -> Result:
        number = len(self._source.aggregates())
        return Result(Code.SUCCESS, f'{number} host aggregates.')

    def _check_switches(self) -> Result:
        filters = loading.load(self._conf)
        index = AggregateIndex(self._source.aggregates())
        problems = '. '.join(
            [
                *ineffective.ineffective_options(self._conf, filters),
                *self._unused_prefixes(index),
                *map(
                    str,
                    filter_sets.unused_tags(
                        filters,
                        filter_sets.enabled(filters, self._conf),
                        index,
                    ),
                ),
                *tags.problems(index),
            ]
        )
        if problems:
            return Result(Code.WARNING, f'{problems}.')
        return Result(Code.SUCCESS)

    def _unused_prefixes(self, index: AggregateIndex) -> Iterator[str]:
        """Yield the prefixes that no key has, if a similar one is used."""
        keys = {key for aggregate in index for key in aggregate.metadata}
        used = {f'{key.partition(":")[0]}:' for key in keys if ':' in key}
        for option in (
            'placement_req_required_member_prefix',
            'placement_req_default_forbidden_member_prefix',
        ):
            for prefix in self._conf.scheduler[option]:
                guess = meant(prefix, used)
                if guess and not any(key.startswith(prefix) for key in keys):
                    yield (
                        f'[scheduler] {option} has the prefix {prefix}, which '
                        f'no aggregate uses{guess}'
                    )

    @lazy_property
    def _source(self) -> AggregateSource:
        from isolate_aggregates.nova import registration

        return registration.source(self._conf)

    def _check_placement(self) -> Result:
        # An aggregate that does not exist; only the length matters.
        path = f'/resource_providers?member_of=!{uuid.UUID(int=0)}'
        try:
            placement_client().get(path, FORBIDDEN_AGGREGATES)
        except exception.ServiceError as exc:
            section = self._conf.placement
            is_answer = exc.service == 'Placement'
            if is_answer or section.auth_type or section.auth_section:
                raise
            raise exception.ConfigError(
                '[placement] auth_type',
                'is not set, so Nova has no credentials for Placement; set '
                'it, and also auth_url, username, password and project_name.',
            ) from exc
        return Result(Code.SUCCESS)

    def _check_query_limit(self) -> Result:
        from isolate_aggregates.nova import placement

        max_length = self._conf[ia_conf.GROUP].max_query_length
        limit = measure(placement.impatient_adapter(), placement.IMPATIENT)
        too_high = limit.verdict(max_length) is LimitVerdict.TOO_HIGH
        return Result(
            Code.FAILURE if too_high else Code.SUCCESS,
            limit.advice(max_length),
        )

    def _check_query_length(self) -> Result:
        """Check a request without keys, which forbids the most aggregates."""
        from isolate_aggregates.nova import placement

        index = AggregateIndex(self._source.aggregates())
        filters = loading.load(self._conf)
        request = PlainRequest(Flavor('without keys'))
        limit = f'limit={self._conf.scheduler.max_placement_results}'
        decision = decide(
            request, index, filter_sets.deciding(self._conf, filters)
        ).fit(
            placement.shortener(self._conf, filters),
            length=lambda: len(limit),
        )
        if decision.too_long:
            raise decision.too_long
        forbidden = len(decision.destination.forbidden_aggregates)
        replacement = decision.replacement
        if replacement is None:
            return Result(
                Code.SUCCESS, f'At most {forbidden} aggregates are forbidden.'
            )
        stood_for = frozenset[str]().union(
            *(rollup.aggregates for rollup in replacement.rollups)
        )
        left = len(replacement.left_out - stood_for)
        return Result(
            Code.WARNING if left else Code.SUCCESS,
            f'Of {forbidden} forbidden aggregates, a query names '
            f'{forbidden - len(replacement.left_out)}; rollups stand for '
            f'{len(replacement.left_out) - left}, and {left} are left to '
            'IsolatedAggregatesFilter. With a larger max_query_length, which '
            'the web server in front of Placement has to take, it names more.',
        )

    def _check_records(self) -> Result:
        if self._conf[ia_conf.GROUP].servers_recorded:
            return Result(
                Code.SUCCESS,
                'All servers have a record of what they were placed with.',
            )
        return Result(
            Code.WARNING,
            'Servers may have no record of what they were placed with; run '
            '"isolate-aggregates-manage record", and then set '
            f'[{ia_conf.GROUP}] servers_recorded = true.',
        )


class _Check(NamedTuple):
    """A check.

    :param needs: The checks that must not have failed.
    """

    make: Callable[[Checks], Result]
    needs: Sequence[str] = ()


_STARTED = ('Nova', 'Start')
_NAMED = (*_STARTED, 'Names in the configuration')
CHECKS = {
    'Nova': _Check(Checks._check_nova),
    'Start': _Check(Checks._check_start, ('Nova',)),
    'Names in the configuration': _Check(Checks._check_names),
    'Registration': _Check(Checks._check_registration, _STARTED),
    'Request filters': _Check(Checks._check_filters, _NAMED),
    'Aggregate source': _Check(Checks._check_source, _STARTED),
    'Switched-off filters': _Check(
        Checks._check_switches, (*_NAMED, 'Aggregate source')
    ),
    'Placement': _Check(Checks._check_placement, _STARTED),
    'Query limit': _Check(Checks._check_query_limit, ('Placement',)),
    'Query length': _Check(Checks._check_query_length, ('Aggregate source',)),
    'Records of servers': _Check(Checks._check_records),
}


def _same(result: Result, _: Checks) -> Result:
    return result


def _with_names(result: Result, others: Sequence[str]) -> Result:
    """Return a result that names the other checks with the same cause."""
    if not others:
        return result
    return Result(
        result.code,
        f'{str(result.details).rstrip(".")}. For the same reason these fail '
        f'or cannot be made: {", ".join(others)}.',
    )


def _unknown_host_filters(
    available: Sequence[str], enabled: Iterable[str]
) -> str | None:
    """Return why nova-scheduler would not start; None if it would."""
    from isolate_aggregates.nova import host_filter

    names = {host_filter.IsolatedAggregatesFilter.__name__}
    for path in available:
        # It would add the request filters to Nova's, in this process.
        if path == _PLUGIN:
            continue
        try:
            classes = host_filter.host_filters(path)
        except Exception as exc:
            # It may be a module, or run any code of others.
            # That of oslo.utils has a traceback in its text.
            reason = exc.__context__ or exc
            return (
                f'[filter_scheduler] available_filters names {path}, which '
                f'cannot be loaded ({reason}), so nova-scheduler does not '
                'start; correct or remove it.'
            )
        names.update(one.__name__ for one in classes)
    unknown_filters = [
        f'{name}{meant(name, names)}' for name in enabled if name not in names
    ]
    if unknown_filters:
        return (
            '[filter_scheduler] enabled_filters names '
            f'{", ".join(unknown_filters)}, which available_filters does not '
            'provide, so nova-scheduler does not start; correct or remove it.'
        )
    return None


def _uncounted(directory: str) -> str | None:
    """Return why nothing can be counted into a directory; None if it can."""
    if importutils.try_import('prometheus_client') is None:
        return 'needs prometheus-client; install isolate-aggregates[metrics]'
    try:
        with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
            file.write(bytes(1))
    except OSError as exc:
        return f'is {directory}, where nothing can be written ({exc.strerror})'
    return None
