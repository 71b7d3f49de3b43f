# SPDX-License-Identifier: Apache-2.0
"""Keeps unit tests pure."""

import contextlib
import socket
import subprocess

import pytest


def refuse(*args, **kwargs):
    """Fail in place of what is called."""
    raise AssertionError('a test that needs this is a functional test')


@contextlib.contextmanager
def pure(*more):
    """Let nothing start a service or a program, or open a connection.

    :param more: Other things that may not be called: objects with the name of
        an attribute.
    """
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in (
            (subprocess, 'Popen'),
            (socket.socket, 'bind'),
            (socket.socket, 'connect'),
            *more,
        ):
            patch.setattr(owner, name, refuse)
        yield
