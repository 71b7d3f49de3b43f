# SPDX-License-Identifier: Apache-2.0
"""Sets up Nova's own functional fixtures.

They read the wheel's ``etc/nova/api-paste.ini``, which pip puts into the
virtual environment, beside the package nova.
"""

from importlib import metadata
import os
import pathlib
import sys

# Native threads, as all services have them by default since 34. In fixtures of
# older releases, which have nova-compute too, servers never get ready.
_NOVA = int(metadata.version('nova').partition('.')[0])
os.environ.setdefault(
    'OS_NOVA_DISABLE_EVENTLET_PATCHING', str(_NOVA >= 34).lower()
)

import nova  # noqa: E402

# Before anything else imports eventlet, which it then forbids.
import nova.tests.functional  # noqa: E402


def _provide_paste_configuration():
    folder = pathlib.Path(nova.__file__).parents[1] / 'etc' / 'nova'
    installed = pathlib.Path(sys.prefix) / 'etc' / 'nova'
    if not folder.exists() and installed.exists():
        folder.parent.mkdir(exist_ok=True)
        folder.symlink_to(installed, target_is_directory=True)


_provide_paste_configuration()

import nova_databases  # noqa: E402
import pytest  # noqa: E402


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    """Remember nothing of the cloud of another test."""
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path))


@pytest.fixture(scope='session', autouse=True)
def _databases():
    """Have Nova's databases where the environment wants them."""
    kind = os.environ.get(nova_databases.VARIABLE)
    if not kind:
        yield
        return
    found = nova_databases.NovaDatabases(kind)
    found.install()
    try:
        yield
    finally:
        found.close()
