# SPDX-License-Identifier: Apache-2.0
"""The names of the objects that make up a reservation.

The names of resource class, provider and flavor are those of Blazar and of the
specification
`Placement API support for instance reservation
<https://specs.openstack.org/openstack/blazar-specs/specs/rocky/placement-api.html>`_.
Objects with other names are never changed or deleted.
"""

import dataclasses
import datetime
import hashlib
import re
import uuid

from isolate_aggregates.request.extra_specs import (
    RESERVATION_CLASS,
    RESERVATION_HOSTS,
    RESERVATION_TRAIT,
    TRAIT_PREFIX,
)
from isolate_aggregates.request.extra_specs import (
    reservation_of as reservation_of,
)
from isolate_aggregates_tools import errors

TRAIT = RESERVATION_TRAIT
# The extra spec by which a flavor requires the trait.
TRAIT_KEY = f'{TRAIT_PREFIX}{TRAIT}'

# Of the hosts that are enabled for reservations.
MARKER = RESERVATION_HOSTS

# The metadata key that locks the pool, for the filters isolate_aggregates and
# reservation_prefix.
POOL_KEY = 'reservation:pool'
POOL_METADATA = {TRAIT_KEY: 'required', POOL_KEY: 'true'}

# The extra spec that tells the users of a flavor until when they can boot
# servers. No filter reads it.
BOOT_UNTIL = 'isolate_aggregates:boot_until'

# The metadata key of the pool for the minimum number of seconds between two
# reservations of the same capacity. All processes read it there, so none sells
# the time that another one keeps free.
CLEANING_KEY = 'reservation_cleaning_time'

# The metadata key of the pool for limits. For those of one project, ":" and
# its id follow.
LIMIT_KEY = 'reservation_limit'

# The metadata key of the pool for the number of days that the history of a
# reservation is kept after its end.
HISTORY_KEY = 'reservation_history_days'

# All metadata keys of the pool that are read here.
_POOL_KEYS = frozenset({*POOL_METADATA, CLEANING_KEY, LIMIT_KEY, HISTORY_KEY})

_PROVIDER = 'blazar_'
_FLAVOR = 'reservation:'
_ARCHIVE = re.compile(
    r'history\.[0-9]{8}T[0-9]{6}\.([0-9a-f-]{36})\.[0-9a-f]{8}'
)
_PAGE = re.compile(r'history\.events\.([0-9a-f-]{36})\.[0-9a-f]{8}\.[0-9]{4,}')
_REVISION = re.compile(r'([0-9a-f-]{36})\.([0-9a-f]{8})\.([0-9]{8})')


def is_of_pool(key: str) -> bool:
    """Return whether a metadata key of the pool is one of ours."""
    return key in _POOL_KEYS or key.startswith(f'{LIMIT_KEY}:')


@dataclasses.dataclass(frozen=True)
class Revision:
    """Identifies a revision of a reservation's record.

    ``incarnation`` distinguishes a reservation from an earlier one with the
    same id.
    """

    reservation: str
    incarnation: str
    number: int

    @property
    def flavor_id(self) -> str:
        """The id of the flavor that holds the revision.

        Nova lists flavors sorted by id. Later revisions sort after earlier
        ones, so that a client that misses an earlier one because it was just
        deleted still finds its successor.
        """
        return f'{self.reservation}.{self.incarnation}.{self.number:08}'


def revision_of(flavor_id: str) -> Revision | None:
    match = _REVISION.fullmatch(flavor_id)
    return Revision(match[1], match[2], int(match[3])) if match else None


def archive(reservation: str, incarnation: str, end: datetime.datetime) -> str:
    """Return the flavor id of the archive of a reservation that has ended.

    Nova lists flavors sorted by id: archives follow all records, sorted by the
    end of their reservations, and pages follow all archives.
    """
    at = end.astimezone(datetime.UTC).strftime('%Y%m%dT%H%M%S')
    return f'history.{at}.{reservation}.{incarnation}'


def is_archive_of(flavor_id: str, reservation: str, incarnation: str) -> bool:
    return archive_of(flavor_id) == reservation and flavor_id.endswith(
        f'.{incarnation}'
    )


def page(reservation: str, incarnation: str, number: int) -> str:
    """Return the flavor id of a page of the events of a reservation."""
    return f'history.events.{reservation}.{incarnation}.{number:04}'


def archive_of(flavor_id: str) -> str | None:
    """Return the id of the reservation whose archive a flavor is, if any."""
    match = _ARCHIVE.fullmatch(flavor_id)
    return match and match[1]


def page_of(flavor_id: str) -> str | None:
    """Return the id of the reservation that a page is about, if any."""
    match = _PAGE.fullmatch(flavor_id)
    return match and match[1]


def is_history(flavor_id: str) -> bool:
    return bool(archive_of(flavor_id) or page_of(flavor_id))


def reservation_id(text: str) -> str:
    """Return the id of a reservation in its canonical form."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise errors.InvalidRequest(
            f'{text!r} is not a valid id of a reservation; it must be a uuid.'
        ) from None


def new_reservation_id() -> str:
    """Return a new id that ``is_made_here`` recognizes."""
    return _marked(str(uuid.uuid4()))


def is_made_here(reservation: str) -> bool:
    """Return whether an id was generated here, not given or Blazar's."""
    return _marked(reservation) == reservation


def _marked(text: str) -> str:
    # The last group of the uuid is a digest of the random rest.
    head = text[:24]
    return head + hashlib.sha256(head.encode()).hexdigest()[:12]


def resource_class(reservation: str) -> str:
    return RESERVATION_CLASS + reservation.upper().replace('-', '_')


def provider(hostname: str) -> str:
    """Return the name of the reservation provider of a compute node."""
    return _PROVIDER + hostname


def host_of(provider_name: str) -> str:
    """Return the hostname in the name of a reservation provider."""
    return provider_name.removeprefix(_PROVIDER)


def is_provider(name: str) -> bool:
    """Return whether a child of a compute node is its reservation provider.

    It keeps its name if the compute node gets another hypervisor hostname.
    """
    return name.startswith(_PROVIDER)


def provider_uuid(root: str) -> str:
    """Return the uuid to create a reservation provider with.

    It is derived from the uuid of the compute node, so that two commands that
    create the provider at the same time create the same one.
    """
    return str(uuid.uuid5(uuid.UUID(root), _PROVIDER))


def flavor(flavor_id: str) -> str:
    """Return the name of a flavor of a reservation, or of its record."""
    return _FLAVOR + flavor_id


def flavor_extra_specs(reservation: str) -> dict[str, str]:
    """Return the extra specs with which a server takes a slot."""
    return {
        f'resources:{resource_class(reservation)}': '1',
        TRAIT_KEY: 'required',
    }
