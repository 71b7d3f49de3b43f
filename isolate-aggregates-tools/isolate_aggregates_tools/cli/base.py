# SPDX-License-Identifier: Apache-2.0
"""Arguments that several commands share, and how to interpret them."""

import argparse
from collections.abc import Callable
import contextvars
from typing import TYPE_CHECKING, Protocol

from oslo_config import cfg

from isolate_aggregates.aggregates import tags
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools import files, shell

if TYPE_CHECKING:
    from isolate_aggregates.rest.connection import Connection


# The words before the name of a command in the program that shows it.
program: contextvars.ContextVar[tuple[str, ...]] = contextvars.ContextVar(
    'program', default=(shell.PROGRAM,)
)


class Program(Protocol):
    """What a command needs from the program that runs it.

    The program is ``isolate-aggregates`` or ``openstack``.
    """

    conf: cfg.ConfigOpts

    def connect(self) -> 'Connection':
        """Return the connection to the live cloud, always the same one."""


class Projects(Protocol):
    """Where projects are looked up: a cloud, or Keystone."""

    def project(self, name: str, domain: str | None = None) -> str:
        """Return the id of a project by its id or name."""


def add_output_argument(
    parser: argparse._ActionsContainer, meaning: str, required: bool = False
) -> None:
    """Add ``--output``, the file that a command writes."""
    parser.add_argument(
        '--output', metavar='<file>', required=required, help=meaning
    )


def add_snapshot_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--snapshot`` to the parser of a command that only reads."""
    parser.add_argument(
        '--snapshot',
        metavar='<file>',
        type=files.named,
        help='Use this cloud file instead of the live cloud; - for the '
        'standard input',
    )


def check_live(
    parser: argparse.ArgumentParser, args: argparse.Namespace, *options: str
) -> None:
    """Exit with status 2 if ``--snapshot`` is used with certain options.

    :param options: The options that need a live cloud, such as ``servers``.
    """
    for option in options if args.snapshot else ():
        if getattr(args, option):
            parser.error(
                f'--{option} needs a live cloud: leave out --{option} or '
                '--snapshot'
            )


def add_project_arguments(
    parser: argparse.ArgumentParser,
    meaning: str = 'Name or id of the project that requests the server; with '
    '--snapshot, its id',
    required: bool = False,
) -> None:
    """Add ``--project`` and ``--project-domain`` to a parser."""
    parser.add_argument(
        '--project', required=required, metavar='<project>', help=meaning
    )
    parser.add_argument(
        '--project-domain',
        metavar='<domain>',
        help='Name or id of the domain of the project, if several domains '
        'have a project of that name',
    )


def project_from(args: argparse.Namespace, projects: Projects) -> str | None:
    """Return the id of the project in the arguments; None if none is given."""
    if not args.project:
        return None
    return projects.project(args.project, args.project_domain)


def check_metrics_client() -> None:
    """Check that prometheus-client is installed."""
    try:
        import prometheus_client  # noqa: F401
    except ImportError as exc:
        raise tools_errors.MetricsError(
            'The metrics need prometheus-client; install '
            'isolate-aggregates-tools[metrics].'
        ) from exc


def pair(what: str) -> Callable[[str], tuple[str, str]]:
    """Return a parser for arguments like ``<key>=<value>``.

    :param what: The name of the pair in errors, such as "scheduler hint".
    """

    def parse(text: str) -> tuple[str, str]:
        key, equals, value = text.partition('=')
        if not key or not equals:
            raise argparse.ArgumentTypeError(
                f'{text!r} is not a valid {what}; write <key>=<value>'
            )
        return key, value

    return parse


def trait(text: str) -> str:
    """Parse the name of a trait."""
    if not tags.is_trait_name(text):
        raise argparse.ArgumentTypeError(
            f'{text!r} cannot be the name of a trait, which has only upper '
            'case letters, digits and _, such as CUSTOM_LICENSED_WINDOWS'
        )
    return text


def positive(text: str) -> int:
    """Parse a positive integer."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(
            f'must be a positive integer, not {text!r}'
        )
    return int(text)
