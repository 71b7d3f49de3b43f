# SPDX-License-Identifier: Apache-2.0
"""Lets one of several processes work that do the same, where that is wanted.

All of them may work at once without harm. So a process that does not learn
whether another one works does so itself.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import hashlib

from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.rest.connection import Connection
from isolate_aggregates.text import short

_OPTION = f'[{ia_conf.GROUP}] coordination_url'


@contextlib.contextmanager
def elected(
    conf: cfg.ConfigOpts, connection: Connection, *work: str
) -> Iterator[Callable[[], bool]]:
    """Elect one process of those that do the same.

    :param connection: The cloud; processes of another one do other work.
    :param work: What a process does, with whatever makes a difference to it.
    :returns: A context with a function that tells whether this process is to
        work now.
    :raises ConfigError: if nothing can be elected as it is configured.
    """
    url = conf[ia_conf.GROUP].coordination_url
    if not url:
        yield lambda: True
        return
    try:
        from isolate_aggregates.cli.election import Election
    except ImportError as exc:
        raise exception.ConfigError(
            _OPTION, 'needs tooz; install isolate-aggregates[coordination].'
        ) from exc
    try:
        election = Election(url, _name(connection, work))
    except (ImportError, RuntimeError, TypeError, ValueError) as exc:
        raise exception.ConfigError(
            _OPTION,
            f'cannot be used: {short(exc)}. It must be a URL that a driver of '
            'tooz takes, and what the driver needs must be installed.',
        ) from exc
    with contextlib.closing(election):
        yield election.is_won


def _name(connection: Connection, work: Sequence[str]) -> str:
    """Return a name that a file and a key of memcached may have.

    Clouds and regions may share what has the locks.
    """
    cloud = getattr(connection.session.auth, 'auth_url', None)
    told = repr((cloud, connection.region_name, *work)).encode()
    return f'isolate-aggregates-{work[0]}-{hashlib.sha256(told).hexdigest()}'
