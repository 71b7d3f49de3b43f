# SPDX-License-Identifier: Apache-2.0
"""Reaches Placement as Nova does, by ``[placement]`` of nova.conf."""

from __future__ import annotations

from collections.abc import Callable, Iterable
import functools

from keystoneauth1 import adapter
from keystoneauth1 import exceptions as ks_exceptions
from nova import exception as nova_exception
from nova import utils
from oslo_config import cfg
from oslo_log import log as logging

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.filters.pipeline import NamedFilter, Pipeline
from isolate_aggregates.placement.client import PlacementClient
from isolate_aggregates.query_limit import (
    OUR_HOST_FILTER,
    Limit,
    PlacementMembers,
    Shortener,
    VerifiedMembers,
    measure,
)
from isolate_aggregates.text import short

LOG = logging.getLogger(__name__)

# Seconds for which an answer is waited for by those who may not wait long.
TIMEOUT = 5.0


def client() -> PlacementClient:
    """Return a client for Placement.

    :raises ConfigError: if the configuration cannot work.
    """
    return PlacementClient(_adapter())


def impatient_client() -> PlacementClient:
    """Return a client that asks once and does not wait for long.

    :raises ConfigError: if the configuration cannot work.
    """
    return PlacementClient(_impatient_adapter(), retries=0)


def query_limit() -> Limit:
    """Find how long a query may be on the way that nova-scheduler takes.

    :raises ConfigError: if the configuration cannot work.
    :raises ServiceError: if Placement gives no usable answer.
    """
    return measure(_impatient_adapter())


def _impatient_adapter() -> adapter.Adapter:
    made = _adapter()
    # For Keystone as well. Without the option there would be none.
    made.session.timeout = min(made.session.timeout or TIMEOUT, TIMEOUT)
    return made


def _adapter() -> adapter.Adapter:
    try:
        made: adapter.Adapter = utils.get_ksa_adapter('placement')
    except (
        ks_exceptions.ClientException,
        nova_exception.NovaException,
    ) as exc:
        raise exception.ConfigError(
            '[placement] auth_type', f'cannot be used: {short(exc)}.'
        ) from exc
    return made


def shortener(
    conf: cfg.ConfigOpts,
    filters: Iterable[NamedFilter],
    wait: bool = False,
    verified: Callable[[str], None] = lambda result: None,
) -> Shortener:
    """Return what makes queries fit as the configuration says.

    Placement is not asked before it is needed.

    :param conf: A configuration with our options registered.
    :param filters: The request filters.
    :param wait: Whether Placement is asked while a query is made to fit; if
        not, a thread asks it.
    :param verified: Is told how each comparison of that thread ended.
    """
    limit = conf[ia_conf.GROUP].max_query_length
    members: PlacementMembers | VerifiedMembers | None = None
    enabled = conf.filter_scheduler.enabled_filters
    if OUR_HOST_FILTER in enabled:
        members = (
            PlacementMembers(functools.cache(client), limit)
            if wait
            else VerifiedMembers(
                functools.cache(impatient_client), limit, verified=verified
            )
        )
    elif limit and not wait:
        LOG.warning(
            '[filter_scheduler] enabled_filters lacks %(filter)s, so no query '
            'to Placement is shortened: requests whose query would be longer '
            'than [isolate_aggregates] max_query_length are refused. Add '
            '%(filter)s to enabled_filters.',
            {'filter': OUR_HOST_FILTER},
        )
    return Shortener(
        limit, Pipeline(filters).locks, members, host_filters=enabled
    )
