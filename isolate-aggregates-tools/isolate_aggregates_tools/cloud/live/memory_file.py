# SPDX-License-Identifier: Apache-2.0
"""Keeps what is known of resource providers in a file, for the next command.

The file is in the cache folder of the user, one for each cloud and user of it.
It has what :mod:`provider_memory` keeps, and nothing of servers, projects or
credentials. Each part counts for :data:`MOST` seconds after it was read. A
file that is not whole, has another format or could be written by somebody else
counts as none; so does a folder that is not only ours.
"""

from collections.abc import Callable, Hashable, Mapping
import contextlib
import dataclasses
import hashlib
import json
import logging
import os
import pathlib
import stat
import tempfile
import time
from typing import Any

import platformdirs

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.rest.connection import Connection
from isolate_aggregates_tools.cloud.live.provider_memory import (
    Known,
    ProviderMemory,
)
from isolate_aggregates_tools.placement.provider import Inventory

LOG = logging.getLogger(__name__)

#: How long what was read may be used, in seconds.
MOST = 24 * 60 * 60

# Another one for each change of the format.
_VERSION = 1
_FOLDER_MODE = 0o700
_OF_OTHERS = 0o077


class MemoryFile:
    """A file with what earlier commands have read of resource providers.

    :param path: The file; its folder is created if it does not exist.
    """

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self._is_told = False

    @classmethod
    def of(cls, connection: Connection, endpoint: str) -> 'MemoryFile':
        """Return the file for a cloud and a user.

        :param endpoint: That of Placement.
        """
        session = connection.session
        names = (
            endpoint,
            connection.region_name,
            session.get_user_id(),
            session.get_project_id(),
        )
        digest = hashlib.sha256(json.dumps(names).encode()).hexdigest()
        folder = platformdirs.user_cache_path('isolate-aggregates')
        return cls(folder / f'providers-{digest[:32]}.json')

    def load(self) -> ProviderMemory:
        """Return what is known; nothing if the file cannot be used."""
        try:
            self._check_folder()
            return _parsed(self._read())
        except FileNotFoundError:
            return ProviderMemory()
        except OSError as exc:
            self._tell(exc.strerror or str(exc))
        except (LookupError, TypeError, ValueError, AttributeError):
            self._tell('it was not written by this release, or is damaged')
        return ProviderMemory()

    def save(self, memory: ProviderMemory) -> None:
        """Write what is known, as a whole or not at all."""
        try:
            self.path.parent.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                self.path.parent.mkdir(_FOLDER_MODE)
            self._check_folder()
            # Readable only by its owner.
            handle, name = tempfile.mkstemp(
                prefix=f'.{self.path.name}.', dir=self.path.parent
            )
            try:
                with open(handle, 'w', encoding='utf-8') as stream:
                    stream.write(_document(memory))
                os.replace(name, self.path)
            except BaseException:
                pathlib.Path(name).unlink(missing_ok=True)
                raise
        except OSError as exc:
            self._tell(exc.strerror or str(exc))

    def _check_folder(self) -> None:
        if not self.path.is_absolute():
            raise OSError('the user has no home folder')
        found = os.lstat(self.path.parent)
        _check_owner(found, stat.S_ISDIR, 'its folder')

    def _read(self) -> str:
        handle = os.open(
            self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        )
        with open(handle, encoding='utf-8') as stream:
            _check_owner(os.fstat(stream.fileno()), stat.S_ISREG, 'it')
            return stream.read()

    def _tell(self, problem: str) -> None:
        if self._is_told:
            return
        self._is_told = True
        LOG.warning(
            'Every resource provider is read, because what is known of them '
            'cannot be kept in %s: %s; remove the file, or set [%s] '
            'remember_providers to false.',
            self.path,
            problem,
            ia_conf.GROUP,
        )


def _check_owner(
    found: os.stat_result, is_right: Callable[[int], bool], what: str
) -> None:
    """Check that only its owner, who runs this, can read and write it.

    :raises OSError: if not.
    """
    if not is_right(found.st_mode):
        raise OSError(f'{what} is of another kind')
    if found.st_uid != os.geteuid():
        raise OSError(f'{what} belongs to another user')
    if found.st_mode & _OF_OTHERS:
        raise OSError(f'{what} is accessible to other users')


class _Table:
    """Numbers equal values, which most providers share."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Hashable, int] = {}

    def number(self, value: Any) -> int | None:
        """Return the number of a value; None for None."""
        if value is None:
            return None
        key = json.dumps(value)
        if key not in self._numbers:
            self._numbers[key] = len(self.values)
            self.values.append(value)
        return self._numbers[key]


def _document(memory: ProviderMemory) -> str:
    traits, amounts = _Table(), _Table()
    providers = {
        uuid: (
            known.generation,
            known.since,
            traits.number(_sorted(known.traits)),
            amounts.number(_amounts(known.inventories)),
        )
        for uuid, known in memory.known.items()
    }
    body = json.dumps(
        {
            'round': memory.round,
            'traits': traits.values,
            'amounts': amounts.values,
            'providers': providers,
        }
    )
    return f'{json.dumps(_head(body))}\n{body}\n'


def _head(body: str) -> dict[str, Any]:
    digest = hashlib.sha256(body.encode()).hexdigest()
    return {'version': _VERSION, 'sha256': digest}


def _parsed(text: str) -> ProviderMemory:
    head, body = text.splitlines()
    if json.loads(head) != _head(body):
        raise ValueError
    document = json.loads(body)
    names = [frozenset(each) for each in document['traits']]
    amounts = [
        {rc: Inventory(*each) for rc, each in one.items()}
        for one in document['amounts']
    ]
    now = time.time()
    return ProviderMemory(
        {
            uuid: Known(
                generation,
                traits=_at(names, traits),
                inventories=_at(amounts, inventories),
                since=since,
            )
            for uuid, (
                generation,
                since,
                traits,
                inventories,
            ) in document['providers'].items()
            # A clock may have been wrong.
            if 0 <= now - since < MOST
        },
        document['round'],
    )


def _at(values: list[Any], number: int | None) -> Any:
    return None if number is None else values[number]


def _sorted(names: frozenset[str] | None) -> list[str] | None:
    return None if names is None else sorted(names)


def _amounts(
    inventories: Mapping[str, Inventory] | None,
) -> Mapping[str, tuple[Any, ...]] | None:
    if inventories is None:
        return None
    return {
        rc: dataclasses.astuple(inventory)
        for rc, inventory in sorted(inventories.items())
    }
