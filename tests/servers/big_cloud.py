# SPDX-License-Identifier: Apache-2.0
"""A cloud with a thousand isolated aggregates and a few hosts."""

import contextlib
import uuid

from fake_nova import FakeNova
from http_fakes import NOVA
from oslo_db.sqlalchemy import enginefacade
from placement import db_api
import placement_rows
import requests_mock

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.request import Flavor
from isolate_aggregates_tools.compute.client import ComputeNode
from isolate_aggregates_tools.placement.provider import Inventory, Provider

AGGREGATES = 1000
LICENSES = 30

PLAIN_HOSTS = ('plain-1', 'plain-2', 'plain-3')
# A host for each license, and one that needs two of them.
LICENSED_HOSTS = tuple(f'licensed-{i}' for i in range(LICENSES))
TWICE = 'licensed-twice'
HOSTS = (*PLAIN_HOSTS, *LICENSED_HOSTS, TWICE)

LICENSE_7 = {'trait:CUSTOM_LICENSE_7': 'required'}
FLAVORS = (
    Flavor('plain', '1', 1, 512, 10),
    Flavor('license-7', '2', 1, 512, 10, extra_specs=LICENSE_7),
)


def identity(kind, name):
    """Return a uuid that is always the same."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, f'{kind} {name}'))


def aggregates():
    """Return the aggregates; those of one license share its host."""
    found = []
    for number in range(AGGREGATES):
        license = number % LICENSES
        hosts = {LICENSED_HOSTS[license]}
        if number in (6, 7):
            hosts.add(TWICE)
        found.append(
            Aggregate(
                uuid=identity('aggregate', number),
                name=f'licensed-{number}',
                metadata={f'trait:CUSTOM_LICENSE_{license}': 'required'},
                hosts=frozenset(hosts),
                id=number,
            )
        )
    return found


def load(database):
    """Put the hosts into a Placement, as nova-compute does.

    :param database: The file of its database.
    """
    file = enginefacade.transaction_context()
    file.configure(connection=f'sqlite:///{database}')
    with contextlib.ExitStack() as stack:
        restore = db_api.placement_context_manager.patch_factory(file)
        stack.callback(restore)
        stack.callback(file.writer.get_engine().dispose)
        placement_rows.load(
            Provider(
                uuid=identity('host', name),
                name=name,
                inventories={
                    'VCPU': Inventory(8),
                    'MEMORY_MB': Inventory(16384),
                    'DISK_GB': Inventory(500),
                },
            )
            for name in HOSTS
        )


def answer(http, placement):
    """Run a fake Nova; Placement is called over the network.

    :param http: Where Nova answers.
    :param placement: The endpoint of Placement.
    """
    http.register_uri(
        requests_mock.ANY,
        requests_mock.ANY,
        real_http=True,
        additional_matcher=lambda request: request.url.startswith(placement),
    )
    FakeNova(
        aggregates=aggregates(),
        flavors=list(FLAVORS),
        nodes=[
            ComputeNode(identity('host', name), name, name) for name in HOSTS
        ],
    ).answer(http, NOVA)
