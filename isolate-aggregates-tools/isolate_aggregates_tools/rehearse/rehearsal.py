# SPDX-License-Identifier: Apache-2.0
"""A cloud in memory with its API, and the tools that run against it."""

from collections.abc import Iterable, Sequence
import contextlib
import os
from types import TracebackType
from typing import Self

from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.rehearse import identity, tool
from isolate_aggregates_tools.rehearse.service import Service
from isolate_aggregates_tools.rehearse.tool import Ended, Launcher
from isolate_aggregates_tools.rehearse.world import World


class Rehearsal:
    """Lets tools change a copy of a cloud; use it in a ``with`` statement.

    :param cloud: The cloud, which stays as it is.
    :param clouds: Further names of the cloud in ``clouds.yaml``, for tools
        that give one. Those of the user's own files need not be given.
    :param any_network: Whether the tool runs although the system does not let
        it be kept off other networks.
    :raises NotIsolated: on entry, if it does not, without ``any_network``.
    """

    def __init__(
        self,
        cloud: Snapshot,
        clouds: Iterable[str] = (),
        any_network: bool = False,
    ) -> None:
        self.world = World(cloud)
        self._names = tuple(clouds)
        self._any_network = any_network
        self._exit = contextlib.ExitStack()

    def __enter__(self) -> Self:
        environ = dict(os.environ)
        names = tool.clouds_of(environ)
        for name in self._names:
            names.setdefault(name, {'region_name': identity.REGION})
        regions = {kept['region_name'] for kept in names.values()}
        regions |= {environ.get('OS_REGION_NAME', '')} - {''}
        with contextlib.ExitStack() as stack:
            self._launcher = Launcher(not self._any_network)
            stack.enter_context(contextlib.closing(self._launcher))
            service = Service(self.world, self._launcher.listener, regions)
            stack.enter_context(contextlib.closing(service))
            self.url = service.url
            self._environ = tool.environment(
                self._launcher.folder,
                service.url,
                service.identity.password,
                names,
                environ,
            )
            self._exit = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._exit.close()

    def run(
        self, command: Sequence[str], timeout: float | None = None
    ) -> Ended:
        """Run a tool; its output goes to the standard error.

        :param timeout: The longest time in seconds; None for any time.
        """
        return self._launcher.run(command, self._environ, timeout)

    @property
    def cloud(self) -> Snapshot:
        """The cloud as it is now."""
        return self.world.snapshot
