# SPDX-License-Identifier: Apache-2.0
"""What an aggregate source is.

The arguments of a source are the configuration and a function that returns the
connection to the cloud; the source calls it only if it needs one. One line
under ``isolate_aggregates.aggregate_sources`` in ``setup.cfg`` registers a
source.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from isolate_aggregates.aggregates.aggregate import Aggregate


@runtime_checkable
class AggregateSource(Protocol):
    """Reads all host aggregates of a cloud.

    It returns all of them or raises. It never returns a part of them, nor an
    empty list for a cloud that it could not read.
    """

    def aggregates(self) -> Sequence[Aggregate]:
        """Return all host aggregates.

        The very same sequence as before means that nothing has changed.

        :raises IsolateAggregatesError: if they cannot all be read.
        """


@runtime_checkable
class Membership(Protocol):
    """Knows which hosts are in which aggregates, as of now.

    A source that has this method returns aggregates without their hosts.
    """

    def aggregates_of(
        self, hosts: Iterable[str]
    ) -> Mapping[str, frozenset[str]]:
        """Return the uuids of the aggregates that hosts are in, by host.

        :param hosts: The names of the compute services.
        :raises IsolateAggregatesError: if they cannot be read.
        """
