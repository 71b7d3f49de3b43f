# SPDX-License-Identifier: Apache-2.0
"""One keystoneauth session and where each service is found with it."""

from collections.abc import Mapping
import dataclasses

from keystoneauth1 import adapter, loading, session
from keystoneauth1 import exceptions as ks_exceptions
from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception


@dataclasses.dataclass(frozen=True)
class Connection:
    """How to reach the services of one cloud.

    :param session: The keystoneauth session, with its credentials.
    :param region_name: The region; None for the only one.
    :param interface: Kinds of endpoints, best first.
    :param endpoints: Endpoints that go before the service catalog, by
        service type.
    """

    session: session.Session
    region_name: str | None = None
    interface: tuple[str, ...] = ('public',)
    endpoints: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def adapter(self, service_type: str) -> adapter.Adapter:
        """Return a keystoneauth adapter for one service.

        :param service_type: ``placement``, ``image`` ...
        """
        return adapter.Adapter(
            self.session,
            service_type=service_type,
            region_name=self.region_name,
            interface=list(self.interface),
            endpoint_override=self.endpoints.get(service_type),
        )


def from_conf(conf: cfg.ConfigOpts) -> Connection:
    """Return the connection that the configuration describes.

    :param conf: A configuration with our options registered.
    :raises ConfigError: if it describes none.
    """
    section = conf[ia_conf.GROUP]
    try:
        auth = loading.load_auth_from_conf_options(conf, ia_conf.GROUP)
    except (ks_exceptions.ClientException, ValueError) as exc:
        raise exception.ConfigError(
            f'[{ia_conf.GROUP}] auth_type', f'can not be used: {exc}'
        ) from exc
    if auth is None:
        raise exception.ConfigError(
            f'[{ia_conf.GROUP}] auth_type',
            'is not set, so there are no credentials for Nova and Placement; '
            'set it with auth_url, username, password and project_name.',
        )
    return Connection(
        session=loading.load_session_from_conf_options(
            conf, ia_conf.GROUP, auth=auth
        ),
        region_name=section.region_name,
        interface=tuple(section.valid_interfaces),
    )
