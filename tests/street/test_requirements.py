# SPDX-License-Identifier: Apache-2.0
"""The dependencies are the versions that OpenStack tests Nova with."""

import configparser
from importlib import metadata
import pathlib
import re
import runpy

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


EXTRAS_OF = runpy.run_path(str(ROOT / 'tools' / 'extras.py'))
DISTRIBUTIONS = EXTRAS_OF['DISTRIBUTIONS']
# By distribution and name.
EXTRAS = {
    (distribution, name): wanted
    for distribution in DISTRIBUTIONS
    for name, wanted in EXTRAS_OF['of_users'](distribution).items()
}


def extras():
    """Return what extras ask for that are not for developers."""
    return [wanted for text in EXTRAS.values() for wanted in lines(text)]


# OpenStack does not use it. It requires nothing, so it forces no version of
# another package on nova-scheduler.
NOT_OF_OPENSTACK = {'shtab'}

OURS = [
    wanted
    for folder in DISTRIBUTIONS.values()
    for wanted in lines((folder / 'requirements.txt').read_text())
    if wanted.name not in {*DISTRIBUTIONS, *NOT_OF_OPENSTACK}
]


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


@pytest.mark.parametrize('name', NOT_OF_OPENSTACK)
def test_what_openstack_does_not_have_requires_nothing(name):
    always = [
        line for line in metadata.requires(name) or () if 'extra' not in line
    ]
    assert always == []


def test_the_page_of_the_installation_has_each_extra_once():
    page = (ROOT / 'doc/source/install/index.rst').read_text()
    # This one is shown before the others.
    listed = re.findall(r'^\* ``(\w+)``:', page, re.MULTILINE)
    assert sorted([*listed, 'embedded']) == sorted(
        {name for _, name in EXTRAS}
    )


@pytest.mark.parametrize(
    ('path', 'pattern'),
    [
        ('tests/release/excerpt_constraints.py', "EXTRAS = '(.+)'"),
    ],
)
def test_a_choice_of_extras_names_existing_ones(path, pattern):
    [chosen] = re.findall(pattern, (ROOT / path).read_text())
    assert set(chosen.split(',')) <= {name for _, name in EXTRAS}


def test_distributions_require_each_other_in_the_version_that_they_have():
    """One release has all three."""
    versions = {}
    for name, folder in DISTRIBUTIONS.items():
        setup = configparser.ConfigParser()
        setup.read(folder / 'setup.cfg')
        assert setup['metadata']['name'] == name
        versions[name] = setup['metadata']['version']
    [version] = set(versions.values())
    required = {
        name: {
            wanted.name: str(wanted.specifier)
            for wanted in lines((folder / 'requirements.txt').read_text())
            if wanted.name in DISTRIBUTIONS
        }
        for name, folder in DISTRIBUTIONS.items()
    }
    plugin, tools, _ = DISTRIBUTIONS
    this = f'~={version}.dev0'
    assert list(required.values()) == [
        {},
        {plugin: this},
        {plugin: this, tools: this},
    ]
