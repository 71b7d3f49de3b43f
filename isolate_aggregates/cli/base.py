# SPDX-License-Identifier: Apache-2.0
"""Arguments that several commands share, and what they stand for."""

import argparse
from collections.abc import Iterator
import contextlib
import dataclasses
from typing import Protocol

from oslo_config import cfg
from oslo_log import log as logging

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.cloud import file as cloud_file
from isolate_aggregates.cloud.clouds import Cloud, LiveCloud, SnapshotCloud
from isolate_aggregates.cloud.snapshot import Snapshot
from isolate_aggregates.request import Flavor, Request
from isolate_aggregates.request.extra_specs import REQUIRED, TRAIT_PREFIX
from isolate_aggregates.rest.connection import Connection

LOG = logging.getLogger(__name__)


class Program(Protocol):
    """What a command needs of the program it runs in, whichever it is."""

    conf: cfg.ConfigOpts

    def connect(self) -> Connection:
        """Return the connection to the live cloud."""


def add_snapshot_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--snapshot`` to the parser of a command that only reads.

    :param parser: The parser of the command.
    """
    parser.add_argument(
        '--snapshot',
        metavar='<file>',
        help='Ask this cloud file instead of the live cloud',
    )


def add_request_arguments(
    parser: argparse.ArgumentParser, server: bool = False
) -> None:
    """Add the arguments that describe a request for a server.

    :param parser: The parser of the command.
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
    add_project_arguments(parser)
    parser.add_argument(
        '--hint',
        action='append',
        default=[],
        type=_hint,
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
    add_snapshot_argument(parser)


def add_project_arguments(
    parser: argparse.ArgumentParser,
    meaning: str = 'Name or id of the project that asks; with --snapshot its '
    'id',
    required: bool = False,
) -> None:
    """Add ``--project`` and its domain to the parser of a command.

    :param parser: The parser of the command.
    :param meaning: What the project is to the command.
    :param required: Whether it has to be given.
    """
    parser.add_argument(
        '--project', required=required, metavar='<project>', help=meaning
    )
    parser.add_argument(
        '--project-domain',
        metavar='<domain>',
        help='Name or id of the domain of the project, if projects of '
        'several domains have its name',
    )


def project_from(args: argparse.Namespace, cloud: Cloud) -> str | None:
    """Return the id of the project that asks, None for nobody in particular.

    :param args: The parsed arguments.
    :param cloud: Where the project is looked up.
    :raises NotFound: if there is no such project.
    :raises NotUnique: if several projects have the name.
    """
    if not args.project:
        return None
    return cloud.project(args.project, args.project_domain)


def add_limit_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--limit`` to the parser of a command that asks Placement.

    :param parser: The parser of the command.
    """
    parser.add_argument(
        '--limit',
        type=positive,
        metavar='<number>',
        help='Most allocation candidates to ask for; default: [scheduler] '
        'max_placement_results',
    )


def request_from(args: argparse.Namespace, cloud: Cloud) -> Request:
    """Return the request that the arguments describe.

    :param args: The parsed arguments.
    :param cloud: Where flavor, image, host and project are looked up.
    :raises NotFound: if flavor, image or project does not exist.
    """
    hints: dict[str, tuple[str, ...]] = {}
    for key, value in args.hint:
        hints[key] = (*hints.get(key, ()), value)
    given = Request(
        # Replaced below if a server stands for the flavor.
        flavor=cloud.flavor(args.flavor) if args.flavor else Flavor(''),
        image=cloud.image(args.image) if args.image else None,
        project_id=project_from(args, cloud),
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


def limit_from(args: argparse.Namespace, conf: cfg.ConfigOpts) -> int:
    """Return the most candidates to ask for.

    :param args: The parsed arguments.
    :param conf: The configuration.
    """
    return int(args.limit or conf[ia_conf.SCHEDULER].max_placement_results)


def max_length_from(conf: cfg.ConfigOpts) -> int:
    """Return the most bytes of a query that may be spent on aggregates.

    :param conf: The configuration.
    """
    return int(conf[ia_conf.GROUP].max_query_length)


@contextlib.contextmanager
def opened(app: Program, args: argparse.Namespace) -> Iterator[Cloud]:
    """Open the cloud that the arguments name, and close it at the end.

    :param app: The program.
    :param args: The parsed arguments.
    :raises CloudFileError: if a cloud file does not describe a cloud.
    """
    cloud: Cloud
    if args.snapshot:
        snapshot = cloud_file.load(args.snapshot)
        apply_settings(app.conf, snapshot)
        cloud = SnapshotCloud(snapshot)
    else:
        cloud = LiveCloud(app.conf, app.connect)
    try:
        yield cloud
    finally:
        cloud.close()


def apply_settings(conf: cfg.ConfigOpts, snapshot: Snapshot) -> None:
    """Use the scheduler settings of a snapshot where nothing else is set.

    :param conf: The configuration.
    :param snapshot: The snapshot.
    :raises CloudFileError: if a setting has a value it can not have.
    """
    for (group, option), value in snapshot.settings.items():
        try:
            conf.set_default(option, _as_written(value), group)
            conf[group][option]
        except (ValueError, TypeError) as exc:
            raise exception.CloudFileError(
                snapshot.origin,
                [f'$.settings.{group}.{option} can not be {value!r}: {exc}'],
            ) from exc


def _as_written(value: object) -> str | list[str]:
    """Return a value as a configuration file would have it.

    A value of YAML's own types is not looked at as closely as a text.
    """
    if isinstance(value, list):
        return [str(_as_written(item)) for item in value]
    if isinstance(value, str | int | float):
        return str(value)
    raise TypeError('write a text, a number, true, false or a list of them')


def _hint(text: str) -> tuple[str, str]:
    key, equals, value = text.partition('=')
    if not key or not equals:
        raise argparse.ArgumentTypeError(
            f'{text!r} is no scheduler hint; write <key>=<value>'
        )
    return key, value


def positive(text: str) -> int:
    """Return the whole number from 1 on that an argument gives.

    :param text: The argument.
    :raises ArgumentTypeError: if it is none.
    """
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(
            f'{text!r} is no whole number from 1 on'
        )
    return int(text)


def warn_if_unguarded(cloud: Cloud, conf: cfg.ConfigOpts) -> None:
    """Say so when aggregates are tagged but the option is off.

    :param cloud: The cloud.
    :param conf: The configuration.
    """
    if conf[ia_conf.SCHEDULER].enable_isolated_aggregate_filtering:
        return
    locked = sum(
        len(group.aggregates)
        for group in cloud.index.locks(TRAIT_PREFIX, REQUIRED)
    )
    if locked:
        LOG.warning(
            'Aggregates tagged %s<NAME>=%s: %d; the tag has no effect '
            'because [scheduler] enable_isolated_aggregate_filtering is '
            'false.',
            TRAIT_PREFIX,
            REQUIRED,
            locked,
        )
