# SPDX-License-Identifier: Apache-2.0
"""The request for a server that the arguments of a command describe."""

import argparse
from collections.abc import Iterator
import contextlib
import dataclasses

from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.cli import base
from isolate_aggregates.cloud.cloud import Cloud
from isolate_aggregates.decision import Decision
from isolate_aggregates.filters import loading
from isolate_aggregates.inspect import candidates
from isolate_aggregates.request import Flavor, Request


def add_arguments(
    parser: argparse.ArgumentParser, server: bool = False
) -> None:
    """Add the arguments that describe a request for a server.

    :param server: Whether an existing server may stand for its request.
    """
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument('--flavor', metavar='<flavor>', help='Name or id')
    if server:
        what.add_argument(
            '--server',
            metavar='<server>',
            help='Id of a server of the live cloud, whose flavor, image, '
            'project and hints are used where they are not given',
        )
    parser.add_argument('--image', metavar='<image>', help='Name or id')
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
        help='Name of the one host, or compute node, to use',
    )
    parser.add_argument(
        '--boot-from-volume',
        action='store_true',
        help='The root disk is a volume, so none is taken from the host',
    )
    base.add_snapshot_argument(parser)


def add_limit_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--limit`` to the parser of a command that asks Placement."""
    parser.add_argument(
        '--limit',
        type=base.positive,
        metavar='<number>',
        help='Most allocation candidates to ask for; default: [scheduler] '
        'max_placement_results',
    )


@dataclasses.dataclass(frozen=True)
class Question:
    """A request, and what the request filters make of it in a cloud."""

    cloud: Cloud
    request: Request
    decision: Decision


@contextlib.contextmanager
def asked(app: base.Program, args: argparse.Namespace) -> Iterator[Question]:
    """Open the cloud and decide on the request that the arguments describe.

    :raises CloudFileError: if a cloud file does not describe a cloud.
    :raises NotFound: if flavor, image or project does not exist.
    """
    with base.opened(app, args) as cloud:
        pipeline = loading.as_in_nova(app.conf)
        request = _request(args, cloud)
        yield Question(
            cloud,
            request,
            candidates.decide_on(
                cloud,
                pipeline,
                request,
                limit_from(args, app.conf),
                app.conf[ia_conf.GROUP].max_query_length,
            ),
        )
        base.warn_if_unguarded(cloud, app.conf)


def limit_from(args: argparse.Namespace, conf: cfg.ConfigOpts) -> int:
    """Return the most candidates to ask for, once the cloud is open.

    A cloud file may say how many it is. Not every command has the argument.
    """
    given = getattr(args, 'limit', None)
    return int(given or conf[ia_conf.SCHEDULER].max_placement_results)


def _request(args: argparse.Namespace, cloud: Cloud) -> Request:
    """Return the request that the arguments describe.

    :raises NotFound: if flavor, image or project does not exist.
    """
    hints: dict[str, tuple[str, ...]] = {}
    for key, value in args.hint:
        hints[key] = (*hints.get(key, ()), value)
    given = Request(
        # Replaced below if a server stands for the flavor.
        flavor=cloud.flavor(args.flavor) if args.flavor else Flavor(''),
        image=cloud.image(args.image) if args.image else None,
        project_id=base.project_from(args, cloud),
        scheduler_hints=hints,
        requested_host=cloud.requested_host(args.host) if args.host else None,
        boot_from_volume=args.boot_from_volume,
    )
    if args.flavor:
        return given
    server = cloud.server(args.server)
    return dataclasses.replace(
        given,
        flavor=server.flavor,
        image=given.image
        or (cloud.image(server.image_id) if server.image_id else None),
        project_id=given.project_id or server.project_id,
        scheduler_hints={**server.scheduler_hints, **hints},
        boot_from_volume=given.boot_from_volume or not server.image_id,
    )
