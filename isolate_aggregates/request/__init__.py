# SPDX-License-Identifier: Apache-2.0
"""What is asked for: flavor, image, project, hints, perhaps a host."""

from isolate_aggregates.request.spec import (
    Flavor,
    Image,
    Request,
    RequestedHost,
    RequestSpec,
)

__all__ = ['Flavor', 'Image', 'Request', 'RequestSpec', 'RequestedHost']
