# SPDX-License-Identifier: Apache-2.0
"""The dependencies are the versions that OpenStack tests Nova with."""

import configparser
import pathlib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
import pytest

ROOT = pathlib.Path(__file__).parents[2]
LISTS = ROOT / 'tests' / 'release'
RELEASES = sorted((LISTS / 'constraints').iterdir())

# The oldest Python that is supported, which has to do for the others.
PYTHON = {'python_version': '3.11'}


def lines(text):
    """Return the requirements in a file."""
    return [
        Requirement(line)
        for line in text.splitlines()
        if line and not line.startswith('#')
    ]


def extras():
    """Return what extras ask for that are not for developers."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / 'setup.cfg')
    return [
        wanted
        for name, text in setup['extras'].items()
        if name not in ('doc', 'release', 'test')
        for wanted in lines(text)
    ]


OURS = lines((ROOT / 'requirements.txt').read_text())


def pinned(path):
    """Return the version of each package in upper constraints."""
    return {
        canonicalize_name(pin.name): next(iter(pin.specifier)).version
        for pin in lines(path.read_text())
        if pin.marker is None or pin.marker.evaluate(PYTHON)
    }


@pytest.mark.parametrize('path', RELEASES, ids=lambda path: path.stem)
def test_upper_constraints_satisfy_our_requirements(path):
    """A bound above them would force an upgrade on nova-scheduler."""
    versions = pinned(path)
    assert 'oslo-config' in versions
    refused = [
        str(wanted)
        for wanted in OURS
        if canonicalize_name(wanted.name) not in versions
        or versions[canonicalize_name(wanted.name)] not in wanted.specifier
    ]
    assert refused == []


@pytest.mark.parametrize('path', RELEASES, ids=lambda path: path.stem)
def test_upper_constraints_satisfy_our_extras(path):
    versions = pinned(path)
    known = [w for w in extras() if canonicalize_name(w.name) in versions]
    assert 'prometheus-client' in {wanted.name for wanted in known}
    refused = [
        str(wanted)
        for wanted in known
        if versions[canonicalize_name(wanted.name)] not in wanted.specifier
    ]
    assert refused == []


def test_our_requirements_are_in_openstacks_global_requirements():
    allowed = lines((LISTS / 'global-requirements.txt').read_text())
    names = {canonicalize_name(each.name) for each in allowed}
    assert {canonicalize_name(wanted.name) for wanted in OURS} == names
