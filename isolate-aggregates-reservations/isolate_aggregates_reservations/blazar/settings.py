# SPDX-License-Identifier: Apache-2.0
"""Settings in blazar.conf, and connections to Nova and Placement by them."""

import dataclasses

from blazar.plugins import instances
from blazar.utils.openstack import base
from keystoneauth1 import session
from keystoneauth1.identity import v3
from oslo_config import cfg

from isolate_aggregates.rest.connection import TIMEOUT, Connection

GROUP = instances.RESOURCE_TYPE

_OPTIONS = [
    cfg.IntOpt(
        'server_deletion_wait',
        default=5,
        min=0,
        help='Maximum number of seconds that the end of a lease waits for the '
        'servers of its reservations to be deleted. Events of other leases '
        'wait too. What remains is completed later, see completion_interval.',
    ),
    cfg.IntOpt(
        'completion_interval',
        default=30,
        min=1,
        help='Seconds between two checks for unfinished work: reservations '
        'that ended while their servers were still there, and failed calls to '
        'Nova and Placement.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(_OPTIONS, GROUP)


@dataclasses.dataclass(frozen=True)
class Connections:
    nova: Connection
    placement: Connection


def connect(conf: cfg.ConfigOpts) -> Connections:
    """Return connections to Nova and Placement like Blazar's own."""
    auth = v3.Password(
        auth_url=_auth_url(conf),
        username=conf.os_admin_username,
        password=conf.os_admin_password,
        user_domain_name=conf.os_admin_user_domain_name,
        project_name=conf.os_admin_project_name,
        project_domain_name=conf.os_admin_project_domain_name,
    )
    nova = Connection(
        session.Session(auth, verify=conf.cafile or True, timeout=TIMEOUT),
        region_name=conf.os_region_name,
        interface=(conf.nova.endpoint_type,),
    )
    return Connections(
        nova,
        dataclasses.replace(nova, interface=(conf.placement.endpoint_type,)),
    )


def _auth_url(conf: cfg.ConfigOpts) -> str:
    host = base.get_os_auth_host(conf)
    root = f'{conf.os_auth_protocol}://{host}:{conf.os_auth_port}'
    path = (conf.os_auth_prefix, conf.os_auth_version)
    return '/'.join([root, *(part for part in path if part)])
