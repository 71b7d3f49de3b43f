# SPDX-License-Identifier: Apache-2.0
"""Arguments that describe changes of a cloud, and the cloud after them."""

import argparse
from collections.abc import Collection, Iterable, Iterator
import dataclasses
from typing import Any

from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.aggregates.aggregate import ZONE, zone_of
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.suggestions import meant
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.cli import base, terminal, usage
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.effect import formats
from isolate_aggregates_tools.effect.formats.planned import Planned
from isolate_aggregates_tools.operate import names
from isolate_aggregates_tools.repairs import commands, outcome

_HOST = ('<aggregate>', '<host>')

# Options with what they take and do.
_OPTIONS = {
    '--add-host': (_HOST, 'Add a host to an aggregate'),
    '--remove-host': (_HOST, 'Remove a host from an aggregate'),
    '--set': (
        ('<aggregate>', '<key>=<value>'),
        'Set metadata of an aggregate',
    ),
    '--unset': (('<aggregate>', '<key>'), 'Remove metadata of an aggregate'),
    '--flavor-set': (
        ('<flavor>', '<key>=<value>'),
        'Set an extra spec of a flavor',
    ),
    '--flavor-unset': (
        ('<flavor>', '<key>'),
        'Remove an extra spec of a flavor',
    ),
    '--image-set': (
        ('<image>', '<key>=<value>'),
        'Set a property of an image',
    ),
    '--image-unset': (
        ('<image>', '<key>'),
        'Remove a property of an image',
    ),
}

# The option for a file.
_FILE = '--terraform-plan'

_pair = base.pair('setting')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for changes, which are made in their order."""
    for option, (metavar, what) in _OPTIONS.items():
        parser.add_argument(
            option,
            nargs=2,
            action=_Appended,
            dest='changes',
            default=[],
            metavar=metavar,
            help=f'{what}; may be repeated',
        )
    parser.add_argument(
        _FILE,
        action=_Appended,
        dest='changes',
        type=usage.not_empty,
        metavar='<file>',
        help='Make the changes of this file: a plan of Terraform, as '
        'terraform show -json writes it',
    )
    parser.add_argument(
        '--sync',
        action=_Appended,
        nargs=0,
        dest='changes',
        help='Run sync; may be repeated',
    )


def is_file(option: str) -> bool:
    """Return whether an option for changes takes a file."""
    return option == _FILE


@dataclasses.dataclass(frozen=True)
class Changed:
    """A cloud after changes.

    :param steps: The commands that make the changes.
    :param unknown: What is not known, without what was not read.
    :param unread: What was not read of files of other tools, or left out.
    :param refused: The steps that Nova refuses, if they are known.
    """

    after: Snapshot
    steps: commands.Commands = ()
    unknown: tuple[str, ...] = ()
    refused: tuple[outcome.Refusal, ...] = ()
    unread: tuple[str, ...] = ()


def changed(
    before: Snapshot,
    changes: Iterable[tuple[str, Any]],
    filters: Pipeline,
    conf: cfg.ConfigOpts,
) -> Changed:
    """Make the changes that the arguments describe, in memory.

    :param changes: The value of ``changes`` in the arguments.
    :param filters: All configured filters, whose locks ``sync`` maintains.
    :param conf: The configuration, which may have the region of the cloud.
    """
    ia_conf.register_connection_opts(conf)
    region = conf[ia_conf.GROUP].region_name
    cloud = Changed(before)
    for option, words in changes:
        planned = _planned(cloud.after, option, words, region)
        cloud = Changed(
            outcome.after(cloud.after, planned.commands, filters),
            cloud.steps + planned.commands,
            cloud.unknown + planned.kept,
            unread=cloud.unread + planned.unread,
        )
    return cloud


def unread_lines(unread: Iterable[str]) -> Iterator[str]:
    """Yield what was not read of files, so the effect may be another."""
    for sentence in unread:
        yield f'Not read: {sentence}'


def refused_lines(
    steps: Iterable[outcome.Refusal],
) -> Iterator[str]:
    """Yield the steps that Nova refuses."""
    for each in steps:
        yield f'Nova refuses this step, which is left out: {each.reason}.'
        yield terminal.Shell(f'  {commands.shown([each.command])}')


class _Appended(argparse.Action):
    """Keeps the order of all changes, and checks those of settings."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if '<key>=<value>' in (self.metavar or ()):
            name, text = values
            try:
                values = name, _pair(text)
            except argparse.ArgumentTypeError as exc:
                raise argparse.ArgumentError(self, str(exc)) from exc
        entries = [*namespace.changes, (option_string or '', values)]
        namespace.changes = entries


def _planned(
    snapshot: Snapshot, option: str, words: Any, region: str | None
) -> Planned:
    """Return the changes that an option describes."""
    if option == '--sync':
        return Planned(commands.SYNC)
    if is_file(option):
        return formats.read(words, snapshot, region)
    name, what = words
    return Planned(tuple(_commands(snapshot, option, name, what)))


def _commands(
    snapshot: Snapshot, option: str, name: str, what: Any
) -> Iterable[commands.Command]:
    if option.startswith('--flavor'):
        flavor = snapshot.flavor(name)
        if option == '--flavor-set':
            return [commands.set_value(flavor, *what)]
        _check_key(what, flavor.extra_specs, f'flavor {flavor.name}')
        return commands.unset(flavor, what)
    if option.startswith('--image'):
        image = snapshot.image(name)
        if option == '--image-set':
            return [commands.set_value(image, *what)]
        _check_key(what, image.properties, f'image {image.name}')
        return commands.unset(image, what)
    aggregate = names.aggregate(snapshot.aggregates, name, snapshot.origin)
    if option == '--set':
        return [commands.set_value(aggregate, *what)]
    if option == '--unset':
        zone = {ZONE} if zone_of(aggregate) else set()
        keys = aggregate.metadata.keys() | zone
        _check_key(what, keys, f'aggregate {aggregate.name}')
        return commands.unset(aggregate, what)
    hosts = {p.host for p in snapshot.providers if p.host}
    if option == '--add-host':
        _check_host(what, hosts, snapshot.origin)
        return commands.add_hosts(aggregate, [what])
    _check_host(what, aggregate.hosts, f'aggregate {aggregate.name}')
    return commands.remove_hosts(aggregate, [what])


def _check_host(host: str, hosts: Collection[str], place: str) -> None:
    if host not in hosts:
        raise errors.NotFound('host', host, place, sorted(hosts))


def _check_key(key: str, keys: Collection[str], place: str) -> None:
    if key not in keys:
        raise errors.InvalidRequest(
            f'There is no key {key!r} in {place}{meant(key, sorted(keys))}.'
        )
