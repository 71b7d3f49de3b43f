# SPDX-License-Identifier: Apache-2.0
"""Reaches Placement as Nova does, by ``[placement]`` of nova.conf."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
import functools

from keystoneauth1 import exceptions as ks_exceptions
from nova import exception as nova_exception
from nova import utils
from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.filters.pipeline import NamedFilter, Pipeline
from isolate_aggregates.placement.client import PlacementClient
from isolate_aggregates.query_limit import PlacementMembers, Shortener
from isolate_aggregates.rest import errors


def client() -> PlacementClient:
    """Return a client for Placement.

    :raises ConfigError: if the configuration can not work.
    """
    try:
        return PlacementClient(utils.get_ksa_adapter('placement'))
    except (
        ks_exceptions.ClientException,
        nova_exception.NovaException,
    ) as exc:
        raise exception.ConfigError(
            '[placement] auth_type', f'can not be used: {errors.short(exc)}.'
        ) from exc


def shortener(
    conf: cfg.ConfigOpts,
    filters: Iterable[NamedFilter],
    hosts: Callable[[], Mapping[str, frozenset[str]]],
) -> Shortener:
    """Return what makes queries fit as the configuration says.

    Placement is not asked before it is needed.

    :param conf: A configuration with our options registered.
    :param filters: The request filters.
    :param hosts: Returns the names of the hosts of all aggregates, by uuid.
    """
    limit = conf[ia_conf.GROUP].max_query_length
    return Shortener(
        limit,
        Pipeline(filters).locks,
        PlacementMembers(functools.cache(client), hosts, limit),
    )
