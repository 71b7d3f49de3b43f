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
    RESERVATION_TRAIT,
    TRAIT_PREFIX,
)
from isolate_aggregates.tools import errors

TRAIT = RESERVATION_TRAIT
# The extra spec by which a flavor requires the trait.
TRAIT_KEY = f'{TRAIT_PREFIX}{TRAIT}'

# The resource class of which each reservation provider has one unit. Nothing
# ever takes it, so a single query for allocation candidates returns the trees
# of all hosts for reservations, full ones included.
MARKER = f'{RESERVATION_CLASS}HOSTS'

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

_PROVIDER = 'blazar_'
_FLAVOR = 'reservation:'
# Nova sorts flavors by id, so that archives follow all records.
_ARCHIVE = re.compile(
    r'history\.([0-9]{8}T[0-9]{6})\.([0-9a-f-]{36})\.([0-9a-f]{8})'
)
_TIME = '%Y%m%dT%H%M%S'
_HISTORY = 'history.'
_PAGE = re.compile(
    r'history\.events\.([0-9a-f-]{36})\.([0-9a-f]{8})\.([0-9]{4,})'
)
_REVISION = re.compile(r'([0-9a-f-]{36})\.([0-9a-f]{8})\.([0-9]{8})')


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
    """Return the revision that a flavor id stands for; None if it does not."""
    match = _REVISION.fullmatch(flavor_id)
    return Revision(match[1], match[2], int(match[3])) if match else None


@dataclasses.dataclass(frozen=True)
class Archive:
    """Identifies the archive of a reservation that has ended."""

    end: datetime.datetime
    reservation: str
    incarnation: str

    @property
    def flavor_id(self) -> str:
        """The id of the flavor that holds the archive.

        Archives sort by the end of their reservations.
        """
        end = self.end.astimezone(datetime.UTC).strftime(_TIME)
        return f'history.{end}.{self.reservation}.{self.incarnation}'


def archive_of(flavor_id: str) -> Archive | None:
    """Return the archive that a flavor id stands for; None if it does not."""
    match = _ARCHIVE.fullmatch(flavor_id)
    try:
        return match and Archive(
            datetime.datetime.strptime(match[1], _TIME).replace(
                tzinfo=datetime.UTC
            ),
            match[2],
            match[3],
        )
    except ValueError:
        return None


@dataclasses.dataclass(frozen=True)
class Page:
    """Identifies a page of the events of a reservation."""

    reservation: str
    incarnation: str
    number: int

    @property
    def flavor_id(self) -> str:
        """The id of the flavor that holds the page.

        Pages sort after all archives.
        """
        return (
            f'{_HISTORY}events.{self.reservation}.{self.incarnation}.'
            f'{self.number:04}'
        )


def page_of(flavor_id: str) -> Page | None:
    """Return the page that a flavor id stands for; None if it does not."""
    match = _PAGE.fullmatch(flavor_id)
    return Page(match[1], match[2], int(match[3])) if match else None


def is_history(flavor_id: str) -> bool:
    """Return whether a flavor id stands for an archive or a page."""
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
    """Return the resource class of a reservation's slots."""
    return RESERVATION_CLASS + reservation.upper().replace('-', '_')


def reservation_of(name: str) -> str | None:
    """Return the id of the reservation that a resource class belongs to."""
    if not name.startswith(RESERVATION_CLASS):
        return None
    try:
        reservation = str(
            uuid.UUID(name.removeprefix(RESERVATION_CLASS).replace('_', '-'))
        )
    except ValueError:
        return None
    return reservation if resource_class(reservation) == name else None


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
