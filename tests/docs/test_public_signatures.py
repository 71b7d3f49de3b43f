# SPDX-License-Identifier: Apache-2.0
"""The signatures of public names have public types only."""

import functools
import importlib
import inspect
import types
import typing

from keystoneauth1 import adapter
from oslo_config import cfg
import pytest
import requests_mock

PACKAGES = ('aggregates', 'filters', 'request', 'testing')
PUBLIC = {
    f'{name}.{each}': getattr(package, each)
    for name in PACKAGES
    for package in [importlib.import_module(f'isolate_aggregates.{name}')]
    for each in package.__all__
}
# What modules import only for type checkers.
NAMES = {'cfg': cfg, 'requests_mock': requests_mock, 'adapter': adapter}
# Called by Python itself, or by whoever creates an instance.
SPECIAL = {'__call__', '__enter__', '__init__', '__iter__', '__len__'}


def parts(hint):
    """Yield the types that an annotation consists of."""
    if isinstance(hint, typing.TypeVar):
        for each in (*hint.__constraints__, hint.__bound__):
            yield from parts(each)
    elif isinstance(hint, list | tuple):
        for each in hint:
            yield from parts(each)
    elif arguments := typing.get_args(hint):
        yield from parts(typing.get_origin(hint))
        for each in arguments:
            yield from parts(each)
    elif isinstance(hint, type):
        yield hint


def hints(thing, names):
    """Yield the annotations of a function or class."""
    module = vars(importlib.import_module(thing.__module__))
    yield from typing.get_type_hints(
        thing, {**NAMES, **module}, names
    ).values()


def functions(member):
    """Yield the functions of a member of a class."""
    if isinstance(member, property):
        yield member.fget
    elif isinstance(member, functools.cached_property):
        yield member.func
    elif isinstance(member, staticmethod | classmethod):
        yield member.__func__
    elif isinstance(member, types.FunctionType):
        yield member


def leaks(thing):
    """Return the private types of this package in a signature."""
    names = {}
    annotations = []
    if inspect.isclass(thing):
        names[thing.__name__] = thing
        annotations += thing.__mro__
        annotations += [
            hint
            for name, hint in typing.get_type_hints(
                thing, {**NAMES, **vars(inspect.getmodule(thing))}, names
            ).items()
            if not name.startswith('_')
        ]
        members = [
            function
            for name, member in inspect.getmembers_static(thing)
            if name in SPECIAL or not name.startswith('_')
            for function in functions(member)
        ]
    else:
        members = [thing]
    for function in members:
        if function.__module__.startswith('isolate_aggregates'):
            annotations += hints(function, names)
    return {
        f'{part.__module__}.{part.__qualname__}'
        for annotation in annotations
        for part in parts(annotation)
        if part.__module__.startswith('isolate_aggregates.')
        and part not in PUBLIC.values()
    }


@pytest.mark.parametrize('name', sorted(PUBLIC))
def test_a_public_name_has_public_types_only(name):
    assert leaks(PUBLIC[name]) == set()


def test_a_private_type_is_found_wherever_it_is():
    private = type('Private', (), {})
    private.__module__ = 'isolate_aggregates.somewhere'

    class Public(private):
        field: list[private]

        def method(self, argument): ...

    assert leaks(Public) == {'isolate_aggregates.somewhere.Private'}
