# SPDX-License-Identifier: Apache-2.0
"""What belongs to reservations is known by these names, and by nothing else.

The names of class, provider and flavor are those of Blazar and of the spec
`Placement API support for instance reservation
<https://specs.openstack.org/openstack/blazar-specs/specs/rocky/placement-api.html>`_.
Nothing is ever changed or deleted that does not have such a name.
"""

import uuid

from isolate_aggregates import exception
from isolate_aggregates.request.extra_specs import (
    RESERVATION_CLASS,
    RESERVATION_TRAIT,
    TRAIT_PREFIX,
)

TRAIT = RESERVATION_TRAIT

# What locks the pool, for the filters isolate_aggregates and
# reservation_prefix.
POOL_KEY = 'reservation:pool'
POOL_METADATA = {f'{TRAIT_PREFIX}{TRAIT}': 'required', POOL_KEY: 'true'}

_PROVIDER = 'blazar_'
_FLAVOR = 'reservation:'


def reservation_id(text: str) -> str:
    """Return the id of a reservation as it is written everywhere.

    :param text: The id as it was given.
    :raises InvalidRequest: if it is no uuid.
    """
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise exception.InvalidRequest(
            f'{text!r} is no id of a reservation; it has to be a uuid.'
        ) from None


def resource_class(reservation: str) -> str:
    """Return the resource class whose amounts are slots of a reservation.

    :param reservation: The id of the reservation.
    """
    return RESERVATION_CLASS + reservation.upper().replace('-', '_')


def reservation_of(name: str) -> str | None:
    """Return the id of the reservation that a resource class belongs to.

    :param name: The name of the resource class.
    :returns: None if it belongs to none.
    """
    if not name.startswith(RESERVATION_CLASS):
        return None
    try:
        found = str(
            uuid.UUID(name.removeprefix(RESERVATION_CLASS).replace('_', '-'))
        )
    except ValueError:
        return None
    return found if resource_class(found) == name else None


def provider(hostname: str) -> str:
    """Return the name of the reservation provider of a compute node.

    :param hostname: The hypervisor hostname of the compute node.
    """
    return _PROVIDER + hostname


def provider_uuid(root: str) -> str:
    """Return the uuid that a reservation provider is created with.

    It is always the same, so that two that create it at once make one.

    :param root: The uuid of the resource provider of the compute node.
    """
    return str(uuid.uuid5(uuid.UUID(root), _PROVIDER))


def flavor(reservation: str) -> str:
    """Return the name of the flavor of a reservation.

    :param reservation: The id of the reservation.
    """
    return _FLAVOR + reservation


def flavor_extra_specs(reservation: str) -> dict[str, str]:
    """Return the extra specs by which a flavor takes a slot.

    :param reservation: The id of the reservation.
    """
    return {
        f'resources:{resource_class(reservation)}': '1',
        f'{TRAIT_PREFIX}{TRAIT}': 'required',
    }
