# SPDX-License-Identifier: Apache-2.0
"""A real Nova and a rehearsed one, which are asked the same."""

import dataclasses
import json
import re

from base import IMAGE
from day_two import CommandTest

from isolate_aggregates.aggregates.aggregate import ZONE, zone_of
from isolate_aggregates_tools.compute.client import NovaClient
from isolate_aggregates_tools.compute.servers import Servers
from isolate_aggregates_tools.rehearse.exchange import Request
from isolate_aggregates_tools.rehearse.nova import Nova
from isolate_aggregates_tools.rehearse.placement import HeldPlacement
from isolate_aggregates_tools.rehearse.world import World
from isolate_aggregates_tools.testing import make_compute_node, make_snapshot


class BothNovasTest(CommandTest):
    """A Nova with servers on some of its hosts, and its rehearsal."""

    # The hosts with a server.
    OCCUPIED = ()

    def setUp(self):
        super().setUp()
        # A host with servers cannot be given a zone.
        self.prepare()
        for host in self.OCCUPIED:
            made = self._build_server(image_uuid=IMAGE, networks='none')
            made = self.admin_api.post_server(
                {'server': {**made, 'host': host}}
            )
            self._wait_for_state_change(made, 'ACTIVE')
        self.nova = NovaClient(self.connection())
        cloud = make_snapshot(
            self.nova.aggregates(),
            list(map(make_compute_node, self.HOSTS)),
            flavors=self.nova.flavors(),
        )
        servers = Servers(tuple(self.nova.servers()), {}, True)
        self.hold(dataclasses.replace(cloud, servers=servers))

    def hold(self, cloud):
        """Rehearse with a cloud, which the real Nova has, too."""
        self.world = World(cloud)
        self.rehearsed = Nova(self.world, HeldPlacement(self.world))
        # Nova's ids of the objects that both have made. Its database may give
        # the id of a deleted aggregate again.
        self.ids = {}

    def prepare(self):
        """Make the aggregates and flavors that both have at the start."""

    def ask(self, method, path, body, minor):
        """Return the answers of the real Nova and of the rehearsed one.

        :param path: With the id that an object has in the rehearsal.
        """
        self.admin_api.microversion = f'2.{minor}'
        response = self.admin_api.api_request(
            re.sub(
                '^(/os-aggregates|/flavors)/([^/]+)',
                lambda key: f'{key[1]}/{self.id_in_nova(*key.groups())}',
                path,
            ),
            method=method,
            headers={'Content-Type': 'application/json'},
            body=None if body is None else json.dumps(body),
        )
        asked = Request(method, path, {}, body, minor, 'http://nova')
        answer = self.world.answer('nova', self.rehearsed.answer, asked)
        kind = {'/os-aggregates': 'aggregate', '/flavors': 'flavor'}.get(path)
        if kind and response.status_code == answer.status == 200:
            key = path, str(answer.document[kind]['id'])
            self.ids[key] = response.json()[kind]['id']
        return response, answer

    def id_in_nova(self, path, key):
        """Return Nova's id of an object in the list at a path."""
        return self.ids.get((path, str(key)), key)

    def states(self):
        """Return what the real Nova has, and what the rehearsed one has."""
        held = self.world.snapshot
        named = (
            ('/os-aggregates', held.aggregates),
            ('/flavors', held.flavors),
        )
        rehearsed = (
            [
                dataclasses.replace(one, id=self.id_in_nova(path, one.id))
                for one in some
            ]
            for path, some in named
        )
        return (
            _state(self.nova.aggregates(), self.nova.flavors()),
            _state(*rehearsed),
        )


def _state(aggregates, flavors):
    return (
        sorted(
            (
                *(a.id, a.name, zone_of(a), sorted(a.hosts)),
                sorted({**a.metadata, ZONE: ''}.items()),
            )
            for a in aggregates
        ),
        sorted(
            (
                *(f.id, f.name, f.vcpus, f.ram, f.disk, f.swap),
                *(f.is_public, sorted(f.extra_specs.items())),
                # Nova does not tell those of a public one.
                sorted(() if f.is_public else f.projects),
            )
            for f in flavors
        ),
    )
