# SPDX-License-Identifier: Apache-2.0
"""The base class of request filters, with everything that they can declare."""

import abc
from collections.abc import Iterable, Mapping, Sequence
import types
from typing import TYPE_CHECKING, ClassVar

from isolate_aggregates.aggregates import AggregateIndex, Lock
from isolate_aggregates.filters.constraints import Constraint
from isolate_aggregates.request import RequestSpec

if TYPE_CHECKING:
    from oslo_config import cfg

# An option: its group, and its name or, for one of the filter's own, the
# option itself.
Option = tuple[str, 'str | cfg.Opt']

# A placeholder in METADATA for the id of the request's project.
PROJECT_ID = '<project_id>'


class RequestFilter(abc.ABC):
    """Compares a request with the aggregates and yields constraints.

    It must be thread-safe, do no I/O and have no side effects. A subclass
    overrides a declaration with a class attribute, or with a property if it
    depends on settings. Declarations are checked when the filter is loaded.
    """

    #: The ``(group, option)`` of a boolean option. While it is false, the
    #: filter does not run. None if the filter always runs.
    ENABLED_BY: ClassVar[Option | None] = None

    #: The ``(group, option)`` of each argument of the constructor. An option
    #: is a name or, if it is the filter's own, an option of oslo.config, which
    #: is registered.
    SETTINGS: ClassVar[Mapping[str, Option]] = types.MappingProxyType({})

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
