# SPDX-License-Identifier: Apache-2.0
"""Records a cloud in a ledger file, for programs that watch it anyway."""

import argparse
from collections.abc import Callable, Iterator
import contextlib
import logging

from oslo_config import cfg

from isolate_aggregates import exception
from isolate_aggregates_tools.cloud.live.live_cloud import LiveCloud

LOG = logging.getLogger(__name__)

Record = Callable[[LiveCloud], None]


def add_argument(parser: argparse.ArgumentParser, condition: str = '') -> None:
    """Add ``--ledger`` to the parser of a command that watches a cloud.

    :param condition: What the option needs, as the beginning of a sentence.
    """
    parser.add_argument(
        '--ledger',
        metavar='<file>',
        help=f'{condition}Append a line to this file whenever locks, members '
        'of aggregates or hosts of servers have changed; see the command '
        'ledger',
    )


@contextlib.contextmanager
def recording(
    path: str | None, conf: cfg.ConfigOpts, interval: int
) -> Iterator[Record]:
    """Open a ledger file, and return a function that records a cloud in it.

    The function logs errors, as the program has more to do.

    :param path: None to record nothing.
    :raises LedgerError: if the file cannot be written.
    """
    if path is None:
        yield lambda cloud: None
        return
    # Few programs that watch a cloud record it.
    from isolate_aggregates_tools.ledger.reading import look
    from isolate_aggregates_tools.ledger.writer import LedgerWriter

    writer = LedgerWriter(path, interval)

    def record(cloud: LiveCloud) -> None:
        try:
            writer.look(look(cloud, conf))
        except exception.IsolateAggregatesError as exc:
            LOG.error('The ledger has a gap: %s', exc)

    try:
        yield record
    finally:
        writer.close()
