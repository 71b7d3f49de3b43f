# SPDX-License-Identifier: Apache-2.0
"""Requests: flavor, image, project, scheduler hints and requested host."""

from isolate_aggregates.request.placed import Placed
from isolate_aggregates.request.properties import DeclaredProperties
from isolate_aggregates.request.spec import (
    ComputeHost,
    Flavor,
    Image,
    RequestSpec,
)

__all__ = [
    'ComputeHost',
    'DeclaredProperties',
    'Flavor',
    'Image',
    'Placed',
    'RequestSpec',
]
