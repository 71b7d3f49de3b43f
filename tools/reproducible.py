# SPDX-License-Identifier: Apache-2.0
"""pbr's build backend, extended to build reproducible distributions.

Wheels already use the time in SOURCE_DATE_EPOCH. Source distributions would
have the times, owners and permissions of the files in the checkout.
"""

import gzip
import os
import pathlib
import tarfile

from pbr import build
from pbr.build import *  # noqa: F403

# This determines the permissions of generated metadata in the wheel.
os.umask(0o022)


def build_sdist(
    sdist_directory: str, config_settings: dict | None = None
) -> str:
    name = build.build_sdist(sdist_directory, config_settings)
    if epoch := os.environ.get('SOURCE_DATE_EPOCH'):
        _rewrite(pathlib.Path(sdist_directory, name), int(epoch))
    return name


def _rewrite(path: pathlib.Path, epoch: int) -> None:
    new_path = path.with_suffix('.new')
    with (
        tarfile.open(path) as old,
        new_path.open('wb') as raw,
        gzip.GzipFile('', 'wb', fileobj=raw, mtime=epoch) as packed,
        tarfile.open(fileobj=packed, mode='w') as new,
    ):
        for member in old:
            member.uid = member.gid = 0
            member.uname = member.gname = ''
            member.mode = 0o755 if member.mode & 0o100 else 0o644
            member.mtime = epoch
            member.pax_headers = {}
            new.addfile(member, old.extractfile(member))
    new_path.replace(path)
