# SPDX-License-Identifier: Apache-2.0
"""The report on expectations, which can be handed in: as JSON and as JUnit."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses
import datetime
import hashlib
from importlib import metadata
import json
import os
from typing import Any

from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import options
from isolate_aggregates.text import escaped
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools import files
from isolate_aggregates_tools.cloud.file import serialize
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.effect.documents import refused
from isolate_aggregates_tools.expectations import documents
from isolate_aggregates_tools.expectations.answers import Answers
from isolate_aggregates_tools.expectations.documents import (
    Expectation,
    Filter,
    Problem,
)
from isolate_aggregates_tools.expectations.expectation import Result
from isolate_aggregates_tools.expectations.mutations import Coverage
from isolate_aggregates_tools.expectations.reasons import reasons
from isolate_aggregates_tools.mirrored import chain
from isolate_aggregates_tools.repairs.outcome import Refusal

_PACKAGE = 'isolate-aggregates'
_SUITE = 'isolation'
# In each JUnit file.
_MARK = f'<testsuite name="{_SUITE}"'


@dataclasses.dataclass(frozen=True)
class Report:
    """Whether a cloud meets expectations.

    :param path: The file of the expectations.
    :param cloud: Where the cloud was read from.
    :param cloud_digest: The SHA-256 digest of what decides in the cloud.
    :param file_digests: The SHA-256 digests of the files that were read.
    :param changes: The commands of the changes that were made in memory.
    :param filters: The request filters that decided, each with its package.
    :param coverage: The result of the mutations; None if there were none.
    :param refused: The changes that Nova refuses, which are left out.
    :param unread: What was not read of the files of the changes.
    """

    time: datetime.datetime
    path: str
    cloud: str
    cloud_digest: str
    file_digests: Mapping[str, str]
    changes: tuple[str, ...]
    filters: tuple[Filter, ...]
    lines: tuple[Expectation, ...]
    not_known: tuple[str, ...] = ()
    coverage: Coverage | None = None
    refused: tuple[Refusal, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def failures(self) -> tuple[Expectation, ...]:
        """The expectations that the cloud does not meet."""
        return tuple(line for line in self.lines if line.problems)

    @property
    def is_passed(self) -> bool:
        """Whether all are met, and notice all mutations."""
        return not self.failures and not (self.coverage and self.coverage.gaps)


def lines(
    results: Iterable[Result], answers: Answers
) -> Iterator[Expectation]:
    """Yield the results for expectations, with the reasons."""
    for result in results:
        yield Expectation(
            name=result.expectation.name,
            line=result.expectation.line,
            result='failed' if result.violations else 'passed',
            problems=tuple(
                Problem(
                    problem=violation.text,
                    extra_hosts=violation.extra_hosts,
                    missing_hosts=frozenset()
                    if violation.is_room
                    else violation.missing_hosts,
                    reasons=tuple(reasons(violation, answers)),
                )
                for violation in result.violations
            ),
        )


def document(report: Report) -> documents.Test:
    """Return a report as a JSON document."""
    coverage = report.coverage
    return documents.Test(
        time=report.time.isoformat(timespec='seconds'),
        version=metadata.version(_PACKAGE),
        filters=report.filters,
        cloud=documents.Cloud(source=report.cloud, sha256=report.cloud_digest),
        files=tuple(
            documents.File(name=name, sha256=digest)
            for name, digest in report.file_digests.items()
        ),
        changes=report.changes,
        passed=len(report.lines) - len(report.failures),
        failed=len(report.failures),
        expectations=report.lines,
        not_known=report.not_known,
        refused=refused(report.refused),
        unread=report.unread,
        mutations=None
        if coverage is None
        else documents.Mutations(
            noticed=coverage.noticed,
            without_effect=coverage.without_effect,
            unnoticed=tuple(
                documents.Mutation(
                    kind=gap.mutation.kind,
                    subject=gap.mutation.subject,
                    key=gap.mutation.key,
                    replacement=gap.mutation.replacement,
                    effect=gap.effect,
                )
                for gap in coverage.gaps
            ),
        ),
    )


def digest_of_file(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 digest of a file, as ``sha256sum`` prints it."""
    return hashlib.sha256(files.read_bytes(path)).hexdigest()


