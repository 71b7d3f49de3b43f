# SPDX-License-Identifier: Apache-2.0
"""Loads plugins by name from their entry points; fails if one is missing.

By default stevedore logs a plugin that it cannot load and ignores it. Here
this would disable a lock.
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

    :param error: Builds the exception to raise from a name and a problem.
    """

    def missing(absent: Iterable[str]) -> NoReturn:
        installed = sorted(metadata.entry_points(group=namespace).names)
        raise error(
            ', '.join(sorted(absent)),
            f'is not installed; choose from {", ".join(installed)}.',
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
    for name in names:
        values = {
            entry_point.value
            for entry_point in manager.list_entry_points()
            if entry_point.name == name
        }
        # stevedore chooses one, which may be another one after each
        # installation. The same distribution may be found in several places.
        if len(values) > 1:
            raise error(
                name,
                'is provided more than once, by '
                f'{", ".join(sorted(_owners(namespace, name)))}; uninstall '
                'all but one of these distributions.',
            )
    return {ext.name: ext.plugin for ext in manager}


def _owners(namespace: str, name: str) -> set[str]:
    """Return the distributions that provide a plugin, with what it is."""
    return {
        f'{entry_point.dist.name if entry_point.dist else "unknown"} '
        f'({entry_point.value})'
        for entry_point in metadata.entry_points(group=namespace, name=name)
    }
