# SPDX-License-Identifier: Apache-2.0
"""Refuses distributions of different releases.

pip does so when it installs them, but not if somebody installs them without
their requirements, or upgrades one in a folder that another one shadows.
"""

from importlib import metadata

DISTRIBUTIONS = (
    'isolate-aggregates',
    'isolate-aggregates-tools',
    'isolate-aggregates-reservations',
)


def mismatch() -> str:
    """Return why the installed distributions do not fit; empty if they do."""
    versions = {}
    for name in DISTRIBUTIONS:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    # Interfaces between them change with the minor version.
    if len({tuple(one.split('.')[:2]) for one in versions.values()}) < 2:
        return ''
    told = ', '.join(f'{name} {one}' for name, one in versions.items())
    return (
        f'These are of different releases: {told}; install all of them from '
        'the same one.'
    )
