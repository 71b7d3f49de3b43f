# SPDX-License-Identifier: Apache-2.0
"""Reads traits and aggregates of one resource provider."""

from isolate_aggregates_tools.placement.client import PlacementClient

# The key of the generation of a resource provider in a response.
GENERATION = 'resource_provider_generation'


def traits(placement: PlacementClient, provider: str) -> frozenset[str]:
    """Return the traits of a resource provider."""
    return read(placement, provider, 'traits')[0]


def read(
    placement: PlacementClient, provider: str, what: str
) -> tuple[frozenset[str], int]:
    """Return traits or aggregates of a provider, and its generation."""
    return placement.read(
        f'/resource_providers/{provider}/{what}',
        lambda document: (
            frozenset(document[what]),
            document[GENERATION],
        ),
    )
