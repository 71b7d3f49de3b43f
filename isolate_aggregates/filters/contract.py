# SPDX-License-Identifier: Apache-2.0
"""What a request filter is, and what it may declare.

A filter is a class whose instances implement :class:`RequestFilter`. The other
protocols are optional: each has one member that a filter may have. The members
are checked when the filter is loaded, and an error names the filter.
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from isolate_aggregates.aggregates import AggregateIndex, Lock
from isolate_aggregates.filters.destination import Constraint
from isolate_aggregates.request import RequestSpec

if TYPE_CHECKING:
    from oslo_config import cfg

# Stands in METADATA for the key that is the id of the request's project.
PROJECT_ID = '<project_id>'


class RequestFilter(Protocol):
    """Compares a request with the aggregates and yields constraints.

    It does no I/O and changes nothing. It may be called by several threads.
    """

    def __call__(
        self, request: RequestSpec, aggregates: AggregateIndex
    ) -> Iterable[Constraint]:
        """Yield what narrows the choice of hosts.

        :param request: What is being scheduled.
        :param aggregates: The aggregates as of one moment.
        """


@runtime_checkable
class HasLocks(Protocol):
    """A filter that may forbid many aggregates together.

    If a query is too long, a rollup aggregate can then replace the aggregates
    of a lock.
    """

    def locks(self, aggregates: AggregateIndex) -> Iterable[Lock]:
        """Yield which aggregates the filter forbids together.

        :param aggregates: The aggregates as of one moment.
        """


@runtime_checkable
class ReadsImageProperties(Protocol):
    """A filter that looks at image properties other than required traits.

    ``IMAGE_PROPERTIES`` has their names as in Glance, or prefixes followed by
    ``*``. Inside nova-scheduler they have the values of the moment when the
    server was accepted. If a declared property is not available, the request
    is refused.
    """

    IMAGE_PROPERTIES: Sequence[str]


@runtime_checkable
class HasImageKeys(Protocol):
    """A filter with image properties that can only open.

    ``IMAGE_KEYS`` are like ``IMAGE_PROPERTIES``, but if one is not available,
    such as after a refused rebuild, the request is judged without it: it is
    kept out of what the property would have opened.
    """

    IMAGE_KEYS: Sequence[str]


@runtime_checkable
class ReadsMetadata(Protocol):
    """A filter that says which aggregate metadata it reads.

    ``METADATA`` has metadata keys, prefixes followed by ``*``, or
    :data:`PROJECT_ID`. A filter without it may read everything.
    """

    METADATA: Sequence[str]


@runtime_checkable
class HasKeySources(Protocol):
    """A filter that says where a request may have the keys to its locks.

    ``KEY_SOURCES`` has some of ``flavor``, ``image`` and ``hint``, or none if
    the key is something else, such as the project. For a filter without it,
    each of them may matter: the audit does not judge servers whose image or
    hints are not known.
    """

    KEY_SOURCES: Sequence[str]


@dataclasses.dataclass(frozen=True)
class ReservationKeys:
    """The keys by which requests name reservations.

    The aggregate of a reservation has the same key in its metadata.

    :param required: Prefixes of keys with which a request goes to the
        aggregates that have the same key, and to no others.
    :param forbidden: Prefixes of keys that keep a request without such a key
        out of the aggregates that have one.
    :param owner_key: The metadata key that holds the id of the owning
        project.
    """

    required: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    owner_key: str = ''


@runtime_checkable
class NamesReservations(Protocol):
    """A filter that identifies reservations by keys.

    The audit finds keys of flavors and images without a reservation, and
    aggregates that no request can name.
    """

    RESERVATION_KEYS: ReservationKeys


@runtime_checkable
class NamesProjects(Protocol):
    """A filter for aggregates whose metadata name their projects.

    ``PROJECT_KEYS`` has prefixes of the metadata keys. The audit finds
    misspelt ones.
    """

    PROJECT_KEYS: Sequence[str]


@runtime_checkable
class HasSwitch(Protocol):
    """A filter that is off until an option is true.

    ``ENABLED_BY`` is the ``(group, option)`` of a boolean option.
    """

    ENABLED_BY: ClassVar[tuple[str, str]]


@runtime_checkable
class HasSettings(Protocol):
    """A filter whose constructor takes values of the configuration.

    ``SETTINGS`` maps arguments of the constructor to ``(group, option)``.
    """

    SETTINGS: ClassVar[Mapping[str, tuple[str, str]]]


@runtime_checkable
class HasOptions(Protocol):
    """A filter with its own options."""

    @staticmethod
    def register_opts(conf: 'cfg.ConfigOpts') -> None:
        """Register the options.

        :param conf: Where to register them.
        """


@runtime_checkable
class Replaces(Protocol):
    """A filter that replaces filters of Nova or for Nova.

    ``REPLACES`` has the names of Nova's request filters, which are removed
    when this one is installed, and of host filters that then do the same work
    twice.
    """

    REPLACES: ClassVar[Sequence[str]]
