# SPDX-License-Identifier: Apache-2.0
"""The interface of a request filter, and what it can declare.

A filter is a class whose instances implement :class:`RequestFilter`. The other
protocols are optional, with one member each. The members are checked when the
filter is loaded; an error names the filter.
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from isolate_aggregates.aggregates import AggregateIndex, Lock
from isolate_aggregates.filters.destination import Constraint
from isolate_aggregates.request import RequestSpec

if TYPE_CHECKING:
    from oslo_config import cfg

# A placeholder in METADATA for the id of the request's project.
PROJECT_ID = '<project_id>'


class RequestFilter(Protocol):
    """Compares a request with the aggregates and yields constraints.

    It must be thread-safe, do no I/O and have no side effects.
    """

    def __call__(
        self, request: RequestSpec, aggregates: AggregateIndex
    ) -> Iterable[Constraint]:
        """Yield the constraints on the hosts for a request.

        :param request: The request that is being scheduled.
        :param aggregates: An index of all aggregates.
        """


@runtime_checkable
class HasLocks(Protocol):
    """A filter that can forbid many aggregates together.

    If a query is too long, a rollup aggregate can then replace the aggregates
    of a lock.
    """

    def locks(self, aggregates: AggregateIndex) -> Iterable[Lock]:
        """Yield the sets of aggregates that the filter forbids together.

        :param aggregates: An index of all aggregates.
        """


@runtime_checkable
class ReadsImageProperties(Protocol):
    """A filter that reads image properties other than required traits.

    ``IMAGE_PROPERTIES`` has their names as in Glance, or prefixes followed by
    ``*``. Inside nova-scheduler they have the values from when nova-api
    accepted the server. If a declared property is not available, the request
    is refused.
    """

    IMAGE_PROPERTIES: Sequence[str]


@runtime_checkable
class HasImageKeys(Protocol):
    """A filter with image properties that can only open locks.

    ``IMAGE_KEYS`` are like ``IMAGE_PROPERTIES``. But if one is not available,
    for example after a refused rebuild, the request is evaluated without it,
    so that the lock stays closed.
    """

    IMAGE_KEYS: Sequence[str]


@runtime_checkable
class ReadsMetadata(Protocol):
    """A filter that declares the aggregate metadata that it reads.

    ``METADATA`` has metadata keys, prefixes followed by ``*``, or
    :data:`PROJECT_ID`. A filter without it may read all metadata.
    """

    METADATA: Sequence[str]


@runtime_checkable
class HasKeySources(Protocol):
    """A filter that declares which sources can have the keys to its locks.

    ``KEY_SOURCES`` has some of ``flavor``, ``image`` and ``hint``, or none if
    the key comes from elsewhere, for example from the project. For a filter
    without it, the audit assumes all of them, and does not check servers whose
    image or hints are unknown.
    """

    KEY_SOURCES: Sequence[str]


@dataclasses.dataclass(frozen=True)
class ReservationKeys:
    """The keys with which requests name reservations.

    The aggregate of a reservation has the same key in its metadata.

    :param required: Prefixes of keys. A request with such a key may use only
        the aggregates that have the same key.
    :param forbidden: Prefixes of keys. A request without such a key may not
        use the aggregates that have one.
    :param owner_key: The metadata key with the id of the owning project.
    """

    required: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    owner_key: str = ''


@runtime_checkable
class NamesReservations(Protocol):
    """A filter that identifies reservations by keys.

    With this, the audit finds keys in flavors and images that belong to no
    reservation, and aggregates that no request can name.
    """

    RESERVATION_KEYS: ReservationKeys


@runtime_checkable
class NamesProjects(Protocol):
    """A filter for aggregates whose metadata name their projects.

    ``PROJECT_KEYS`` has prefixes of the metadata keys. With these, the audit
    finds misspelled keys.
    """

    PROJECT_KEYS: Sequence[str]


@runtime_checkable
class HasSwitch(Protocol):
    """A filter that is enabled by a configuration option.

    ``ENABLED_BY`` is the ``(group, option)`` of a boolean option.
    """

    ENABLED_BY: ClassVar[tuple[str, str]]


@runtime_checkable
class HasSettings(Protocol):
    """A filter whose constructor takes values of configuration options.

    ``SETTINGS`` maps arguments of the constructor to ``(group, option)``.
    """

    SETTINGS: ClassVar[Mapping[str, tuple[str, str]]]


@runtime_checkable
class HasOptions(Protocol):
    """A filter with its own options."""

    @staticmethod
    def register_opts(conf: 'cfg.ConfigOpts') -> None:
        """Register the options.

        :param conf: The configuration to register them in.
        """


@runtime_checkable
class Replaces(Protocol):
    """A filter that replaces filters of Nova or of other packages.

    ``REPLACES`` has the names of Nova's request filters, which are removed
    when this one is installed, and of host filters that become redundant.
    """

    REPLACES: ClassVar[Sequence[str]]
