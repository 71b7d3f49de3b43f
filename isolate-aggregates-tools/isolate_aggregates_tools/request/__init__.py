# SPDX-License-Identifier: Apache-2.0
"""Requests of commands and tests, and their queries to Placement."""

from isolate_aggregates_tools.request.request import (
    Request,
    RequestedNetwork,
    ResourceGroup,
)

__all__ = ['Request', 'RequestedNetwork', 'ResourceGroup']
