# SPDX-License-Identifier: Apache-2.0
"""What keeps unit tests pure, and what only they use."""

from collections.abc import Iterator
import pathlib
import socket
import subprocess
from typing import Any, NoReturn

from prometheus_client import values
import pytest

from isolate_aggregates.tools.embedded import EmbeddedPlacement


@pytest.fixture(scope='module', autouse=True)
def _pure() -> Iterator[None]:
    """Let no unit test start a service or a program, or open a connection."""

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise AssertionError('a test that needs this is a functional test')

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EmbeddedPlacement, 'open', refuse)
        patch.setattr(subprocess, 'Popen', refuse)
        for name in ('bind', 'connect'):
            patch.setattr(socket.socket, name, refuse)
        yield


@pytest.fixture
def count_into(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> pathlib.Path:
    """Let this process count into a directory, as a worker does."""
    directory = tmp_path / 'counts'
    directory.mkdir()
    # A worker changes both for its whole process.
    monkeypatch.setenv('PROMETHEUS_MULTIPROC_DIR', str(directory))
    monkeypatch.setattr(values, 'ValueClass', values.MutexValue)
    return directory
