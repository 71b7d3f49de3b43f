# SPDX-License-Identifier: Apache-2.0
"""A cloud that answers over HTTP, for the tests that ask one."""

from collections.abc import Iterator
import pathlib

from http_fakes import FakeGlance, FakeKeystone, FakeNova
import pytest
import requests_mock


@pytest.fixture
def http() -> Iterator[requests_mock.Mocker]:
    """What answers in place of the network; nothing else does."""
    with requests_mock.Mocker(case_sensitive=True) as mocker:
        yield mocker


@pytest.fixture
def keystone(http: requests_mock.Mocker) -> FakeKeystone:
    """A Keystone with Nova, Glance and Placement in its catalog."""
    return FakeKeystone(http)


@pytest.fixture
def nova(
    http: requests_mock.Mocker,
    keystone: FakeKeystone,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> FakeNova:
    """An empty Nova; it answers once it is told to."""
    # novaclient keeps files for the completion of its own commands.
    monkeypatch.setenv('NOVACLIENT_UUID_CACHE_DIR', str(tmp_path))
    return FakeNova()


@pytest.fixture
def glance(http: requests_mock.Mocker, keystone: FakeKeystone) -> FakeGlance:
    """An empty Glance; it answers once it is told to."""
    return FakeGlance()
