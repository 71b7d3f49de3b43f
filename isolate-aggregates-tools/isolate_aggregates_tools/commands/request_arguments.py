# SPDX-License-Identifier: Apache-2.0
"""Builds the request for a server from the arguments of a command."""

import argparse
from collections.abc import Callable, Iterator
import contextlib
import dataclasses
import logging

from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import options as tools_options
from isolate_aggregates.decision import Decision
from isolate_aggregates.query_limit import OUR_HOST_FILTER
from isolate_aggregates_tools import candidates
from isolate_aggregates_tools.cli import base
from isolate_aggregates_tools.cloud.cloud import Cloud
from isolate_aggregates_tools.commands import (
    clouds,
    request_builder,
    request_documents,
)
from isolate_aggregates_tools.commands.request_builder import (
    PortRequest,
    RequestedZone,
    requested_zone,
)
from isolate_aggregates_tools.mirrored import chain, compute_services
from isolate_aggregates_tools.mirrored.mirror import Remark
from isolate_aggregates_tools.request import Request, constraints, resources

# The type of ports that are managed by another device.
_REMOTE_MANAGED = 'remote-managed'

_NO_HOST_FILTERS = (
    'which host filters run after Placement: [filter_scheduler] '
    'enabled_filters is not set here'
)
_GIVE_THEM = (
    '; specify the nova.conf of nova-scheduler with '
    f'{tools_options.CONFIG_FILE}'
)


def add_arguments(
    parser: argparse.ArgumentParser, server: bool = False, past: bool = False
) -> None:
    """Add the arguments that describe a request for a server.

    :param server: Whether an existing server can be given instead of a flavor.
    :param past: Whether a past request can be given as well.
    """
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        '--flavor', metavar='<flavor>', help='Name or id of the flavor'
    )
    if server:
        what.add_argument(
            '--server',
            metavar='<server>',
            help='Id or name of a server of the live cloud; its flavor, '
            'image, zone, ports, project and hints are used unless others are '
            'specified',
        )
    if past:
        what.add_argument(
            '--request',
            metavar='<request>',
            help='Id of a past request that --scheduler-log has; all that it '
            'asked for is used',
        )
    parser.add_argument(
        '--image', metavar='<image>', help='Name or id of the image'
    )
    parser.add_argument(
        '--availability-zone',
        type=requested_zone,
        default=RequestedZone(),
        metavar='<zone>',
        help='Availability zone to use, or <zone>:<host> to force a host',
    )
    parser.add_argument(
        '--port-request',
        action='append',
        default=[],
        type=_port_request,
        metavar='<class>=<amount>[,...][,<trait>...]',
        help='Resources and traits that a port requests, and the word '
        f'{_REMOTE_MANAGED} if it is such a port; may be repeated',
    )
    base.add_project_arguments(parser)
    parser.add_argument(
        '--hint',
        action='append',
        default=[],
        type=base.pair('scheduler hint'),
        metavar='<key>=<value>',
        help='Scheduler hint; may be repeated',
    )
    parser.add_argument(
        '--host',
        metavar='<host>',
        help='Name of the only host, or compute node, to use',
    )
    parser.add_argument(
        '--boot-from-volume',
        action='store_true',
        help='The root disk is a volume, so the host needs no space for it',
    )
    base.add_snapshot_argument(parser)


