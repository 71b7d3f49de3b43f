# SPDX-License-Identifier: Apache-2.0
"""Limits how long a service can make its callers wait before they try again.

keystoneauth waits as long as the header ``Retry-After`` of a response says,
without a limit: a page that a proxy shows during maintenance may say an hour.
"""

import logging
from typing import Any
from urllib import parse

from keystoneauth1 import session as ks_session
import requests

LOG = logging.getLogger(__name__)

_HEADER = 'Retry-After'

# The longest time in seconds.
MOST = 10


def limit(session: ks_session.Session) -> None:
    """Limit the waiting times of all calls of a session, from now on."""
    hooks = session.session.hooks['response']
    if _shorten not in hooks:
        hooks.append(_shorten)


def _shorten(response: requests.Response, **_: Any) -> None:
    """Shorten the time that a response asks to wait, and say so."""
    try:
        asked = int(response.headers.get(_HEADER, ''))
    except ValueError:
        # None is given, or a date, which keystoneauth does not follow.
        return
    if 0 <= asked <= MOST:
        return
    response.headers[_HEADER] = str(MOST)
    LOG.warning(
        '%(host)s answered %(status)d and asks to wait %(asked)d s, longer '
        'than the %(most)d s after which it is asked again.',
        {
            'host': parse.urlsplit(response.url).hostname,
            'status': response.status_code,
            'asked': asked,
            'most': MOST,
        },
    )
