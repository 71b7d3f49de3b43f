# SPDX-License-Identifier: Apache-2.0
"""Distributions of different releases are refused."""

from importlib import metadata

from cases import cases
import pytest

PLUGIN, TOOLS, RESERVATIONS = (
    'isolate-aggregates',
    'isolate-aggregates-tools',
    'isolate-aggregates-reservations',
)


@pytest.fixture
def installed(monkeypatch):
    """Be where distributions have the given versions, and no others."""

    def install(versions):
        def version(name):
            try:
                return versions[name]
            except KeyError:
                raise metadata.PackageNotFoundError(name) from None

        monkeypatch.setattr(metadata, 'version', version)

    return install


@cases(
    'versions',
    {
        'without reservations': {PLUGIN: '1.2.0', TOOLS: '1.2.0'},
        'a fix of one': {PLUGIN: '1.2.1', TOOLS: '1.2.0'},
        'commits after each other': {
            PLUGIN: '1.2.0.dev7', TOOLS: '1.2.0.dev9', RESERVATIONS: '1.2.0'
        },
    },
)  # fmt: skip
def test_one_release_is_accepted(installed, run, versions):
    installed(versions)
    assert run('filter', 'list').code == 0


def test_different_releases_are_refused_with_their_versions(installed, run):
    installed({PLUGIN: '1.2.0', TOOLS: '1.3.0', RESERVATIONS: '1.3.0'})
    finished = run('filter', 'list')
    assert (finished.code, finished.out) == (1, '')
    assert finished.err == (
        f'These are of different releases: {PLUGIN} 1.2.0, {TOOLS} 1.3.0, '
        f'{RESERVATIONS} 1.3.0; install all of them from the same one.\n'
    )
