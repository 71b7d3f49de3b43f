# SPDX-License-Identifier: Apache-2.0
"""Builds as pbr does, and the same bytes from the same commit.

What pbr and setuptools write depends on where and when they run: owners,
permissions and times of the files of a checkout. Here archives are written
anew without that. Times are those of SOURCE_DATE_EPOCH, as
https://reproducible-builds.org/docs/source-date-epoch/ has it; without it
they stay as they are.
"""

from collections.abc import Mapping
import gzip
import os
import pathlib
import stat
import tarfile
import zipfile

from pbr import build
from pbr.build import (  # noqa: F401
    build_editable,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

Settings = Mapping[str, str | list[str] | None]


def build_sdist(
    sdist_directory: str, config_settings: Settings | None = None
) -> str:
    """Build a source distribution; see PEP 517.

    :param sdist_directory: Where to put it.
    :param config_settings: What the frontend was told.
    :returns: The name of the file.
    """
    name = build.build_sdist(sdist_directory, config_settings)
    _rewrite_tar(pathlib.Path(sdist_directory, name))
    return name


def build_wheel(
    wheel_directory: str,
    config_settings: Settings | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Build a wheel; see PEP 517.

    :param wheel_directory: Where to put it.
    :param config_settings: What the frontend was told.
    :param metadata_directory: Metadata that was prepared before.
    :returns: The name of the file.
    """
    name = build.build_wheel(
        wheel_directory, config_settings, metadata_directory
    )
    _rewrite_zip(pathlib.Path(wheel_directory, name))
    return name


def _mode(mode: int) -> int:
    """Return the permissions that git keeps of a file."""
    return 0o755 if mode & stat.S_IXUSR else 0o644


def _rewrite_tar(path: pathlib.Path) -> None:
    epoch = os.environ.get('SOURCE_DATE_EPOCH')
    new_path = path.with_suffix('.new')
    with (
        tarfile.open(path) as old,
        new_path.open('wb') as raw,
        gzip.GzipFile('', 'wb', fileobj=raw, mtime=int(epoch or 0)) as packed,
        tarfile.open(fileobj=packed, mode='w') as new,
    ):
        for member in sorted(old, key=lambda found: found.name):
            member.uid = member.gid = 0
            member.uname = member.gname = ''
            member.mode = _mode(member.mode)
            member.mtime = int(epoch or member.mtime)
            member.pax_headers = {}
            new.addfile(member, old.extractfile(member))
    new_path.replace(path)


def _rewrite_zip(path: pathlib.Path) -> None:
    """Leave the times alone: setuptools itself takes them from the epoch."""
    new_path = path.with_suffix('.new')
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(new_path, 'w') as new:
        for member in old.infolist():
            mode = _mode(member.external_attr >> 16)
            member.external_attr = (stat.S_IFREG | mode) << 16
            new.writestr(member, old.read(member))
    new_path.replace(path)
