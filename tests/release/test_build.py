# SPDX-License-Identifier: Apache-2.0
"""Built distributions are complete and reproducible."""

import configparser
import email
import hashlib
import os
import pathlib
import tarfile
import zipfile

import pytest
from releasing import (
    DISTRIBUTIONS,
    EXTRAS,
    ROOT,
    build,
    clone,
    package_of,
    run,
    tool,
)

# What setuptools and pbr write into a source distribution; all else is git's.
GENERATED = {'AUTHORS', 'ChangeLog', 'PKG-INFO'}


def _digests(directory):
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in directory.iterdir()
    }


def _committed(checkout, *below):
    return set(run('git', 'ls-files', *below, cwd=checkout).splitlines())


def _behind_links(folder, names):
    """Return files, and in place of links to folders what these have."""
    return {
        str(path.relative_to(folder))
        for name in names
        for path in (
            (folder / name).rglob('*')
            if (folder / name).is_dir()
            else [folder / name]
        )
        if path.is_file()
    }


@pytest.fixture(scope='module')
def inside_sdist(sdist):
    with tarfile.open(sdist) as archive:
        names = [member.name for member in archive if member.isfile()]
    return {name.partition('/')[2] for name in names}


@pytest.fixture(scope='module')
def inside_wheel(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_builds_are_reproducible_across_path_time_and_umask(
    distribution, dist, tmp_path
):
    before = os.umask(0o077)
    try:
        checkout = clone(tmp_path / 'some' / 'where else')
        for path in checkout.rglob('*.py'):
            os.utime(path, (0, 1_000_000_000))
        build(checkout / DISTRIBUTIONS[distribution], tmp_path / 'dist')
    finally:
        os.umask(before)
    assert _digests(tmp_path / 'dist') == _digests(dist)


def test_a_checkout_builds_the_wheel_that_the_source_distribution_builds(
    folder, wheel, tmp_path
):
    build(folder, tmp_path, '--wheel')
    assert _digests(tmp_path)[wheel.name] == _digests(wheel.parent)[wheel.name]


def test_an_unpacked_source_distribution_builds_it_without_git(
    sdist, wheel, tmp_path
):
    run('tar', '-xf', sdist, cwd=tmp_path)
    [unpacked] = tmp_path.iterdir()
    build(unpacked, tmp_path / 'dist', '--wheel')
    assert _digests(tmp_path / 'dist') == {
        wheel.name: _digests(wheel.parent)[wheel.name]
    }


@pytest.mark.parametrize('history', ['none', 'newest commit'])
def test_without_history_it_builds_the_same_as_the_next_version(
    history, distribution, inside_wheel, tmp_path
):
    checkout = tmp_path / 'isolate-aggregates'
    if history == 'none':
        checkout.mkdir()
        archive = tmp_path / 'archive.tar'
        run('git', 'archive', '--output', archive, 'HEAD', cwd=ROOT)
        run('tar', '-xf', archive, cwd=checkout)
    else:
        run('git', 'clone', '--depth', '1', f'file://{ROOT}', checkout)
    folder = checkout / DISTRIBUTIONS[distribution]
    build(folder, tmp_path / 'dist', '--wheel')
    [wheel] = (tmp_path / 'dist').iterdir()
    setup = configparser.ConfigParser()
    setup.read(ROOT / 'setup.cfg')
    version = setup['metadata']['version']
    assert wheel.name.split('-')[1] == f'{version}.dev0'
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
    # Those of metadata begin with the version. pbr.json names the commit.
    assert [name.partition('/')[2] for name in sorted(names)] == [
        within
        for name in sorted(inside_wheel)
        if (within := name.partition('/')[2]) != 'pbr.json'
        or history != 'none'
    ]


def test_the_source_distribution_has_the_committed_files(
    checkout, distribution, folder, inside_sdist
):
    """With tests, examples and release notes, for those who package it."""
    own = {
        name
        for name in inside_sdist - GENERATED
        if not name.startswith(f'{package_of(distribution)}.egg-info/')
    }
    committed = _behind_links(folder, _committed(folder))
    others = tuple(f'{place}/' for place in DISTRIBUTIONS.values())
    assert own == {
        name
        for name in committed
        if not name.endswith('.gitignore') and not name.startswith(others)
    }


def test_the_wheel_is_the_package_and_the_files_beside_it(
    distribution, folder, inside_wheel
):
    setup = configparser.ConfigParser()
    setup.read(folder / 'setup.cfg')
    lines = setup['files']['data_files'].split()
    beside = {
        path
        for line in lines
        for path in folder.glob(line.replace('/*', '/**/*'))
        if path.is_file()
    }
    package = {name for name in inside_wheel if 'dist-info' not in name}
    data = {name for name in package if '.data/data/' in name}
    assert package - data == _committed(folder, package_of(distribution))
    assert {pathlib.Path(name).name for name in data} == {
        path.name for path in beside
    }
    assert any(name.endswith('/licenses/LICENSE') for name in inside_wheel)


def test_files_in_etc_are_installed(checkout, wheels):
    made = {
        pathlib.Path(name).name
        for folder in (
            'etc/container',
            'etc/deployment',
            'etc/grafana',
            'etc/isolate-aggregates',
            'etc/prometheus',
            'etc/systemd',
        )
        for name in _committed(checkout, folder)
        if not name.endswith('config-generator.conf')
    }
    installed = set()
    for wheel in wheels.values():
        with zipfile.ZipFile(wheel) as archive:
            installed |= {pathlib.Path(n).name for n in archive.namelist()}
    assert made <= installed


def test_the_metadata_can_be_shown_by_an_index(dist):
    run(tool('twine'), 'check', '--strict', *dist.iterdir())


def test_the_wheel_passes_check_wheel_contents(wheel):
    run(tool('check-wheel-contents'), wheel)


@pytest.fixture(scope='module')
def metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        [name] = [n for n in archive.namelist() if n.endswith('/METADATA')]
        return email.message_from_bytes(archive.read(name))


def test_the_metadata_has_license_summary_and_extras(distribution, metadata):
    assert metadata['Requires-Python'] == '>=3.11'
    assert metadata['License'] == 'Apache-2.0'
    assert metadata['Summary']
    extras = metadata.get_all('Provides-Extra')
    assert set(extras) >= EXTRAS[distribution].keys()


def test_a_release_says_where_it_is_hosted(metadata):
    urls = metadata.get_all('Project-URL', [])
    if run('git', 'tag', '--points-at', 'HEAD', cwd=ROOT):
        assert urls
    assert [one for one in urls if 'example.com' in one] == []


def test_the_plugin_is_small(wheels):
    """Images of nova-scheduler get all of it."""
    assert wheels['isolate-aggregates'].stat().st_size < 197_000
