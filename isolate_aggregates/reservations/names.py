# SPDX-License-Identifier: Apache-2.0
"""The names by which the parts of a reservation are known.

The names of class, provider and flavor are those of Blazar and of the spec
`Placement API support for instance reservation
<https://specs.openstack.org/openstack/blazar-specs/specs/rocky/placement-api.html>`_.
Nothing is ever changed or deleted that does not have such a name.
"""

import dataclasses
import hashlib
import re
import uuid

from isolate_aggregates import exception
from isolate_aggregates.request.extra_specs import (
    RESERVATION_CLASS,
    RESERVATION_TRAIT,
    TRAIT_PREFIX,
)

TRAIT = RESERVATION_TRAIT
# The extra spec by which a flavor asks for it.
TRAIT_KEY = f'{TRAIT_PREFIX}{TRAIT}'

# What locks the pool, for the filters isolate_aggregates and
# reservation_prefix.
POOL_KEY = 'reservation:pool'
POOL_METADATA = {TRAIT_KEY: 'required', POOL_KEY: 'true'}

_PROVIDER = 'blazar_'
_FLAVOR = 'reservation:'
_REVISION = re.compile(r'([0-9a-f-]{36})\.([0-9a-f]{8})\.([0-9]{8})')


@dataclasses.dataclass(frozen=True)
class Revision:
    """Which revision of the record of a reservation a flavor holds.

    ``incarnation`` tells a reservation from an earlier one of the same id.
    """

    reservation: str
    incarnation: str
    number: int

    @property
    def flavor_id(self) -> str:
        """The id of the flavor.

        Sorted by id, as Nova lists flavors, a later revision comes after an
        earlier one: a reader that finds the earlier one deleted meanwhile
        still finds the later one.
        """
        return f'{self.reservation}.{self.incarnation}.{self.number:08}'


def revision_of(flavor_id: str) -> Revision | None:
    """Return the revision that a flavor holds; None if it holds none."""
    match = _REVISION.fullmatch(flavor_id)
    return Revision(match[1], match[2], int(match[3])) if match else None


def reservation_id(text: str) -> str:
    """Return the id of a reservation as it is written everywhere.

    :raises InvalidRequest: if it is not a uuid.
    """
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise exception.InvalidRequest(
            f'{text!r} is not the id of a reservation; give a uuid.'
        ) from None


def new_reservation_id() -> str:
    """Return a new id by which anyone can see that it was made here."""
    return _marked(str(uuid.uuid4()))


def is_made_here(reservation: str) -> bool:
    """Tell whether an id is one of those made here, not given or Blazar's."""
    return _marked(reservation) == reservation


def _marked(text: str) -> str:
    # What is random of it, and a digest of that.
    head = text[:24]
    return head + hashlib.sha256(head.encode()).hexdigest()[:12]


def resource_class(reservation: str) -> str:
    """Return the resource class whose amounts are slots of a reservation."""
    return RESERVATION_CLASS + reservation.upper().replace('-', '_')


def reservation_of(name: str) -> str | None:
    """Return the id of the reservation that a resource class belongs to."""
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
    """Return the name of the reservation provider of a compute node."""
    return _PROVIDER + hostname


def provider_uuid(root: str) -> str:
    """Return the uuid that a reservation provider is created with.

    It is derived from that of the compute node, so that two commands that
    create the provider at the same time create one.
    """
    return str(uuid.uuid5(uuid.UUID(root), _PROVIDER))


def flavor(flavor_id: str) -> str:
    """Return the name of a flavor of a reservation, or of its record."""
    return _FLAVOR + flavor_id


def flavor_extra_specs(reservation: str) -> dict[str, str]:
    """Return the extra specs by which a flavor takes a slot."""
    return {
        f'resources:{resource_class(reservation)}': '1',
        TRAIT_KEY: 'required',
    }
