# SPDX-License-Identifier: Apache-2.0
"""The page of the public API names what others may rely on, and no more."""

import importlib
import re

from pages import SOURCE

PAGE = SOURCE / 'reference' / 'api.rst'
PACKAGES = ('aggregates', 'filters', 'request', 'testing')
# Where each exported name is described.
DESCRIBED = [PAGE, SOURCE / 'contributor' / 'testing-filters.rst']


def exported():
    """Return the names that the public packages export, with the package."""
    results = set()
    for name in PACKAGES:
        package = importlib.import_module(f'isolate_aggregates.{name}')
        results |= {f'{package.__name__}.{each}' for each in package.__all__}
    return results


def test_the_page_lists_the_exported_names():
    listed = re.findall(
        r'^   (isolate_aggregates\.\w+\.\w+)$',
        PAGE.read_text('utf-8'),
        re.MULTILINE,
    )
    assert sorted(listed) == sorted(exported())


def test_each_name_is_described():
    described = set()
    for page in DESCRIBED:
        module = ''
        for directive, name in re.findall(
            r'^\.\. (module|autoclass|autofunction):: (\S+)$',
            page.read_text('utf-8'),
            re.MULTILINE,
        ):
            if directive == 'module':
                module = f'{name}.'
            else:
                described.add(module + name)
    assert described == exported()
