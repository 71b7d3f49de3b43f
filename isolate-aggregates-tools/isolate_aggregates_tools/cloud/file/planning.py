# SPDX-License-Identifier: Apache-2.0
"""A saved cloud for which changes are planned, and never made."""

from collections.abc import Sequence
from typing import Any, NoReturn

from isolate_aggregates.lazy import lazy_property
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.compute.client import ComputeNode


class PlanningCloud(SnapshotCloud):
    """A saved cloud with the clients that plans of changes read from.

    A plan binds the calls that would make its changes; here they are refused.
    """

    own_project = None

    @property
    def where(self) -> str:
        """The file, for messages."""
        return self.snapshot.origin

    @lazy_property
    def nova(self) -> '_Nova':
        """What plans read from Nova."""
        return _Nova(self.snapshot)

    @lazy_property
    def glance(self) -> '_Unchangeable':
        """What plans read from Glance: nothing."""
        return _Unchangeable(self.snapshot)

    @lazy_property
    def placement(self) -> Any:
        """What plans read from Placement."""
        return _Placement(self.snapshot)


class _Unchangeable:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def __getattr__(self, name: str) -> Any:
        return self._refuse

    def _refuse(self, *arguments: Any, **options: Any) -> NoReturn:
        raise tools_errors.CloudFileError(
            self._snapshot.origin, of_file='is a file, which is not changed'
        )


class _Nova(_Unchangeable):
    def compute_nodes(self) -> list[ComputeNode]:
        return [
            ComputeNode(provider.uuid, provider.name, provider.host)
            for provider in self._snapshot.providers
            if provider.host
        ]


class _Placement(_Unchangeable):
    def resource_providers(
        self, required: Sequence[str] = (), member_of: Sequence[str] = ()
    ) -> list[dict[str, str]]:
        """Return the providers with all traits and in all aggregates."""
        roots: dict[str, str] = {}
        for provider in self._snapshot.providers:
            # Parents come before their children.
            roots[provider.uuid] = roots.get(
                provider.parent or '', provider.uuid
            )
        return [
            {
                'uuid': provider.uuid,
                'name': provider.name,
                'root_provider_uuid': roots[provider.uuid],
            }
            for provider in self._snapshot.providers
            if provider.traits.issuperset(required)
            and provider.aggregates.issuperset(member_of)
        ]
