# SPDX-License-Identifier: Apache-2.0
"""Finds who answers a request to Nova."""

from collections.abc import Callable
import re

from isolate_aggregates_tools.rehearse.aggregates import Aggregates
from isolate_aggregates_tools.rehearse.exchange import (
    Answer,
    Refused,
    Request,
    Unknown,
)
from isolate_aggregates_tools.rehearse.flavors import Flavors
from isolate_aggregates_tools.rehearse.groups import Groups
from isolate_aggregates_tools.rehearse.hosts import Hosts
from isolate_aggregates_tools.rehearse.hypervisors import Hypervisors
from isolate_aggregates_tools.rehearse.placement import HeldPlacement
from isolate_aggregates_tools.rehearse.servers import Servers
from isolate_aggregates_tools.rehearse.world import World

# The newest microversion of each release, without the "2.".
_NEWEST = {31: 100, 32: 100, 33: 103}
NEWEST = 104


def newest(world: World) -> int:
    """Return the newest microversion of the Nova of a cloud."""
    release = world.before.settings.get(('isolate_aggregates', 'nova_release'))
    number = int(str(release)) if str(release).isdecimal() else 0
    return _NEWEST.get(number, NEWEST)


class Nova:
    """Nova's API for the cloud that is held."""

    def __init__(self, world: World, placement: HeldPlacement) -> None:
        aggregates, flavors = Aggregates(world, placement), Flavors(world)
        hosts, hypervisors = Hosts(world, placement), Hypervisors(world)
        groups = Groups(world)
        servers = Servers(world, hosts)
        self.newest = newest(world)
        flavor = 'flavors/([^/]+)'
        spec = f'{flavor}/os-extra_specs'
        routes: dict[str, Callable[..., Answer]] = {
            'GET ': self._versions,
            'GET os-aggregates': aggregates.list,
            'POST os-aggregates': aggregates.create,
            'GET os-aggregates/([^/]+)': aggregates.show,
            'PUT os-aggregates/([^/]+)': aggregates.update,
            'DELETE os-aggregates/([^/]+)': aggregates.delete,
            'POST os-aggregates/([^/]+)/action': aggregates.act,
            'GET flavors(/detail)?': flavors.list,
            'POST flavors': flavors.create,
            f'GET {flavor}': flavors.show,
            f'PUT {flavor}': flavors.update,
            f'DELETE {flavor}': flavors.delete,
            f'POST {flavor}/action': flavors.act,
            f'GET {flavor}/os-flavor-access': flavors.list_access,
            f'GET {spec}': flavors.list_specs,
            f'POST {spec}': flavors.add_specs,
            f'GET {spec}/(.+)': flavors.show_spec,
            f'PUT {spec}/(.+)': flavors.set_spec,
            f'DELETE {spec}/(.+)': flavors.delete_spec,
            'GET os-services': hosts.list_services,
            'PUT os-services/([^/]+)': hosts.update_service,
            'GET os-hypervisors(/detail)?': hypervisors.index,
            'GET os-hypervisors/statistics': hypervisors.add_up,
            'GET os-hypervisors/([^/]+)': hypervisors.show,
            'GET os-availability-zone(/detail)?': hosts.list_zones,
            'GET os-server-groups': groups.list,
            'GET os-server-groups/([^/]+)': groups.show,
            'GET servers(/detail)?': servers.list,
            'GET servers/([^/]+)': servers.show,
        }
        self._routes = [
            (re.compile(pattern), handler)
            for pattern, handler in routes.items()
        ]

    def answer(self, asked: Request) -> Answer:
        """Answer a request.

        :raises Refused: if Nova would refuse it.
        :raises Unknown: if it is not known what Nova would do.
        """
        if not 0 < asked.minor <= self.newest:
            raise Refused(
                406,
                f'Version 2.{asked.minor} is not supported by the API. '
                f'Minimum is 2.1 and maximum is 2.{self.newest}.',
            )
        line = f'{asked.method} {asked.path.strip("/")}'
        for pattern, handler in self._routes:
            if match := pattern.fullmatch(line):
                return handler(asked, *match.groups())
        raise Unknown

    def _versions(self, asked: Request) -> Answer:
        version = {
            'id': 'v2.1',
            'status': 'CURRENT',
            'version': f'2.{self.newest}',
            'min_version': '2.1',
            'updated': '2013-07-23T11:33:21Z',
            'links': [{'rel': 'self', 'href': f'{asked.url}/'}],
            'media-types': [],
        }
        return Answer(200, {'version': version, 'versions': [version]})
