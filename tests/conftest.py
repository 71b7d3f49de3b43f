# SPDX-License-Identifier: Apache-2.0
"""Clouds to ask, and the program to run, for every test that wants them."""

from collections.abc import Callable, Iterator
import dataclasses
import logging
import os
import pathlib
import textwrap

from oslo_config import cfg
import pytest

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.cli import app
from isolate_aggregates.cloud import file as cloud_file
from isolate_aggregates.cloud.snapshot import Snapshot
from isolate_aggregates.clouds import SnapshotCloud
from isolate_aggregates.placement.client import (
    AllocationCandidates,
    PlacementClient,
)
from isolate_aggregates.placement.embedded import EmbeddedPlacement
from isolate_aggregates.placement.group import ResourceRequest

EXAMPLES = pathlib.Path(__file__).parent.parent / 'examples'


class NamedCloud(SnapshotCloud):
    """A snapshot in a real Placement, asked and answering in names."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot)
        self.snapshot = snapshot

    def uuid(self, name: str) -> str:
        """Return the uuid of the provider or the aggregate of a name."""
        uuids = {p.name: p.uuid for p in self.snapshot.providers}
        uuids |= {a.name: a.uuid for a in self.snapshot.aggregates}
        named = self.snapshot.placement_aggregates
        uuids |= {name: uuid for uuid, name in named.items()}
        return uuids[name]

    def uuids(self, *names: str) -> frozenset[str]:
        """Return the uuids of several providers or aggregates."""
        return frozenset(self.uuid(name) for name in names)

    def candidates(self, request: ResourceRequest) -> list[dict[str, str]]:
        """Ask Placement; return provider names by resource class."""
        return self.named(self.placement.allocation_candidates(request))

    def named(self, answer: AllocationCandidates) -> list[dict[str, str]]:
        """Return provider names by resource class, in one fixed order."""
        return sorted(
            (
                {
                    resource_class: self.provider_names[uuid]
                    for uuid, amounts in sorted(candidate.items())
                    for resource_class in amounts
                }
                for candidate in answer.allocation_requests
            ),
            key=lambda candidate: sorted(candidate.items()),
        )


@pytest.fixture
def placement() -> Iterator[PlacementClient]:
    """A real Placement without anything in it."""
    with EmbeddedPlacement() as client:
        yield client


@pytest.fixture
def open_cloud() -> Iterator[Callable[[Snapshot], NamedCloud]]:
    """Open a snapshot as a cloud; the test's end closes it."""
    opened: list[NamedCloud] = []

    def open_one(snapshot: Snapshot) -> NamedCloud:
        opened.append(NamedCloud(snapshot))
        return opened[-1]

    yield open_one
    for cloud in opened:
        cloud.close()


@pytest.fixture
def example(
    open_cloud: Callable[[Snapshot], NamedCloud],
) -> Callable[[str], NamedCloud]:
    """Open one of the example clouds by its name."""

    def open_example(name: str) -> NamedCloud:
        return open_cloud(cloud_file.load(EXAMPLES / f'{name}.yaml'))

    return open_example


@pytest.fixture
def write_cloud(tmp_path: pathlib.Path) -> Callable[[str], pathlib.Path]:
    """Write the text of a cloud file; the version is put on top."""

    def write(text: str) -> pathlib.Path:
        path = tmp_path / 'cloud.yaml'
        path.write_text(f'version: 1\n{textwrap.dedent(text)}', 'utf-8')
        return path

    return write


@pytest.fixture
def cloud_from(
    open_cloud: Callable[[Snapshot], NamedCloud],
    write_cloud: Callable[[str], pathlib.Path],
) -> Callable[[str], NamedCloud]:
    """Open a cloud from the text of a cloud file, without its version."""
    return lambda text: open_cloud(cloud_file.load(write_cloud(text)))


@pytest.fixture
def conf() -> cfg.ConfigOpts:
    """A configuration of our options that reads no file of this machine."""
    conf = cfg.ConfigOpts()
    ia_conf.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    return conf


@dataclasses.dataclass(frozen=True)
class Finished:
    """How a run of the program ended, and what it wrote."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: pathlib.Path,
) -> Iterator[Callable[..., Finished]]:
    """Run ``isolate-aggregates`` as a user without any configuration."""
    for name in ('HOME', 'XDG_CONFIG_HOME'):
        monkeypatch.setenv(name, str(tmp_path))
    for name in list(os.environ):
        if name.startswith('OS_'):
            monkeypatch.delenv(name)
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level

    def run_program(*arguments: str) -> Finished:
        capsys.readouterr()
        try:
            code = app.main(arguments)
        except SystemExit as exc:
            code = int(exc.code or 0)
        return Finished(code, *capsys.readouterr())

    yield run_program
    # cliff adds a handler to the root logger that writes to this test's
    # standard error.
    root.handlers[:] = handlers
    root.setLevel(level)
