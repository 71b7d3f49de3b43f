# SPDX-License-Identifier: Apache-2.0
"""The committed state of this checkout, built once for all tests."""

import os

import pytest
from releasing import DISTRIBUTIONS, build, clone


@pytest.fixture(scope='session')
def checkout(tmp_path_factory):
    """Return a fresh clone."""
    return clone(tmp_path_factory.mktemp('clone') / 'isolate-aggregates')


@pytest.fixture(scope='session')
def dists(checkout, tmp_path_factory):
    """Return a directory for each distribution, with its two files."""
    into = tmp_path_factory.mktemp('dist')
    before = os.umask(0o022)
    try:
        for name, place in DISTRIBUTIONS.items():
            build(checkout / place, into / name)
    finally:
        os.umask(before)
    return {name: into / name for name in DISTRIBUTIONS}


@pytest.fixture(scope='session', params=DISTRIBUTIONS)
def distribution(request):
    """Return the name of each distribution."""
    return request.param


@pytest.fixture(scope='session')
def folder(checkout, distribution):
    """Return its folder in the clone."""
    return checkout / DISTRIBUTIONS[distribution]


@pytest.fixture(scope='session')
def dist(dists, distribution):
    """Return the directory of its source distribution and the wheel of it."""
    return dists[distribution]


@pytest.fixture(scope='session')
def sdist(dist):
    """Return its source distribution."""
    [path] = dist.glob('*.tar.gz')
    return path


@pytest.fixture(scope='session')
def wheel(dist):
    """Return its wheel."""
    [path] = dist.glob('*.whl')
    return path


@pytest.fixture(scope='session')
def wheels(dists):
    """Return the wheels of all, by distribution."""
    return {name: next(path.glob('*.whl')) for name, path in dists.items()}
