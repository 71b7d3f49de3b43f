# SPDX-License-Identifier: Apache-2.0
"""The committed state of this checkout, built once for all tests."""

import os

import pytest
from releasing import build, clone


@pytest.fixture(scope='session')
def checkout(tmp_path_factory):
    """Return a fresh clone."""
    return clone(tmp_path_factory.mktemp('clone') / 'isolate-aggregates')


@pytest.fixture(scope='session')
def dist(checkout, tmp_path_factory):
    """Return the directory of a source distribution and the wheel of it."""
    into = tmp_path_factory.mktemp('dist')
    before = os.umask(0o022)
    try:
        build(checkout, into)
    finally:
        os.umask(before)
    return into


@pytest.fixture(scope='session')
def sdist(dist):
    """Return the source distribution."""
    [path] = dist.glob('*.tar.gz')
    return path


@pytest.fixture(scope='session')
def wheel(dist):
    """Return the wheel."""
    [path] = dist.glob('*.whl')
    return path
