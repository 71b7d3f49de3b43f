# SPDX-License-Identifier: Apache-2.0
"""What keeps unit tests pure, and what only they use."""

import socket
import subprocess

import pytest

from isolate_aggregates.tools.embedded import EmbeddedPlacement


@pytest.fixture(scope='module', autouse=True)
def _pure():
    """Let no unit test start a service or a program, or open a connection."""

    def refuse(*args, **kwargs):
        raise AssertionError('a test that needs this is a functional test')

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EmbeddedPlacement, 'open', refuse)
        patch.setattr(subprocess, 'Popen', refuse)
        for name in ('bind', 'connect'):
            patch.setattr(socket.socket, name, refuse)
        yield
