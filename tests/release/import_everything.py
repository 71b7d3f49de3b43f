# SPDX-License-Identifier: Apache-2.0
"""Prints, as JSON, each module of the package that cannot be imported.

Run by the Python of an environment in which only the package is installed.
"""

import importlib
import json
import pkgutil

import isolate_aggregates


def main():
    """Import one module after the other."""
    failed = {}
    for module in pkgutil.walk_packages(
        isolate_aggregates.__path__, 'isolate_aggregates.', lambda name: None
    ):
        try:
            importlib.import_module(module.name)
        except Exception as exc:
            failed[module.name] = f'{type(exc).__name__}: {exc}'
    print(json.dumps(failed))


if __name__ == '__main__':
    main()
