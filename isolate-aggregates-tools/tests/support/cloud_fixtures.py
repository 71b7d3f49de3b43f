# SPDX-License-Identifier: Apache-2.0
"""Clouds to ask, and the program to run, for every test that wants them.

Each conftest.py of tests that want them imports all.
"""

import dataclasses
import json
import logging
import os
import pathlib
import textwrap
import warnings

import any_machine  # noqa: F401
from http_fakes import CREDENTIALS
import jsonschema
from openstack.config import loader
from plugin_fixtures import *  # noqa: F403
from prometheus_client import values
import pytest

from isolate_aggregates_tools import candidates
from isolate_aggregates_tools.cli import app
from isolate_aggregates_tools.cloud.file import cloud_file
from isolate_aggregates_tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates_tools.commands import clouds
from isolate_aggregates_tools.embedded import embedded_client
from isolate_aggregates_tools.mirrored import chain
from isolate_aggregates_tools.placement.microversion import Feature
from isolate_aggregates_tools.request import Request

EXAMPLES = pathlib.Path(__file__).parents[3] / 'examples'

# For queries of which a test does not care what they need.
ALL = Feature(39, 'a test', 'Yoga')


class NamedCloud(SnapshotCloud):
    """A snapshot in a real Placement, asked and answering in names."""

    def __init__(self, snapshot):
        super().__init__(snapshot)
        self.snapshot = snapshot

    def uuid(self, name):
        """Return the uuid of the provider or the aggregate of a name."""
        uuids = {p.name: p.uuid for p in self.snapshot.providers}
        uuids |= {a.name: a.uuid for a in self.snapshot.aggregates}
        named = self.snapshot.placement_aggregates
        uuids |= {name: uuid for uuid, name in named.items()}
        return uuids[name]

    def uuids(self, *names):
        """Return the uuids of several providers or aggregates."""
        return frozenset(self.uuid(name) for name in names)

    def candidates(self, request):
        """Return what could serve a request: ``numa1 (VCPU) + ss1 (...)``."""
        answer = self.placement.allocation_candidates(request)
        return sorted(map(self._in_words, answer.allocation_requests))

    def candidates_of(self, query):
        """Ask with a query string, also one that is never built here."""
        document = self.placement.get(f'/allocation_candidates?{query}', ALL)
        return sorted(
            self._in_words(
                {
                    uuid: allocation['resources']
                    for uuid, allocation in request['allocations'].items()
                }
            )
            for request in document['allocation_requests']
        )

    def providers_of(self, query):
        """Return the names that ``GET /resource_providers`` answers with."""
        document = self.placement.get(f'/resource_providers?{query}', ALL)
        return sorted(p['name'] for p in document['resource_providers'])

    def _in_words(self, candidate):
        parts = sorted(
            (self.provider_names[uuid], sorted(amounts, reverse=True))
            for uuid, amounts in candidate.items()
        )
        # Deliberately unsorted: VCPU before MEMORY_MB before DISK_GB.
        parts.sort(key=lambda part: part[1], reverse=True)
        return ' + '.join(
            f'{name} ({", ".join(classes)})' for name, classes in parts
        )


class LastCloud:
    """Keeps the cloud that was asked last open: loading one takes a while."""

    def __init__(self):
        self._cloud = None

    def open(self, snapshot):
        """Return the cloud of a snapshot, if need be in place of the last."""
        snapshot = dataclasses.replace(snapshot, origin='test')
        if self._cloud is None or self._cloud.snapshot != snapshot:
            self.close()
            self._cloud = NamedCloud(snapshot)
        return self._cloud

    def close(self):
        """Make room for another Placement; there can be only one."""
        if self._cloud is not None:
            self._cloud.close()
        self._cloud = None


@pytest.fixture(scope='session', autouse=True)
def schemas_checked_once():
    """Placement checks its own schemas on every call, for 30 % of its time."""
    validator = jsonschema.validators.validator_for({})
    check = validator.check_schema
    # By id(), which is unique as long as the objects are kept.
    checked = {}

    def check_once(schema, *args, **kwargs):
        if id(schema) not in checked:
            check(schema, *args, **kwargs)
            checked[id(schema)] = schema

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(validator, 'check_schema', check_once)
        yield


@pytest.fixture(scope='module')
def last_cloud():
    """The cloud that the tests of a module share."""
    last = LastCloud()
    yield last
    last.close()


