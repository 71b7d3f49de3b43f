# SPDX-License-Identifier: Apache-2.0
"""What is asked for: flavor, image, project, hints, perhaps a host."""

from isolate_aggregates.request.spec import (
    Flavor,
    Image,
    RequestedHost,
    RequestSpec,
)

__all__ = ['Flavor', 'Image', 'RequestSpec', 'RequestedHost']
