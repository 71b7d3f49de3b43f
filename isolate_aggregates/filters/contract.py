# SPDX-License-Identifier: Apache-2.0
"""The base class of request filters, with everything that they can declare."""

import abc
from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import types
from typing import TYPE_CHECKING, ClassVar

from isolate_aggregates.aggregates import AggregateIndex, Lock
from isolate_aggregates.filters.destination import Constraint
from isolate_aggregates.request import RequestSpec

if TYPE_CHECKING:
    from oslo_config import cfg

# A placeholder in METADATA for the id of the request's project.
PROJECT_ID = '<project_id>'


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


class RequestFilter(abc.ABC):
    """Compares a request with the aggregates and yields constraints.

    It must be thread-safe, do no I/O and have no side effects. A subclass
    overrides a declaration with a class attribute, or with a property if it
    depends on settings. Declarations are checked when the filter is loaded.
    """

    #: The ``(group, option)`` of a boolean option. While it is false, the
    #: filter does not run. None if the filter always runs.
    ENABLED_BY: ClassVar[tuple[str, str] | None] = None

    #: The ``(group, option)`` of each argument of the constructor.
    SETTINGS: ClassVar[Mapping[str, tuple[str, str]]] = types.MappingProxyType(
        {}
    )

    #: Whether it judges the image properties of rebuilt servers itself, by
    #: :attr:`RequestSpec.past`. Otherwise a server whose last rebuild was
    #: refused is not moved if the filter needs a property of its image.
    JUDGES_REBUILDS: ClassVar[bool] = False

    #: The names of Nova's request filters that are removed when this filter
    #: is installed, and of host filters that become redundant.
    REPLACES: ClassVar[Sequence[str]] = ()

    @property
    def IMAGE_PROPERTIES(self) -> Sequence[str]:  # noqa: N802
        """The image properties that it reads, other than required traits.

        These are names as in Glance, or prefixes followed by ``*``. Inside
        nova-scheduler they have the values from when nova-api accepted the
        server. If one is not available, the request is refused.
        """
        return ()

    @property
    def IMAGE_KEYS(self) -> Sequence[str]:  # noqa: N802
        """The image properties that can only open locks.

        If one is not available, for example because Nova has truncated it, the
        request is evaluated without it, so that the lock stays closed.
        """
        return ()

    @property
    def METADATA(self) -> Sequence[str] | None:  # noqa: N802
        """The metadata of aggregates that it reads; None for possibly all.

        These are keys, prefixes followed by ``*``, or ``<project_id>`` for the
        id of the request's project.
        """
        return None

    @property
    def KEY_SOURCES(self) -> Sequence[str]:  # noqa: N802
        """Where a request may have the keys to the locks of the filter.

        Some of ``flavor``, ``image`` and ``hint``, or none if the key comes
        from elsewhere, for example from the project. The audit does not check
        servers whose image or hints are unknown if these can matter.
        """
        return ('flavor', 'image', 'hint')

    @property
    def RESERVATION_KEYS(self) -> ReservationKeys:  # noqa: N802
        """The keys that identify reservations.

        With these, the audit finds keys in flavors and images that belong to
        no reservation, and aggregates that no request can name.
        """
        return ReservationKeys()

    @property
    def PROJECT_KEYS(self) -> Sequence[str]:  # noqa: N802
        """The prefixes of the metadata keys that name projects.

        With these, the audit finds misspelled keys.
        """
        return ()

    @staticmethod  # noqa: B027
    def register_opts(conf: 'cfg.ConfigOpts') -> None:
        """Register options of the filter; by default, it has none.

        :param conf: The configuration to register them in.
        """

    @abc.abstractmethod
    def __call__(
        self, request: RequestSpec, aggregates: AggregateIndex
    ) -> Iterable[Constraint]:
        """Yield the constraints on the hosts for a request.

        :param request: The request that is being scheduled.
        :param aggregates: An index of all aggregates.
        """

    def locks(self, aggregates: AggregateIndex) -> Iterable[Lock] | None:
        """Return the sets of aggregates that it forbids together.

        If a query is too long, a rollup aggregate can then replace the
        aggregates of a lock. None if the filter does not declare its locks.

        :param aggregates: An index of all aggregates.
        """
        return None
