# SPDX-License-Identifier: Apache-2.0
"""A cloud that answers over HTTP, for the tests that ask one."""

from collections.abc import Callable, Iterator
import pathlib

from http_fakes import FakeGlance, FakeKeystone, FakeNova
from live_example import CREDENTIALS, Live
from prometheus_client import values
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


@pytest.fixture
def live(http: requests_mock.Mocker) -> Iterator[Live]:
    """The example as a live cloud."""
    cloud = Live(http)
    yield cloud
    cloud.stop()


@pytest.fixture
def config(tmp_path: pathlib.Path) -> Callable[[str], str]:
    """Write a configuration file and return its path."""

    def write(text: str) -> str:
        path = tmp_path / 'live.conf'
        path.write_text(text, 'utf-8')
        return str(path)

    return write


@pytest.fixture
def in_environment(
    without_configuration: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Give the credentials as ``OS_*`` variables."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(f'OS_{name.upper()}', value)


@pytest.fixture
def count_into(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> pathlib.Path:
    """Let this process count into a directory, as a worker does."""
    directory = tmp_path / 'counts'
    directory.mkdir()
    monkeypatch.setenv('PROMETHEUS_MULTIPROC_DIR', str(directory))
    # What prometheus-client does when it is imported with the variable.
    monkeypatch.setattr(values, 'ValueClass', values.get_value_class())
    return directory
