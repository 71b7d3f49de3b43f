# SPDX-License-Identifier: Apache-2.0
"""Limits how long a service can make its callers wait before they try again.

keystoneauth waits as long as the header ``Retry-After`` of a response says,
without a limit: a page that a proxy shows during maintenance may say an hour.
"""

import dataclasses
import logging
from typing import Any
from urllib import parse

from keystoneauth1 import session as ks_session
import requests

LOG = logging.getLogger(__name__)

_HEADER = 'Retry-After'

# The longest time in seconds.
MOST = 10


def limit(session: ks_session.Session, most: int = MOST) -> None:
    """Limit the waiting times of all calls of a session, from now on.

    :param most: The longest time in seconds; that of the first call counts.
    """
    hooks = session.session.hooks['response']
    if not any(isinstance(hook, _Limit) for hook in hooks):
        hooks.append(_Limit(most))


def within(seconds: float, retries: int) -> int:
    """Return the longest time with which all retries begin in time.

    :param seconds: How long the caller waits for the whole.
    :returns: Seconds, at least one.
    """
    # One part is left for the calls themselves.
    return min(MOST, max(1, int(seconds // (retries + 1))))


@dataclasses.dataclass(frozen=True)
class _Limit:
    """Shortens the time that a response asks to wait, and says so."""

    most: int

    def __call__(self, response: requests.Response, **_: Any) -> None:
        try:
            asked = int(response.headers.get(_HEADER, ''))
        except ValueError:
            # None is given, or a date, which keystoneauth does not follow.
            return
        if 0 <= asked <= self.most:
            return
        response.headers[_HEADER] = str(self.most)
        LOG.warning(
            '%(host)s answered %(status)d and asks to wait %(asked)d s, '
            'longer than the %(most)d s after which it is asked again.',
            {
                'host': parse.urlsplit(response.url).hostname,
                'status': response.status_code,
                'asked': asked,
                'most': self.most,
            },
        )
