# SPDX-License-Identifier: Apache-2.0
"""Runs playbooks, scripts and other tools against a copy of a cloud."""

from collections.abc import Iterable, Sequence
import os
from types import TracebackType
from typing import TYPE_CHECKING, Self

from isolate_aggregates_tools.cloud.file import cloud_file
from isolate_aggregates_tools.cloud.snapshot import Snapshot

if TYPE_CHECKING:
    from isolate_aggregates_tools.rehearse import rehearsal


class Rehearsal:
    """A cloud with a local API, which tools change; a context manager.

    It runs tools as the command ``rehearse`` does: they reach nothing but the
    local API and get no credentials. Only one can run at a time.

    :param cloud: The cloud, or the path of a cloud file; it stays as it is.
    :param clouds: The names of the cloud in ``clouds.yaml`` that tools give.
        Those of your own files need not be given.
    :param any_network: Whether tools run although the system does not let
        them be kept off other networks.
    :raises IsolateAggregatesError: on entry, if the cloud file is invalid, or
        if the system does not, without ``any_network``.
    """

    def __init__(
        self,
        cloud: Snapshot | str | os.PathLike[str],
        *,
        clouds: Iterable[str] = (),
        any_network: bool = False,
    ) -> None:
        self._given = cloud
        self._clouds = tuple(clouds)
        self._any_network = any_network
        self._left: list[str] = []
        self._rehearsal: rehearsal.Rehearsal

    def __enter__(self) -> Self:
        # It loads as much again as all other helpers together.
        from isolate_aggregates_tools.rehearse import rehearsal

        cloud = self._given
        if not isinstance(cloud, Snapshot):
            cloud = cloud_file.load(cloud)
        held = rehearsal.Rehearsal(cloud, self._clouds, self._any_network)
        self._rehearsal = held.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._rehearsal.__exit__(kind, error, traceback)

    def run(
        self, command: Sequence[str], timeout: float | None = None
    ) -> int | None:
        """Run a tool in the working folder, and wait for it.

        Its output goes to the standard error of the tests. What it writes to
        the working folder is not kept, where the system allows that.

        :param command: The program and its arguments.
        :param timeout: The longest time in seconds; None for any time.
        :returns: Its exit status, negative for a signal; None if it was ended
            after the longest time.
        """
        ended = self._rehearsal.run(command, timeout)
        self._left += ended.left
        return ended.status

    @property
    def cloud(self) -> Snapshot:
        """The cloud as it is now."""
        return self._rehearsal.cloud

    @property
    def refused(self) -> list[str]:
        """The changes that Nova, Glance or Placement would refuse, and why."""
        return [
            f'{call}: {call.reason}' for call in self._rehearsal.world.refused
        ]

    @property
    def unknown(self) -> list[str]:
        """What is not known, so that the cloud afterwards is not, either.

        It includes fields that tools got empty, and processes that they left
        behind, which were ended.
        """
        return [
            *self._rehearsal.world.unknown,
            *self._rehearsal.world.empty,
            *(
                f'what {name} would have done, which ran on'
                for name in self._left
            ),
        ]
