# SPDX-License-Identifier: Apache-2.0
"""The page of the public API names what others may rely on, and no more."""

import importlib
import inspect
import re

from pages import SOURCE

from isolate_aggregates.filters import contract

PAGE = SOURCE / 'reference' / 'api.rst'
PACKAGES = ('aggregates', 'filters', 'request', 'testing')
# Where each exported name is described.
DESCRIBED = [PAGE, SOURCE / 'contributor' / 'testing-filters.rst']


def exported():
    """Return the names that the public packages export, with the package."""
    found = set()
    for name in PACKAGES:
        package = importlib.import_module(f'isolate_aggregates.{name}')
        found |= {f'{package.__name__}.{each}' for each in package.__all__}
    return found


def declared():
    """Return the members that a filter may have besides being callable."""
    protocols = [
        value
        for value in vars(contract).values()
        if inspect.isclass(value)
        and getattr(value, '_is_protocol', False)
        and value.__module__ == contract.__name__
        and value is not contract.RequestFilter
    ]
    return {
        member
        for protocol in protocols
        for member in (*inspect.get_annotations(protocol), *vars(protocol))
        if not member.startswith('_')
    }


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


def test_the_page_lists_the_attributes_of_a_filter():
    listed = re.findall(
        r'^   \* - ``(\w+)(?:\(\w+\))?``$',
        PAGE.read_text('utf-8'),
        re.MULTILINE,
    )
    assert sorted(listed) == sorted(declared())
