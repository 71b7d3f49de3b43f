# SPDX-License-Identifier: Apache-2.0
"""Options, and services that answer over HTTP, for every test."""

import any_machine  # noqa: F401
from fake_nova import FakeNova
from http_fakes import FakeGlance, FakeKeystone
from oslo_config import cfg
import pytest
import requests_mock

from isolate_aggregates import options as tools_options
from isolate_aggregates.rest import client as rest_client


@pytest.fixture(scope='session', autouse=True)
def retries_at_once():
    """No test waits before it tries again."""
    with pytest.MonkeyPatch.context() as patch:
        # keystoneauth takes 0 for "not given".
        patch.setattr(rest_client, 'RETRY_DELAY', 0.001)
        yield


@pytest.fixture
def conf():
    """A configuration of our options that reads no file of this machine."""
    conf = cfg.ConfigOpts()
    tools_options.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    return conf


@pytest.fixture
def http():
    """What answers in place of the network; nothing else does."""
    with requests_mock.Mocker(case_sensitive=True) as mocker:
        yield mocker


@pytest.fixture
def keystone(http):
    """A Keystone with Nova, Glance and Placement in its catalog."""
    return FakeKeystone(http)


@pytest.fixture
def nova(http, keystone, tmp_path, monkeypatch):
    """An empty fake Nova."""
    # novaclient writes files for its shell completion.
    monkeypatch.setenv('NOVACLIENT_UUID_CACHE_DIR', str(tmp_path))
    return FakeNova()


@pytest.fixture
def glance(http, keystone):
    """An empty fake Glance."""
    return FakeGlance()


@pytest.fixture
def config(tmp_path):
    """Write a configuration file and return its path."""

    def write(text):
        path = tmp_path / 'live.conf'
        path.write_text(text, 'utf-8')
        return str(path)

    return write
