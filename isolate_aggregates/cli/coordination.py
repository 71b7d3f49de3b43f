# SPDX-License-Identifier: Apache-2.0
"""Elects one of several processes that do the same work, if configured.

It is safe if all of them work at once. So a process that cannot find out
whether another one works does the work itself.
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
    """Elect one of the processes that do the same work.

    :param connection: The cloud; each cloud has its own election.
    :param work: The name of the work, and the options that distinguish it.
    :returns: A context with a function that returns whether this process
        should work now.
    :raises ConfigError: if ``coordination_url`` cannot be used.
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
            f'cannot be used: {short(exc)}. It must be a URL that a tooz '
            'driver accepts, and the dependencies of the driver must be '
            'installed.',
        ) from exc
    with contextlib.closing(election):
        yield election.is_won


def _name(connection: Connection, work: Sequence[str]) -> str:
    """Return a name that is valid as a file name and as a memcached key.

    It depends on cloud and region, as several may share a lock service.
    """
    cloud = getattr(connection.session.auth, 'auth_url', None)
    told = repr((cloud, connection.region_name, *work)).encode()
    return f'isolate-aggregates-{work[0]}-{hashlib.sha256(told).hexdigest()}'
