# SPDX-License-Identifier: Apache-2.0
"""Checks names of traits and resource classes, like Placement.

Valid names are the standard ones of the libraries ``os-traits`` and
``os-resource-classes``, and custom ones in the format of the `API reference
<https://docs.openstack.org/api-ref/placement/#traits>`_.
"""

from collections.abc import Collection
import functools
import re

import os_resource_classes

from isolate_aggregates.aggregates.tags import standard_traits
from isolate_aggregates.suggestions import meant

_CUSTOM = re.compile('CUSTOM_[A-Z0-9_]{1,248}')


@functools.lru_cache(maxsize=4096)
def wrong_trait(name: str) -> str | None:
    """Return why a trait's name is invalid; None if it is valid."""
    return _wrong(name, 'trait', standard_traits())


@functools.lru_cache(maxsize=4096)
def wrong_resource_class(name: str) -> str | None:
    """Return why a resource class's name is invalid; None if it is valid."""
    return _wrong(name, 'resource class', os_resource_classes.STANDARDS)


def _wrong(name: str, kind: str, standard: Collection[str]) -> str | None:
    if name in standard or _CUSTOM.fullmatch(name):
        return None
    return (
        f'{name} is not a standard {kind}{meant(name.upper(), standard)}; the '
        'name of a custom one must be CUSTOM_ followed by A-Z, 0-9 and _'
    )
