# SPDX-License-Identifier: Apache-2.0
"""How a server stops to be pinned to an availability zone.

Nova pins a server to the zone that was requested, and moves it within that
zone only.
"""

from isolate_aggregates_tools import shell

# The first release of Nova that can unpin a server, and its microversion.
_RELEASE, _MICROVERSION = 34, '2.104'


def advice(server: str, zone: str, release: int) -> str:
    """Return how to unpin a server.

    No command is given: ``server set`` and ``server unset`` of openstackclient
    10.5 ask with too old a microversion, and novaclient ends with 2.96.

    :param server: Its id, or a word that stands for it.
    :param release: The release of Nova.
    """
    zone = shell.quoted(zone)
    if release >= _RELEASE:
        return (
            f'unpin the server from zone {zone}: PUT /servers/{server} with '
            'the body {"server": {"pinned_availability_zone": null}} and the '
            f'header "OpenStack-API-Version: compute {_MICROVERSION}"; it may '
            'then move to hosts of all zones'
        )
    return (
        f'Nova can unpin a server from zone {zone} only from release '
        f'{_RELEASE} on; until then its host must be in an aggregate with '
        'that zone, which lets new servers of the zone use it, too'
    )
