# SPDX-License-Identifier: Apache-2.0
"""Explains a past request by its record, and asks it again now."""

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses
import functools
from typing import Any

from isolate_aggregates import exception
from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.record import of_decision
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.answers.deciding import decided
from isolate_aggregates_tools.cli import base, output
from isolate_aggregates_tools.cloud.cloud import Cloud
from isolate_aggregates_tools.commands import request_arguments
from isolate_aggregates_tools.commands.explain_documents import Past
from isolate_aggregates_tools.commands.request_builder import RequestedZone
from isolate_aggregates_tools.decisions import logs, told

# The record has these of the request.
_RESTORED = (
    *('image', 'availability_zone', 'port_request', 'project', 'hint'),
    *('project_domain', 'host', 'boot_from_volume'),
)
# Nova's own hints, which a user cannot give.
_INTERNAL = '_nova_'

_Explain = Callable[
    [request_arguments.Question, argparse.Namespace], output.Report
]


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Exit with status 2 if arguments do not go together."""
    if args.log and not args.request:
        parser.error('--scheduler-log needs --request')
    if not args.request:
        return
    if not args.log:
        parser.error('--request needs --scheduler-log')
    if args.log.count(logs.STDIN) > 1:
        parser.error('--scheduler-log - can be given only once')
    for name in _RESTORED:
        if getattr(args, name) != parser.get_default(name):
            option = name.replace('_', '-')
            parser.error(f'--{option} cannot be used with --request')


def report(
    app: base.Program, args: argparse.Namespace, explain: _Explain
) -> output.Report:
    """Report what was decided, what is different, and the answer of now.

    :param explain: Reports the answer to a question.
    :raises RecordNotFound: if the logs have no record of the request.
    """
    not_read = logs.NotRead()
    records = [
        record
        for record in logs.records(args.log, not_read)
        if record['request'] == args.request
    ]
    if not records:
        raise errors.RecordNotFound(
            args.request, args.log, tuple(not_read.sentences())
        )
    past = _Past(records, tuple(not_read.sentences()))
    restore = functools.partial(_restore, args, past.record)
    try:
        with request_arguments.opened(app, args, restore) as question:
            past = past.compared(question, app)
            return past.report(explain(question, args))
    except exception.IsolateAggregatesError as exc:
        # What was deleted since then, such as a forced host, is an answer.
        is_answer = isinstance(
            exc, errors.NotFound | errors.InvalidRequest
        ) and not isinstance(exc, errors.RequestUnacceptable)
        return dataclasses.replace(
            past, not_asked=str(exc), error=None if is_answer else exc
        ).report(None)


def _restore(
    args: argparse.Namespace, record: Mapping[str, Any], cloud: Cloud
) -> None:
    """Make the arguments those of the request of a record."""
    keys = record.get('keys', {})
    args.flavor = _known(cloud.flavor, record['flavor'])
    if image := record.get('image'):
        args.image = _known(cloud.image, image)
    args.project = record['project']
    args.hint = [
        (name, value)
        for name, values in keys.get('hints', {}).items()
        for value in values
        if not name.startswith(_INTERNAL)
    ]
    host, node = (
        next(iter(keys.get(name, ())), None)
        for name in ('forced', 'forced_nodes')
    )
    args.availability_zone = RequestedZone(keys.get('zone'), host, node)
    if not host and not node:
        args.host = keys.get('requested_host')


def _known(find: Callable[[str], Any], names: Mapping[str, str]) -> str:
    """Return by what a cloud knows a flavor or an image: its id or name.

    A cloud file may have no ids.
    """
    try:
        find(names['id'])
    except errors.NotFound:
        if 'name' not in names:
            raise
        find(names['name'])
        return names['name']
    return names['id']


@dataclasses.dataclass(frozen=True)
class _Past:
    """A past request, and how it is answered now.

    :param records: Its records. Nova may have scheduled it several times.
    :param not_asked: Why it cannot be asked again.
    """

    records: Sequence[Mapping[str, Any]]
    not_read: Sequence[str]
    differences: Sequence[str] = ()
    not_asked: str | None = None
    error: BaseException | None = None

    @property
    def record(self) -> Mapping[str, Any]:
        """The last record, which is compared."""
        return self.records[-1]

    def compared(
        self, question: request_arguments.Question, app: base.Program
    ) -> '_Past':
        """Return it with what is different now."""
        request = question.request
        decision = decided(
            request, question.cloud.index, Pipeline(loading.load(app.conf))
        )
        found = told.differences(
            self.record, of_decision(decision), request.flavor.extra_specs
        )
        return dataclasses.replace(self, differences=tuple(found))

    def report(self, now: output.Report | None) -> output.Report:
        """Return the report of now after that of then."""
        document = functools.partial(self._document, now)
        lines = self._lines(now is not None)
        if now is None:
            return output.Report(
                document=document,
                columns=('Host', 'Verdict', 'Reasons'),
                rows=(),
                before=lines,
                error=self.error,
            )
        return dataclasses.replace(
            now, document=document, before=[*lines, *now.before]
        )

    def _lines(self, is_asked: bool) -> Iterator[str]:
        yield 'Then:'
        for record in self.records:
            yield from (f'  {line}' for line in told.then(record))
        yield from _listed('Different now:', self.differences)
        if is_asked and not self.differences:
            yield ''
            yield 'The filters decide as they did then.'
        yield from _listed('Not restored:', self._not_restored())
        yield from _listed('Not read:', self.not_read)
        yield ''
        if self.not_asked and not self.error:
            yield f'It cannot be asked again now. {self.not_asked}'
        elif self.not_asked:
            yield 'It was not asked again now, because of an error.'
        else:
            yield 'Now:'

    def _not_restored(self) -> Iterator[str]:
        """Yield what of the request the record does not tell."""
        record = self.record
        keys = record.get('keys', {})
        if 'keys' in record.get('left_out', ()):
            yield ('zone, hosts and hints, which did not fit into the record')
        elif 'hints' in record.get('omitted', ()):
            yield (
                'scheduler hints, as [isolate_aggregates] decisions_omit '
                'leaves them out of records'
            )
        if record['operation'] == 'rebuild':
            yield 'that it was a rebuild: it is asked like a new server'
        if ignored := keys.get('ignored'):
            yield f'that Nova ignored {", ".join(ignored)}'
        if 'image' not in record:
            yield 'the volume that it boots from, if it does'
        yield 'what its ports request'

    def _document(self, now: output.Report | None) -> Past:
        return Past(
            records=tuple(self.records),
            differences=tuple(self.differences),
            not_asked=self.not_asked,
            not_restored=tuple(self._not_restored()),
            now=now.document() if now and now.document else None,
            not_read=tuple(self.not_read),
        )


def _listed(title: str, lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if not number:
            yield ''
            yield title
        yield f'  {line}'
