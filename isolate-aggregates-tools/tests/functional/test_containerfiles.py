# SPDX-License-Identifier: Apache-2.0
"""Recipes for images: nothing is fetched, and no program runs as root."""

import json
import pathlib
import re

from dockerfile_parse import DockerfileParser
import pytest

ROOT = pathlib.Path(__file__).parents[3]
OWN = ROOT / 'etc' / 'container' / 'Containerfile'
ON_NOVA = ROOT / 'etc' / 'deployment' / 'openstack-helm' / 'Containerfile'
KOLLA = ROOT / 'etc' / 'deployment' / 'kolla-ansible' / 'Dockerfile'


def steps(path):
    """Return the instructions, each with its value."""
    with path.open('rb') as stream:
        parsed = DockerfileParser(fileobj=stream).structure
    return [
        (each['instruction'], each['value'])
        for each in parsed
        if each['instruction'] != 'COMMENT'
    ]


def only(path, instruction):
    """Return the values of one instruction."""
    return [value for name, value in steps(path) if name == instruction]


@pytest.mark.parametrize('path', [OWN, ON_NOVA, KOLLA], ids=str)
def test_the_last_user_is_not_root(path):
    assert only(path, 'USER')[-1] not in ('root', '0')


@pytest.mark.parametrize('path', [OWN, ON_NOVA, KOLLA], ids=str)
def test_the_base_image_is_a_build_argument(path):
    for image in only(path, 'FROM'):
        assert re.match(r'\$\{(BASE|IMAGE)\}', image)
    # The default must not contain the host of a registry.
    [given] = [a for a in only(path, 'ARG') if a.startswith(('BASE', 'IMAGE'))]
    assert given in ('BASE=python:3.11-slim', 'IMAGE')


@pytest.mark.parametrize('path', [OWN, ON_NOVA], ids=str)
def test_packages_are_installed_from_the_folder_alone(path):
    assert only(path, 'COPY')[0].split()[0] == 'wheels'
    installing = [run for run in only(path, 'RUN') if ' install ' in run]
    assert installing
    for run in installing:
        assert '--no-index --find-links' in run


def test_build_tools_are_not_in_the_image():
    names = [name for name, _ in steps(OWN)]
    last = len(names) - names[::-1].index('FROM')
    assert 'RUN' not in names[last:]
    [copied] = [v for n, v in steps(OWN)[last:] if n == 'COPY']
    assert copied.startswith('--from=build ')
    assert json.loads(only(OWN, 'ENTRYPOINT')[0]) == ['isolate-aggregates']
