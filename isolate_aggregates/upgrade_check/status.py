# SPDX-License-Identifier: Apache-2.0
"""``isolate-aggregates-status``: checks for a nova-scheduler.

It reads the files that nova-scheduler reads. Output and exit codes are those
of `oslo.upgradecheck
<https://docs.openstack.org/oslo.upgradecheck/latest/>`_: 0 for success, 1 for
warnings, 2 for failures.
"""

from collections.abc import Iterable, Iterator, Sequence
import contextlib
import functools
import itertools
import logging
import sys
from typing import Any
import warnings

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck
from oslo_upgradecheck.upgradecheck import Code

from isolate_aggregates import exception, programs
from isolate_aggregates import options as tools_options
from isolate_aggregates.upgrade_check import race_probe
from isolate_aggregates.upgrade_check.checks import (
    Checks,
    placement_client,
)

# By these names oslo.config finds the files of nova-scheduler.
_PROJECT = 'nova'
_PROGRAM = 'nova-scheduler'

# The exit code of oslo.upgradecheck if no check was made.
_NOT_CHECKED = 255

_SOLD_TWICE = (
    'Placement accepted {} claims of one unit that were written at the same '
    'time. With Placement 14 to 16 set [placement] '
    'allocation_conflict_retry_count = 1 in placement.conf, or apply the '
    'patch of this package; with 9 to 13 on MySQL or MariaDB use READ '
    'COMMITTED. See "Known Placement bugs" in the documentation.'
)
_NOT_SOLD_TWICE = (
    f'Placement accepted one of {race_probe.CLAIMS} claims of one unit in '
    f'each of {race_probe.ROUNDS} rounds. This is no proof: with other '
    'workers, databases or load it may accept more.'
)


def _probe_placement() -> int:
    """Try whether Placement sells more than there is, and say so."""
    try:
        sold = race_probe.most_sold(placement_client())
    except (exception.IsolateAggregatesError, cfg.Error) as exc:
        print(exc, file=sys.stderr)
        return _NOT_CHECKED
    print(_SOLD_TWICE.format(sold) if sold > 1 else _NOT_SOLD_TWICE)
    return int(Code.FAILURE if sold > 1 else Code.SUCCESS)


def _add_commands(checks: Checks, subparsers: Any) -> None:
    """Add ``placement check`` to the command of oslo.upgradecheck."""
    upgrade = subparsers.add_parser('upgrade')
    upgrade.add_argument('check', choices=['check'])
    upgrade.add_argument(
        '--json', action='store_true', help='Print the results as JSON.'
    )
    upgrade.set_defaults(action_fn=checks.check)
    of_placement = subparsers.add_parser('placement')
    of_placement.add_argument('check', choices=['check'])
    of_placement.add_argument(
        '--probe',
        action='store_true',
        required=True,
        help='Write claims to a scratch provider and delete it afterwards.',
    )
    of_placement.set_defaults(action_fn=_probe_placement)


def main(argv: list[str] | None = None) -> int:
    """Run the program.

    :param argv: The arguments, without the name of the program.
    """
    with _only_results():
        return programs.run(_run, argv, _NOT_CHECKED)


@contextlib.contextmanager
def _only_results() -> Iterator[None]:
    """Hide logs, which the results repeat, and warnings for developers."""
    nowhere = logging.NullHandler()
    logging.getLogger().addHandler(nowhere)
    try:
        with warnings.catch_warnings():
            if not sys.warnoptions:
                warnings.simplefilter('ignore')
            yield
    finally:
        logging.getLogger().removeHandler(nowhere)


def _run(argv: Sequence[str]) -> int:
    try:
        from isolate_aggregates.nova import registration
    except ImportError:
        conf = cfg.ConfigOpts()
    else:
        conf = registration.CONF
    tools_options.register_opts(conf)
    arguments = _files_first(argv)
    conf.register_cli_opt(
        cfg.SubCommandOpt(
            'command',
            handler=functools.partial(_add_commands, Checks(conf)),
        )
    )
    programs.read(conf, arguments, _PROJECT, _PROGRAM)
    # It decides by this whether to print JSON.
    upgradecheck.CONF = conf
    return int(upgradecheck.run(conf))


def _files_first(arguments: Iterable[str]) -> list[str]:
    """Return the arguments with the files before the command.

    oslo.config does not take them behind it.
    """
    first, rest = [], []
    words = iter(arguments)
    for word in words:
        option, _, value = word.partition('=')
        if option not in ('--config-file', '--config-dir'):
            rest.append(word)
        elif value:
            first.append(word)
        else:
            first += (word, *itertools.islice(words, 1))
    return [*first, *rest]


if __name__ == '__main__':
    sys.exit(main())
