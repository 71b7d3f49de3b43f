# SPDX-License-Identifier: Apache-2.0
"""The availability zone of a request, which can also force a host."""

import argparse
import dataclasses

from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.tools.mirrored.compute_services import zone_of_host


@dataclasses.dataclass(frozen=True)
class RequestedZone:
    """A zone as in the body of ``POST /servers``.

    :param zone: The zone; None if there is none.
    :param host: The compute service that is forced; None if there is none.
    :param node: The compute node that is forced; None if there is none.
    """

    zone: str | None = None
    host: str | None = None
    node: str | None = None

    @property
    def forced(self) -> str | None:
        """The forced compute node or service.

        A node belongs to one host, so the host is not needed beside it.
        """
        return self.node or self.host

    def used(
        self, default: str | None, unnamed: str, cloud: AggregateIndex
    ) -> tuple[str | None, str]:
        """Return the zone that nova-api requests, and why it is another one.

        If a host is forced, nova-api ignores the zone unless it is that of
        the host (``ServersController._validate_host_availability_zone``, bug
        1934770). It looks up no host for a forced node.

        :param default: The zone of requests without one.
        :param unnamed: The zone of hosts in no aggregate with a zone.
        """
        zone = self.zone or default
        if not zone or not self.forced:
            return zone, ''
        if zone == zone_of_host(cloud, self.host or '', unnamed):
            return zone, ''
        return None, (
            f'forced host {self.host} is not in availability zone {zone}, so '
            'Nova ignores the zone'
            if self.host
            else f'Nova ignores availability zone {zone}, because a compute '
            'node is forced'
        )


def requested_zone(text: str) -> RequestedZone:
    """Parse a zone with an optional forced host or node, as Nova does."""
    if not text:
        raise argparse.ArgumentTypeError('must not be empty')
    zone, *target = text.split(':')
    if len(target) > 2:
        raise argparse.ArgumentTypeError(
            f'{text!r} is not a valid availability zone; write <zone>, '
            '<zone>:<host> or <zone>::<node>'
        )
    host, node = (*target, '', '')[:2]
    return RequestedZone(zone or None, host or None, node or None)
