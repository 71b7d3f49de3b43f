# SPDX-License-Identifier: Apache-2.0
"""Loads plugins by name from their entry points, all of them or none.

stevedore by default logs a plugin it cannot load and goes on without it; for
us that would be a lock that is not there.
"""

from collections.abc import Callable, Iterable, Sequence
from importlib import metadata
from typing import Any, NoReturn

from stevedore import named


def load(
    namespace: str,
    names: Sequence[str],
    error: Callable[[str, str], Exception],
) -> dict[str, Any]:
    """Return plugins by name, in the order of the names.

    :param namespace: The namespace of the entry points.
    :param names: The names.
    :param error: Makes the exception to raise from the name and what is wrong
        with it.
    :raises Exception: what ``error`` makes, if a plugin is missing or cannot
        be loaded.
    """

    def missing(absent: Iterable[str]) -> NoReturn:
        known = sorted(metadata.entry_points(group=namespace).names)
        raise error(
            ', '.join(sorted(absent)),
            f'is not installed; known are {", ".join(known)}.',
        )

    def broken(
        _manager: object, entry_point: Any, exc: BaseException
    ) -> NoReturn:
        raise error(
            entry_point.name,
            f'cannot be loaded from {entry_point.value}: {exc}.',
        ) from exc

    manager: named.NamedExtensionManager[Any] = named.NamedExtensionManager(
        namespace,
        list(names),
        name_order=True,
        on_missing_entrypoints_callback=missing,
        on_load_failure_callback=broken,
    )
    return {ext.name: ext.plugin for ext in manager}
