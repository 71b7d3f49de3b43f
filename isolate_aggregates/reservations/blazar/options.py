# SPDX-License-Identifier: Apache-2.0
"""Options in blazar.conf for these plugins."""

from blazar.plugins import instances
from oslo_config import cfg

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
