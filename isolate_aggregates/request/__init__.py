# SPDX-License-Identifier: Apache-2.0
"""What is asked for: flavor, image, project, hints, perhaps a host."""

from isolate_aggregates.request.spec import (
    ComputeHost,
    Flavor,
    Image,
    Request,
    RequestSpec,
)

__all__ = ['ComputeHost', 'Flavor', 'Image', 'Request', 'RequestSpec']
