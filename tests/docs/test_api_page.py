# SPDX-License-Identifier: Apache-2.0
"""The page of the public API names what others may rely on, and no more."""

import importlib
import re

from pages import SOURCE

from isolate_aggregates import testing

PAGE = SOURCE / 'reference' / 'api.rst'
PACKAGES = (
    'isolate_aggregates.aggregates',
    'isolate_aggregates.filters',
    'isolate_aggregates.request',
    'isolate_aggregates.testing',
    'isolate_aggregates_tools.testing',
)


def exported():
    """Return the names that the public packages export, with the package."""
    results = set()
    for name in PACKAGES:
        package = importlib.import_module(name)
        results |= {
            f'{package.__name__}.{each}'
            for each in package.__all__
            # What is the plugin's is described there.
            if package is testing
            or getattr(package, each) is not getattr(testing, each, None)
        }
    return results


def test_the_page_describes_the_exported_names():
    described = set()
    module = ''
    for directive, name in re.findall(
        r'^\.\. (module|autoclass|autofunction):: (\S+)$',
        PAGE.read_text('utf-8'),
        re.MULTILINE,
    ):
        if directive == 'module':
            module = name
        else:
            described.add(f'{module}.{name}')
    assert described == exported()