def add_limit_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--limit`` to the parser of a command that queries Placement."""
    parser.add_argument(
        '--limit',
        type=base.positive,
        metavar='<number>',
        help='Maximum number of allocation candidates; default: [scheduler] '
        'max_placement_results',
    )


def _port_request(text: str) -> PortRequest:
    """Parse what a port requests."""
    resources: dict[str, int] = {}
    words = set()
    for part in text.split(','):
        name, equals, amount = part.partition('=')
        if equals:
            resources[name] = base.positive(amount)
        else:
            words.add(name)
    traits = words - {_REMOTE_MANAGED}
    has_traits_only = bool(traits) and not resources
    if has_traits_only or not all((*resources, *words)):
        raise argparse.ArgumentTypeError(
            f'{text!r} is not a valid port request; write '
            '<class>=<amount>,...,<trait>,...'
        )
    return PortRequest(resources, frozenset(traits), traits != words)


@dataclasses.dataclass(frozen=True)
class NotKnown:
    """What affects scheduling in Nova but is unknown to a command.

    :param sentences: The sentences, each without a full stop.
    """

    sentences: tuple[str, ...]
    is_live: bool

    def lines(self) -> Iterator[str]:
        """Yield the lines for a table.

        For a cloud file, only documents mention unknown host filters.
        """
        lines = [
            each + (_GIVE_THEM if each == _NO_HOST_FILTERS else '')
            for each in self.sentences
            if self.is_live or each != _NO_HOST_FILTERS
        ]
        if lines:
            yield 'Not known here:'
            for line in lines:
                yield f'  {line}'
            yield ''


@dataclasses.dataclass(frozen=True)
class Question:
    """A request, and the decision of the request filters in a cloud."""

    cloud: Cloud
    request: Request
    decision: Decision
    not_known: NotKnown


class _Once(logging.Filter):
    """Drops messages that were logged before."""

    def __init__(self) -> None:
        super().__init__()
        self._messages: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        is_new = message not in self._messages
        self._messages.add(message)
        return is_new


@contextlib.contextmanager
def _without_repetitions() -> Iterator[None]:
    """Log each warning about a flavor only once, however often it is read."""
    logger = logging.getLogger(resources.__name__)
    once = _Once()
    logger.addFilter(once)
    try:
        yield
    finally:
        logger.removeFilter(once)


@contextlib.contextmanager
def opened(
    app: base.Program,
    args: argparse.Namespace,
    complete: Callable[[Cloud], None] = lambda cloud: None,
) -> Iterator[Question]:
    """Open the cloud and decide on the request that the arguments describe.

    :param complete: Sets arguments that depend on the cloud.
    """
    with (
        clouds.opened(app, args, remembers=True) as cloud,
        _without_repetitions(),
    ):
        complete(cloud)
        pipeline = chain.as_in_nova(app.conf)
        builder = request_builder.RequestBuilder(args, cloud, app.conf)
        request = builder.request()
        limit = limit_from(args, app.conf)
        requests = [
            dataclasses.replace(request, nova_release=release)
            for release in reversed(builder.releases)
        ]
        request = requests[0]
        decision, *others = (
            candidates.decide_on(
                cloud,
                pipeline,
                each,
                limit,
                app.conf[ia_conf.GROUP].max_query_length,
            )
            for each in requests
        )
        if any(
            constraints.required_root(other.destination)
            != constraints.required_root(decision.destination)
            or older.required_traits != request.required_traits
            for older, other in zip(requests[1:], others, strict=True)
        ):
            builder.not_known.append(
                'whether Nova is of release '
                f'{" or ".join(map(str, builder.releases))}, which require '
                'different traits here; set [isolate_aggregates] nova_release'
            )
        remarks = (
            conclusion.constraint.reason
            for conclusion in decision.destination.conclusions
            if isinstance(conclusion.constraint, Remark)
        )
        yield Question(
            cloud,
            request,
            decision,
            NotKnown(
                (
                    *builder.not_known,
                    *remarks,
                    *_afterwards(app.conf, cloud),
                    *_of_volumes(app.conf, request),
                ),
                is_live=not args.snapshot,
            ),
        )
        clouds.warn_if_unguarded(cloud, app.conf)


def _of_volumes(conf: cfg.ConfigOpts, request: Request) -> Iterator[str]:
    """Yield what is unknown about the zone of volumes."""
    if (
        request.boot_from_volume
        and not conf[tools_options.CINDER].cross_az_attach
    ):
        yield (
            'the availability zone of its volume, to which [cinder] '
            'cross_az_attach = false limits the server; specify it with '
            '--availability-zone'
        )


def _afterwards(conf: cfg.ConfigOpts, cloud: Cloud) -> Iterator[str]:
    """Yield what is unknown about the host filters of Nova."""
    enabled = conf[tools_options.HOST_FILTERS].enabled_filters
    if enabled is None:
        yield _NO_HOST_FILTERS
        return
    own_filters = {
        mirror.name for mirror in chain.MIRRORS if mirror.host_filter
    }
    # It enforces the conclusions of the request filters, which are known.
    own_filters.add(OUR_HOST_FILTER)
    if cloud.services is None:
        own_filters.remove(compute_services.NAME)
    others = [name for name in enabled if name not in own_filters]
    if others:
        yield (
            f'which hosts the host filters {", ".join(others)} drop after '
            'Placement'
        )


def rejected_lines(rejection: str | None) -> Iterator[str]:
    """Yield why Placement rejects the query, for a table."""
    if rejection:
        yield ''
        yield rejection
        yield 'Nova finds no host for a server whose query is rejected.'


def left_document(
    decision: Decision,
) -> tuple[request_documents.LeftToHostFilter, ...]:
    """Return the conclusions left to host filters, for a document."""
    return tuple(
        request_documents.LeftToHostFilter(
            filter=rest.filter_name,
            kind=rest.kind,
            reason=rest.constraint.reason,
            host_filter=OUR_HOST_FILTER,
        )
        for rest in decision.left_to_host_filters
    )


def left_lines(decision: Decision) -> Iterator[str]:
    """Yield the conclusions left to host filters, for a table."""
    if not decision.left_to_host_filters:
        return
    yield 'Left to host filters because the query would be too long:'
    for rest in decision.left_to_host_filters:
        yield (
            f'  to {OUR_HOST_FILTER}: {rest.filter_name}: '
            f'{rest.constraint.reason}'
        )
    yield ''


def limit_from(args: argparse.Namespace, conf: cfg.ConfigOpts) -> int:
    """Return the maximum number of allocation candidates.

    Call it after the cloud was opened, as a cloud file may set the default.
    Not every command has ``--limit``.
    """
    limit = getattr(args, 'limit', None)
    return int(limit or conf[ia_conf.SCHEDULER].max_placement_results)
