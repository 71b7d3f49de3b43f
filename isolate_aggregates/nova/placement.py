# SPDX-License-Identifier: Apache-2.0
"""Connects to Placement like Nova, with ``[placement]`` in nova.conf."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
import dataclasses

from keystoneauth1 import adapter
from keystoneauth1 import exceptions as ks_exceptions
from nova import exception as nova_exception
from nova import utils
from oslo_config import cfg
from oslo_log import log as logging

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.filters.pipeline import LoadedFilter, Pipeline
from isolate_aggregates.placement import PlacementReader
from isolate_aggregates.query_limit import OUR_HOST_FILTER, Shortener
from isolate_aggregates.rest.errors import Options
from isolate_aggregates.text import short

LOG = logging.getLogger(__name__)

# The timeout in seconds for calls that must not take long.
TIMEOUT = 5.0

OPTIONS = Options(
    timeout='[placement] timeout',
    cafile='[placement] cafile',
    endpoint='[placement] endpoint_override',
)
IMPATIENT = dataclasses.replace(
    OPTIONS,
    timeout=f'{OPTIONS.timeout}, of which at most {TIMEOUT:g} are used here',
)


def impatient_client() -> PlacementReader:
    """Return a client without retries and with a short timeout."""
    return PlacementReader(
        impatient_adapter(),
        retries=0,
        options=IMPATIENT,
    )


def impatient_adapter() -> adapter.Adapter:
    """Return an adapter with a short timeout."""
    ksa_adapter = patient_adapter()
    # This applies to Keystone as well. By default there is no timeout.
    ksa_adapter.session.timeout = min(
        ksa_adapter.session.timeout or TIMEOUT, TIMEOUT
    )
    return ksa_adapter


def patient_adapter() -> adapter.Adapter:
    """Return an adapter as Nova uses it."""
    try:
        ksa_adapter: adapter.Adapter = utils.get_ksa_adapter('placement')
    except (
        ks_exceptions.ClientException,
        nova_exception.NovaException,
    ) as exc:
        raise exception.ConfigError(
            '[placement] auth_type', f'cannot be used: {short(exc)}.'
        ) from exc
    return ksa_adapter


def shortener(
    conf: cfg.ConfigOpts,
    filters: Iterable[LoadedFilter],
    sizes: Callable[[], Mapping[str, int]] | None = None,
    warn: bool = False,
) -> Shortener:
    """Return a shortener as configured.

    :param sizes: Returns the number of hosts by uuid of aggregate, if the
        source returns aggregates without hosts.
    :param warn: Whether to log that it shortens nothing.
    """
    limit = conf[ia_conf.GROUP].max_query_length
    enabled = conf.filter_scheduler.enabled_filters
    if limit and warn and OUR_HOST_FILTER not in enabled:
        LOG.warning(
            '[filter_scheduler] enabled_filters lacks %(filter)s, so no query '
            'to Placement is shortened: requests whose query would be longer '
            'than [isolate_aggregates] max_query_length are refused. Add '
            '%(filter)s to enabled_filters.',
            {'filter': OUR_HOST_FILTER},
        )
    return Shortener(limit, Pipeline(filters).locks, enabled, sizes)
