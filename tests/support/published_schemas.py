# SPDX-License-Identifier: Apache-2.0
"""The schemas of JSON documents, as the distributions have them."""

from importlib import resources
import json

PACKAGES = ('isolate_aggregates_tools', 'isolate_aggregates_reservations')


def schema_of(command):
    """Return the published schema of the document of a command."""
    # Where only the tools are installed, there is no other package.
    package = PACKAGES[command.split()[0] == 'reservation']
    return of_package(package)[command]


def of_package(package):
    """Return the published schemas of a package by the name of the command."""
    return {
        path.name.removesuffix('.json').replace('-', ' '): json.loads(
            path.read_text('utf-8')
        )
        for path in (resources.files(package) / 'schemas').iterdir()
    }
