# SPDX-License-Identifier: Apache-2.0
"""Loads plugins by name from their entry points; fails if one is missing.

By default stevedore logs a plugin that it cannot load and ignores it. Here
this would disable a lock.
"""

from collections.abc import Callable, Iterable, Sequence
from importlib import metadata
from typing import Any, NoReturn

from stevedore import named


def installed(namespace: str) -> Sequence[metadata.EntryPoint]:
    """Return the entry points in a namespace, none of which is imported.

    stevedore keeps those of all distributions in a file, and reads them again
    after an installation, but in each process once. They do not tell their
    distribution.
    """
    manager: named.NamedExtensionManager[Any] = named.NamedExtensionManager(
        namespace, names=[]
    )
    return manager.list_entry_points()


def with_distributions(namespace: str) -> metadata.EntryPoints:
    """Return the same with their distributions, all of which are read."""
    return metadata.entry_points(group=namespace)


def load(
    namespace: str,
    names: Sequence[str],
    error: Callable[[str, str], Exception],
) -> dict[str, Any]:
    """Return plugins by name, in the order of the names.

    :param error: Builds the exception to raise from a name and a problem.
    """

    def missing(absent: Iterable[str]) -> NoReturn:
        choices = ', '.join(sorted({e.name for e in installed(namespace)}))
        raise error(
            ', '.join(sorted(absent)),
            f'is not installed; choose from {choices}.',
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
    # stevedore chooses one, which may be another one after each installation.
    doubled = ambiguous(manager.list_entry_points())
    for name in names:
        if name in doubled:
            raise error(name, doubled_by(namespace, name))
    return {ext.name: ext.plugin for ext in manager}


def ambiguous(entry_points: Iterable[metadata.EntryPoint]) -> frozenset[str]:
    """Return the names that stand for different plugins.

    The same distribution may be found in several places; that is no conflict.
    """
    values: dict[str, str] = {}
    return frozenset(
        entry_point.name
        for entry_point in entry_points
        if values.setdefault(entry_point.name, entry_point.value)
        != entry_point.value
    )


def doubled_by(namespace: str, name: str) -> str:
    """Return what is wrong with a name that stands for different plugins."""
    owners = {
        f'{entry_point.dist.name if entry_point.dist else "unknown"} '
        f'({entry_point.value})'
        for entry_point in with_distributions(namespace)
        if entry_point.name == name
    }
    return (
        f'is provided more than once, by {", ".join(sorted(owners))}; '
        'uninstall all but one of these distributions.'
    )