@pytest.fixture
def placement(last_cloud):
    """A real Placement without anything in it, to be changed at will."""
    last_cloud.close()
    with embedded_client() as client:
        yield client


@pytest.fixture
def example(last_cloud):
    """Open one of the example clouds by its name; to ask, not to change."""

    def open_example(name):
        return last_cloud.open(cloud_file.load(EXAMPLES / f'{name}.yaml'))

    return open_example


@pytest.fixture
def write_cloud(tmp_path):
    """Write a cloud file; the version is prepended."""

    def write(text):
        path = tmp_path / 'cloud.yaml'
        path.write_text(f'version: 1\n{textwrap.dedent(text)}', 'utf-8')
        return path

    return write


@pytest.fixture
def cloud_from(last_cloud, write_cloud):
    """Open the cloud that a text describes; to ask, not to change."""
    return lambda text: last_cloud.open(cloud_file.load(write_cloud(text)))


@pytest.fixture
def find(conf):
    """Do the main job with the filters that the settings of a cloud enable."""

    def find_hosts(cloud, flavor, image=None, project=None):
        clouds.apply_settings(conf, cloud.snapshot)
        request = Request(flavor, image, project)
        return candidates.find(cloud, chain.as_in_nova(conf), request, None)

    return find_hosts


@dataclasses.dataclass(frozen=True)
class Finished:
    """The exit status and the output of a run of the program."""

    code: int
    out: str
    err: str


@pytest.fixture
def without_configuration(monkeypatch, tmp_path):
    """Be a user without any configuration; undo what programs do to logs."""
    for name in ('HOME', 'XDG_CACHE_HOME', 'XDG_CONFIG_HOME'):
        monkeypatch.setenv(name, str(tmp_path))
    for name in list(os.environ):
        if name.startswith('OS_'):
            monkeypatch.delenv(name)
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    # cliff adds a handler to the root logger that writes to this test's
    # standard error.
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def run(last_cloud, capsys, without_configuration):
    """Run ``isolate-aggregates`` as a user without any configuration."""

    def run_program(*arguments):
        last_cloud.close()
        return finish(lambda: app.main(arguments), capsys)

    return run_program


@pytest.fixture
def ask(run, write_cloud):
    """Return the document of a command about a cloud."""

    def document(cloud, *command, status=0):
        path = str(write_cloud(cloud))
        finished = run(*command, '--snapshot', path, '-f', 'json')
        assert (finished.code, finished.err) == (status, '')
        return json.loads(finished.out)

    return document


@pytest.fixture
def openstack(last_cloud, capsys, without_configuration, monkeypatch):
    """Run the real ``openstack`` as a user without any configuration."""
    pytest.importorskip('openstackclient')
    from openstackclient import shell

    monkeypatch.setattr(loader, 'CONFIG_FILES', [])
    monkeypatch.setattr(shell.OpenStackShell, 'NAME', 'openstack')
    root = logging.getLogger()

    def run_client(*arguments):
        last_cloud.close()
        handlers = list(root.handlers)
        with warnings.catch_warnings():
            result = finish(lambda: shell.main(list(arguments)), capsys)
        # Each run adds its own handler.
        root.handlers[:] = handlers
        return result

    return run_client


def finish(program, capsys):
    """Run a program to its end."""
    capsys.readouterr()
    try:
        code = program()
    except SystemExit as exc:
        code = int(exc.code or 0)
    return Finished(code, *capsys.readouterr())


@pytest.fixture
def live(http):
    """The example as a live cloud."""
    # Imports Placement's database, which unit tests do not need.
    import live_example

    cloud = live_example.Live(http)
    yield cloud
    cloud.stop()


@pytest.fixture
def in_environment(without_configuration, monkeypatch):
    """Give the credentials as ``OS_*`` variables."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(f'OS_{name.upper()}', value)


@pytest.fixture
def count_into(tmp_path, monkeypatch):
    """Let this process count into a directory, as a worker does."""
    directory = tmp_path / 'counts'
    directory.mkdir()
    # A worker changes both for its whole process.
    monkeypatch.setenv('PROMETHEUS_MULTIPROC_DIR', str(directory))
    monkeypatch.setattr(values, 'ValueClass', values.MutexValue)
    return directory
