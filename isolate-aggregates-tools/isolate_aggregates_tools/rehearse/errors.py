# SPDX-License-Identifier: Apache-2.0
"""Why a tool cannot be rehearsed."""

from isolate_aggregates.exception import IsolateAggregatesError


class NotIsolated(IsolateAggregatesError):
    """The system does not let a tool be kept off its networks."""

    def __init__(self, problem: str) -> None:
        super().__init__(
            f'The tool cannot be kept off other networks ({problem}), as the '
            'system restricts user namespaces. Where everything that it may '
            'reach is harmless, give --any-network.'
        )


class NoSuchProgram(IsolateAggregatesError):
    """There is no program of a name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f'There is no program {name!r}. Give its path, or add its folder '
            'to PATH.'
        )


class LauncherEnded(IsolateAggregatesError):
    """The process that runs the tools has been ended from outside."""

    def __init__(self) -> None:
        super().__init__(
            'The process that runs the tool has ended, so what the tool did '
            'is not known. Check whether the system was out of memory, and '
            'run the rehearsal again.'
        )
