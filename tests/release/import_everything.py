# SPDX-License-Identifier: Apache-2.0
"""Prints, as JSON, each module of our packages that cannot be imported.

Run by the Python of an environment in which only they are installed.
"""

import importlib
import importlib.util
import json
import pkgutil

PACKAGES = (
    'isolate_aggregates',
    'isolate_aggregates_tools',
    'isolate_aggregates_reservations',
)


def main():
    """Import one module after the other."""
    failed = {}
    for name in filter(importlib.util.find_spec, PACKAGES):
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(
            package.__path__, f'{name}.', lambda name: None
        ):
            try:
                importlib.import_module(module.name)
            except Exception as exc:
                failed[module.name] = f'{type(exc).__name__}: {exc}'
    print(json.dumps(failed))


if __name__ == '__main__':
    main()
