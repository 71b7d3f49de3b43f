# SPDX-License-Identifier: Apache-2.0
"""Requests: flavor, image, project, scheduler hints and requested host."""

from isolate_aggregates.request.spec import (
    ComputeHost,
    Flavor,
    Image,
    Request,
    RequestSpec,
)

__all__ = ['ComputeHost', 'Flavor', 'Image', 'Request', 'RequestSpec']