def digest_of_cloud(
    snapshot: Snapshot, conf: cfg.ConfigOpts, nova_release: int
) -> str:
    """Return the SHA-256 digest of all that decides in a cloud.

    These are the objects of the cloud, in any order, and the options of
    nova-scheduler that matter.

    :param nova_release: The release of Nova that is assumed.
    """
    # Names of projects decide nothing.
    state = serialize.document(dataclasses.replace(snapshot, keystone=None))
    state['settings'] = {
        f'{group}.{option}': options.value_of(conf, group, option)
        for group, option in options.CLOUD_SETTINGS
    }
    state['settings'][f'{ia_conf.GROUP}.nova_release'] = nova_release
    text = _canonical(state)
    return hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()


def _canonical(value: Any) -> str:
    """Return a text that does not depend on the order of objects."""
    if isinstance(value, dict):
        pairs = (f'{json.dumps(k)}:{_canonical(value[k])}' for k in value)
        return f'{{{",".join(sorted(pairs))}}}'
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return f'[{",".join(sorted(map(_canonical, value)))}]'
    return json.dumps(value, default=list)


def filters(conf: cfg.ConfigOpts) -> tuple[Filter, ...]:
    """Return the filters that decide, each with its package."""
    return tuple(
        Filter(name=one.name, origin=one.origin)
        for one in chain.installed_filters(conf)
        if one.enabled
    )


def check_junit(path: str | os.PathLike[str]) -> None:
    """Check that a JUnit file can be written."""
    try:
        files.check(path, _MARK)
        import junitparser  # noqa: F401
    except OSError as exc:
        raise tools_errors.ReportError(path, f'{exc.strerror}') from exc
    except ImportError as exc:
        raise tools_errors.ReportError(
            path,
            'it needs junitparser; install isolate-aggregates-tools[junit]',
        ) from exc


def write_junit(report: Report, path: str | os.PathLike[str]) -> None:
    """Write a report as a JUnit file, atomically.

    :raises ReportError: if it cannot be written.
    """
    text = junit(report).tostring().decode('utf-8')
    try:
        with files.replacing(path, _MARK) as stream:
            stream.write(text)
    except OSError as exc:
        raise tools_errors.ReportError(path, f'{exc.strerror}') from exc


def junit(report: Report) -> Any:
    """Return a report as JUnit: a test for each expectation.

    A mutation that no expectation notices is a failed test of its own, and
    what was not read of the changes is an error.
    """
    import junitparser

    suite = junitparser.TestSuite(_SUITE)
    suite.timestamp = report.time.isoformat(timespec='seconds')
    for name, value in _properties(report):
        suite.add_property(escaped(name), escaped(value))
    for line in report.lines:
        case = _case(junitparser, report, line.name)
        case.line = str(line.line)
        if line.problems:
            failure = junitparser.Failure(
                escaped('; '.join(p.problem for p in line.problems))
            )
            failure.text = '\n'.join(map(escaped, _details(line.problems)))
            case.result = [failure]
        suite.add_testcase(case)
    for gap in report.coverage.gaps if report.coverage else ():
        case = _case(junitparser, report, f'notices: {gap.mutation}')
        failure = junitparser.Failure('no expectation notices it')
        failure.text = escaped(gap.effect)
        case.result = [failure]
        suite.add_testcase(case)
    for sentence in report.unread:
        case = _case(junitparser, report, 'the changes are read whole')
        case.result = [junitparser.Error(escaped(sentence))]
        suite.add_testcase(case)
    xml = junitparser.JUnitXml()
    xml.add_testsuite(suite)
    return xml


def _case(junitparser: Any, report: Report, name: str) -> Any:
    class Case(junitparser.TestCase):  # type: ignore[misc]
        """A test with its place, which GitLab shows."""

        file = junitparser.Attr()
        line = junitparser.Attr()

    case = Case(escaped(name), classname='isolation')
    case.file = escaped(report.path)
    return case


def _properties(report: Report) -> Iterable[tuple[str, str]]:
    yield 'version', metadata.version(_PACKAGE)
    yield 'cloud', report.cloud
    yield 'cloud.sha256', report.cloud_digest
    for name, digest in report.file_digests.items():
        yield f'{name}.sha256', digest
    for change in report.changes:
        yield 'change', change


def _details(problems: Sequence[Problem]) -> Iterable[str]:
    for problem in problems:
        yield problem.problem
        for reason in problem.reasons:
            yield f'  {reason}'
