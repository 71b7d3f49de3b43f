# SPDX-License-Identifier: Apache-2.0
"""Refuses requests that nova-api does not accept."""

from collections.abc import Iterator
import dataclasses

from isolate_aggregates import options
from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.filters.constraints import Cause
from isolate_aggregates.text import listed, quoted
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.mirrored import nova_api
from isolate_aggregates_tools.mirrored.compute_services import CloudIndex
from isolate_aggregates_tools.mirrored.mirror import Mirror, Remark, Settings
from isolate_aggregates_tools.request import Request

# The zone of hosts in no aggregate with a zone.
_UNNAMED = (options.DEFAULT, 'default_availability_zone')
# The zone of Nova's other services, such as nova-scheduler.
_INTERNAL = (options.DEFAULT, 'internal_service_availability_zone')


def acceptance(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[Remark]:
    """Refuse flavors, images and zones that nova-api refuses.

    An existing server was accepted when it was created.
    """
    if request.is_accepted:
        return
    refusals = list(nova_api.refusals(request))
    flavor = f'flavor {request.flavor.name}'
    if request.image is not None:
        subject = f'{flavor} with image {quoted(request.image.name)}'
    else:
        subject = flavor
        unsure = refusals
        refusals = [r for r in refusals if r.source is nova_api.Source.FLAVOR]
        if unsure and not refusals:
            yield Remark(
                Cause(
                    'image-decides',
                    f'whether nova-api accepts {flavor} with the image, which '
                    f'is not known: {_texts(unsure)}; specify the image with '
                    '--image',
                )
            )
    if refusals:
        raise errors.RequestUnacceptable(
            f'nova-api refuses {subject}: {_texts(refusals)}.'
        )
    zone = request.availability_zone
    refused = refused_zone(
        zone, aggregates, settings[_UNNAMED], settings[_INTERNAL]
    )
    if refused and not request.host_forced:
        others = listed(refused.others)
        instead = f'; specify one of {others}' if others else ''
        raise errors.RequestUnacceptable(
            f'nova-api refuses availability zone {quoted(zone or "")}, as '
            f'{refused.why("it")}{instead}.'
        )


@dataclasses.dataclass(frozen=True)
class RefusedZone:
    """A zone that nova-api refuses for new servers.

    :param has_hosts: Whether any host, all of which are disabled, is in it.
    :param others: The zones that it accepts instead.
    """

    has_hosts: bool
    others: frozenset[str]

    def why(self, zone: str) -> str:
        """Return why nova-api refuses it, with these words for the zone."""
        if self.has_hosts:
            return f'the compute services of all hosts in {zone} are disabled'
        return f'no host is in {zone}'


def refused_zone(
    zone: str | None, index: AggregateIndex, unnamed: str, internal: str
) -> RefusedZone | None:
    """Return why nova-api refuses a zone for new servers.

    It accepts the zones of all services that are enabled
    (``nova.availability_zones.get_availability_zones``).

    :param unnamed: The zone of hosts in no aggregate with a zone.
    :param internal: The zone of services other than nova-compute.
    :returns: None if it accepts the zone, or no hosts are known.
    """
    if not zone or zone == internal or not isinstance(index, CloudIndex):
        return None
    zones = index.zones(unnamed)
    if not zones or zones.get(zone):
        return None
    return RefusedZone(
        zone in zones, frozenset(name for name in zones if zones[name])
    )


def _texts(refusals: list[nova_api.Refusal]) -> str:
    return '; '.join(refusal.text for refusal in refusals)


MIRRORS = (
    Mirror(
        'nova_api',
        'API._validate_flavor_image_nostatus',
        acceptance,
        options=(_UNNAMED, _INTERNAL),
    ),
)
