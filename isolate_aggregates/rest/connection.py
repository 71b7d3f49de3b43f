# SPDX-License-Identifier: Apache-2.0
"""A keystoneauth session with the settings for service endpoints."""

from collections.abc import Mapping
import dataclasses

from keystoneauth1 import adapter, loading, session
from keystoneauth1 import exceptions as ks_exceptions
from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.rest import client, retry_after
from isolate_aggregates.rest.errors import OF_COMMANDS, Options
from isolate_aggregates.text import short

# The default timeout in seconds.
TIMEOUT = 60


@dataclasses.dataclass(frozen=True)
class Connection:
    """The connection to the services of a cloud.

    :param region_name: The region; None for the only one.
    :param interface: The endpoint interfaces, in order of preference.
    :param endpoints: Endpoints that take precedence over the service catalog,
        by service type.
    :param options: The options to name in messages.
    :param max_concurrency: How many requests commands send to a service at the
        same time.
    """

    session: session.Session
    region_name: str | None = None
    interface: tuple[str, ...] = ('public',)
    endpoints: Mapping[str, str] = dataclasses.field(default_factory=dict)
    options: Options = OF_COMMANDS
    max_concurrency: int = ia_conf.MAX_CONCURRENCY

    def adapter(self, service_type: str) -> adapter.Adapter:
        """Return a keystoneauth adapter for a service."""
        return adapter.Adapter(
            self.session,
            service_type=service_type,
            region_name=self.region_name,
            interface=list(self.interface),
            endpoint_override=self.endpoints.get(service_type),
        )


def from_conf(
    conf: cfg.ConfigOpts, longest: float | None = None
) -> Connection:
    """Return the configured connection.

    :param longest: The deadline in nova-scheduler in seconds, an upper limit
        for the configured timeout, and a reason not to wait long before a
        retry; None for commands.
    """
    # Register again, as auth_section may name another group.
    loading.register_auth_conf_options(conf, ia_conf.GROUP)
    section = conf[ia_conf.GROUP]
    option = f'[{section.auth_section or ia_conf.GROUP}] auth_type'
    timeout = section.timeout or TIMEOUT
    try:
        auth = loading.load_auth_from_conf_options(conf, ia_conf.GROUP)
        if auth is None:
            raise exception.ConfigError(
                option,
                'is not set, so there are no credentials for Nova and '
                'Placement; set it, and also auth_url, username, password and '
                'project_name.',
            )
        loaded = loading.load_session_from_conf_options(
            conf,
            ia_conf.GROUP,
            auth=auth,
            timeout=min(timeout, longest or timeout),
        )
        if longest is not None:
            most = retry_after.within(longest, client.RETRIES)
            retry_after.limit(loaded, most)
        return Connection(
            session=loaded,
            region_name=section.region_name,
            interface=tuple(section.valid_interfaces),
            options=OF_COMMANDS if longest is None else _of_scheduler(longest),
        )
    except (
        cfg.NoSuchOptError,
        cfg.NoSuchGroupError,
        cfg.TemplateSubstitutionError,
    ) as exc:
        # The error has what follows the $, which may be in a password.
        raise exception.ConfigError(
            option,
            'cannot be used: one of its options has a $ without the name of '
            'an option; write $$ for a dollar sign.',
        ) from exc
    except (ks_exceptions.ClientException, TypeError, ValueError) as exc:
        raise exception.ConfigError(
            option, f'cannot be used: {short(exc)}.'
        ) from exc


def _of_scheduler(longest: float) -> Options:
    return Options(
        timeout=f'[{ia_conf.GROUP}] timeout and aggregate_deadline, the lower '
        f'of which counts (aggregate_deadline = {longest:g})',
        cafile=f'[{ia_conf.GROUP}] cafile',
    )
