# SPDX-License-Identifier: Apache-2.0
"""The steps of the recipes for images, without a program that builds them."""

import json
import os
import pathlib
import re
import shutil
import sys

from dockerfile_parse import DockerfileParser
import pytest
from releasing import ROOT, run

OWN = ROOT / 'etc' / 'container' / 'Containerfile'
ON_NOVA = ROOT / 'etc' / 'deployment' / 'openstack-helm' / 'Containerfile'
# Directories of the image in a recipe.
PLACES = re.compile('(/opt/|/tmp/wheels|/var/lib/openstack/|/wheels)')


@pytest.fixture(scope='module')
def context(wheel, tmp_path_factory) -> pathlib.Path:
    """Return a directory as the page on images makes it."""
    directory = tmp_path_factory.mktemp('context')
    run(
        *(sys.executable, '-m', 'pip', 'download', '--quiet'),
        *('--dest', directory / 'wheels', f'{wheel}[coordination,metrics]'),
        *('pymemcache', 'pip'),
    )
    return directory


class Image:
    """What a recipe makes, in a directory.

    All its stages are in one: none of them has files of another at a place
    where it has its own.

    :param root: The directory.
    :param context: Where the recipe is run.
    :param arguments: Arguments of the build.
    """

    def __init__(
        self, root: pathlib.Path, context: pathlib.Path, **arguments: str
    ) -> None:
        self._root = root
        self._context = context
        self._arguments = arguments
        self._path = f'{pathlib.Path(sys.executable).parent}:/usr/bin:/bin'
        self._said: dict[str, str] = {}

    def build(self, recipe: pathlib.Path) -> None:
        """Execute the recipe."""
        with recipe.open('rb') as stream:
            structure = DockerfileParser(fileobj=stream).structure
        for step in structure:
            value = step['value']
            match step['instruction']:
                case 'ARG' if '=' in value:
                    name, _, default = value.partition('=')
                    self._arguments.setdefault(name, default)
                case 'COPY' if not value.startswith('--from='):
                    source, there = value.split()
                    shutil.copytree(
                        self._context / source, self._inside(there)
                    )
                case 'RUN':
                    self._run(['sh', '-ec', self._inside(value)])
                case 'ENV':
                    name, _, path = value.partition('=')
                    assert name == 'PATH'
                    self._path = self._inside(path).replace(
                        '$PATH', self._path
                    )
                case other:
                    self._said[other] = value

    def starts(self, *arguments: str, expected: int = 0) -> str:
        """Return what its program prints."""
        program = json.loads(self._said['ENTRYPOINT'])
        given = arguments or json.loads(self._said['CMD'])
        return self._run([*program, *given], expected)

    def python(self, program: str, expected: int = 0) -> str:
        """Return what a program for its Python prints."""
        return self._run(['python', '-c', program], expected)

    def _inside(self, text: str) -> str:
        return PLACES.sub(rf'{self._root}\1', text)

    def _run(self, words: list[str], expected: int = 0) -> str:
        return run(
            *words,
            expected=(expected,),
            env={
                'PATH': self._path,
                # Whatever would look for a package elsewhere fails.
                'PIP_INDEX_URL': 'http://127.0.0.1:9/',
                'PIP_CONFIG_FILE': os.devnull,
                **self._arguments,
            },
        )


def test_the_image_of_the_package_is_built_without_a_network(
    context, tmp_path
):
    image = Image(tmp_path, context)
    image.build(OWN)
    assert 'sync' in image.starts()
    assert '--listen' in image.starts('exporter', '--help')
    # It has what the exporter needs, and tries to connect to a cloud.
    told = image.starts('exporter', expected=1)
    assert 'install isolate-aggregates[metrics]' not in told
    assert '--os-cloud' in told
    without = image.python('import tooz', expected=1)
    assert "No module named 'tooz'" in without


def test_the_image_can_include_an_election_driver(context, tmp_path):
    packages = 'isolate-aggregates[coordination,metrics] pymemcache'
    image = Image(tmp_path, context, PACKAGES=packages)
    image.build(OWN)
    assert image.python(
        'from isolate_aggregates.cli import election\n'
        "print(election.Election('memcached://192.0.2.1', 'sync'))"
    )


def test_the_package_can_be_installed_without_pip(context, tmp_path):
    """As that of an image of Nova may be."""
    venv = tmp_path / 'var/lib/openstack'
    run(sys.executable, '-m', 'venv', '--without-pip', venv)
    Image(tmp_path, context, PYTHON=f'{venv}/bin/python').build(ON_NOVA)
    assert 'candidates' in run(venv / 'bin' / 'isolate-aggregates', '--help')
    assert not (tmp_path / 'tmp/wheels').exists()
