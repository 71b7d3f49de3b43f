# SPDX-License-Identifier: Apache-2.0
"""Parses resources and traits in flavor extra specs and image properties.

The syntax is Nova's: ``resources[$S]:$CLASS=<n>``,
``trait[$S]:$TRAIT=required|forbidden`` and ``group_policy=none|isolate`` in a
flavor, ``trait:$TRAIT=required`` in an image. The suffix ``$S`` is that of
Placement microversion 1.33. See the `extra specs reference
<https://docs.openstack.org/nova/latest/configuration/extra-specs.html>`_ and
``nova.scheduler.utils.ResourceRequest``.
"""

from collections.abc import Iterator, Mapping
import dataclasses
import re
import uuid

REQUIRED = 'required'
FORBIDDEN = 'forbidden'
TRAIT_PREFIX = 'trait:'

SUFFIX = re.compile(r'[a-zA-Z0-9_-]{1,64}')
# The prefix of the resource classes of instance reservations, as in Blazar.
RESERVATION_CLASS = 'CUSTOM_RESERVATION_'
# The resource class of which each reservation provider has one unit. Nothing
# ever takes it, so a single query for allocation candidates returns the trees
# of all hosts for reservations, full ones included.
RESERVATION_HOSTS = f'{RESERVATION_CLASS}HOSTS'
# The trait of reservation providers, which are children of compute nodes. It
# must not be on the compute nodes themselves: there, an image of a tenant that
# requires it would let ordinary servers in.
RESERVATION_TRAIT = 'CUSTOM_RESERVATION_HOST'


_KEY = re.compile(rf'^(resources|trait)({SUFFIX.pattern})?:(.*)$')


@dataclasses.dataclass(frozen=True, slots=True)
class ExtraSpec:
    """An extra spec that requests resources or a trait.

    :param kind: ``resources`` or ``trait``.
    :param suffix: The request group it belongs to; empty for the unsuffixed
        group.
    """

    kind: str
    suffix: str
    name: str
    value: str

    @property
    def amount(self) -> int | None:
        """The amount that is requested; None for what Nova ignores."""
        return amount(self.value) if self.kind == 'resources' else None


def amount(text: str) -> int | None:
    """Parse an amount of a resource, as Nova does.

    Nova calls ``int``, so that ``+1``, `` 1`` and ``1_0`` are numbers (see
    ``nova.objects.request_spec.RequestGroup.add_resource``).

    :return: The amount, from 0 on; None if the text is none, and Nova ignores
        the extra spec.
    """
    try:
        number = int(text)
    except ValueError:
        return None
    return number if number >= 0 else None


def parse(extra_specs: Mapping[str, str]) -> Iterator[ExtraSpec]:
    """Yield the extra specs with resources and traits, in their order."""
    for key, value in extra_specs.items():
        match = _KEY.match(key)
        if match:
            kind, suffix, name = match.groups()
            yield ExtraSpec(kind, suffix or '', name, str(value))


def reservation_of(resource_class: str) -> str | None:
    """Return the id of the reservation that a resource class belongs to.

    :returns: None if it belongs to none.
    """
    if not resource_class.startswith(RESERVATION_CLASS):
        return None
    name = resource_class.removeprefix(RESERVATION_CLASS)
    try:
        reservation = str(uuid.UUID(name.replace('_', '-')))
    except ValueError:
        return None
    is_canonical = name == reservation.upper().replace('-', '_')
    return reservation if is_canonical else None


def reservation_classes(extra_specs: Mapping[str, str]) -> frozenset[str]:
    """Return the resource classes of reservations that a flavor requests.

    Only hosts whose reservation provider has the class can serve it; see
    `Placement API support for instance reservation
    <https://specs.openstack.org/openstack/blazar-specs/specs/rocky/placement-api.html>`_.
    """
    return frozenset(
        spec.name
        for spec in parse(extra_specs)
        # An amount of 0 requests nothing.
        if spec.amount and spec.name.startswith(RESERVATION_CLASS)
    )
