# SPDX-License-Identifier: Apache-2.0
"""The interface of an aggregate source.

A source is constructed with the configuration and a function that returns the
connection to the cloud. The function is to be called only if a connection is
needed. A source is registered by an entry point in the group
``isolate_aggregates.aggregate_sources`` in ``setup.cfg``.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from isolate_aggregates.aggregates.aggregate import Aggregate


@runtime_checkable
class AggregateSource(Protocol):
    """Reads all host aggregates of a cloud.

    If it cannot read all of them, it must raise an exception. It must never
    return an incomplete or empty list in that case.
    """

    def aggregates(self) -> Sequence[Aggregate]:
        """Return all host aggregates.

        If nothing has changed, it may return the identical sequence again.

        :raises IsolateAggregatesError: if not all of them can be read.
        """


@runtime_checkable
class Membership(Protocol):
    """A source that reads the aggregates of hosts separately.

    If a source has this method, it returns aggregates without their hosts.
    """

    def aggregates_of(
        self, hosts: Iterable[str]
    ) -> Mapping[str, frozenset[str]]:
        """Read the uuids of the current aggregates of hosts, by host.

        :param hosts: The names of the compute services.
        :raises IsolateAggregatesError: if they cannot be read.
        """
