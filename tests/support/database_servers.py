# SPDX-License-Identifier: Apache-2.0
"""Temporary database servers, started from installed programs.

Each keeps all its files in one folder and listens only on 127.0.0.1, where its
administrator needs no password. A stopped server can be started again with its
data, also by another process. A running server is found by its pid file.
"""

import abc
from collections.abc import Sequence
import contextlib
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import time
from typing import ClassVar

import sqlalchemy as sa

HOST = '127.0.0.1'

# Rows that refer to each other can be written in any order. It is said in each
# transaction anew.
WITHOUT_FOREIGN_KEYS = {
    'mysql': 'SET SESSION foreign_key_checks = 0',
    'postgresql': "SET SESSION session_replication_role = 'replica'",
}

_SECONDS = 300
_POSTGRESQL = pathlib.Path('/usr/lib/postgresql')


def free_port():
    """Return a free port."""
    with socket.create_server((HOST, 0)) as unused:
        return int(unused.getsockname()[1])


class Server(abc.ABC):
    """A database server in a folder.

    :param folder: Where it keeps its files; made if need be. Its path has to
        be open to other users if root starts a server that refuses root.
    :param port: The port of 127.0.0.1 that it listens on.
    """

    NAME: ClassVar[str]
    PACKAGE: ClassVar[str]
    PROGRAMS: ClassVar[Sequence[str]]
    STOP = signal.SIGTERM
    # What CREATE DATABASE has for the databases of Nova and Placement.
    OPTIONS = ''

    def __init__(self, folder, port):
        self.folder = folder.resolve()
        self.port = port
        self.data = self.folder / 'data'
        self.log = self.folder / 'server.log'
        self._process = None

    @classmethod
    def is_installed(cls):
        """Return whether its programs are there."""
        return all(map(cls._program, cls.PROGRAMS))

    @abc.abstractmethod
    def url(self, database=None):
        """Return where SQLAlchemy finds a database.

        :param database: Its name; None for the one every server has.
        """

    @property
    def pid(self):
        """The id of the process that serves this folder, if one does."""
        try:
            pid = int(self._pid_file.read_text('utf-8').split()[0])
            command = pathlib.Path(f'/proc/{pid}/cmdline').read_bytes()
        except (FileNotFoundError, ProcessLookupError, IndexError, ValueError):
            return None
        # Left by a killed server, the id may belong to another process.
        ours = any(
            argument.endswith(os.fsencode(self.data))
            for argument in command.split(b'\0')
        )
        return pid if ours else None

    def start(self):
        """Start the server, unless it runs, and wait until it answers."""
        if self.pid is None:
            if not self.data.exists():
                self._initialize()
            with self.log.open('ab') as output:
                self._process = subprocess.Popen(
                    self._command(),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    user=self._user,
                    group=self._group,
                    extra_groups=None if self._user is None else [],
                    # It stays when a terminal is closed.
                    start_new_session=True,
                )
        self._wait_for_answer()

    def stop(self):
        """Stop the server, if it runs, and wait until it is gone."""
        pid = self.pid
        if pid is not None:
            os.kill(pid, self.STOP)
        if self._process is not None:
            self._process.wait(_SECONDS)
            self._process = None
        until = time.monotonic() + _SECONDS
        while self.pid is not None:
            if time.monotonic() > until:
                raise AssertionError(f'{self.NAME} does not stop: {self.log}')
            time.sleep(0.05)

    def create_database(self, name, options=''):
        """Create a database.

        :param name: Its name.
        :param options: What ``CREATE DATABASE`` has after the name.
        """
        engine = self._engine()
        with engine.connect() as connection:
            connection.exec_driver_sql(f'CREATE DATABASE {name} {options}')
        engine.dispose()

    def _engine(self):
        return sa.create_engine(
            self.url(),
            isolation_level='AUTOCOMMIT',
            poolclass=sa.pool.NullPool,
        )

    def _wait_for_answer(self):
        engine = self._engine()
        until = time.monotonic() + _SECONDS
        while True:
            with contextlib.suppress(sa.exc.OperationalError):
                engine.connect().close()
                return
            gone = self._process and self._process.poll() is not None
            if gone or time.monotonic() > until:
                raise AssertionError(
                    f'{self.NAME} does not answer:\n{self._last_words()}'
                )
            time.sleep(0.05)

    def _last_words(self):
        return '\n'.join(self.log.read_text('utf-8').splitlines()[-20:])

    def _initialize(self):
        """Make the data folder; it is there only when it is whole."""
        self.folder.mkdir(parents=True, exist_ok=True)
        unfinished = self.folder / 'unfinished'
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(0o700)
        if self._user is not None:
            shutil.chown(unfinished, self._user, self._group)
        with self.log.open('ab') as output:
            subprocess.run(
                self._initializing(unfinished),
                check=True,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                user=self._user,
                group=self._group,
                extra_groups=None if self._user is None else [],
            )
        unfinished.rename(self.data)

    # The user it runs as, if that differs from the current one.
    _user = None
    _group = None

    @classmethod
    @abc.abstractmethod
    def _program(cls, name): ...

    @property
    @abc.abstractmethod
    def _pid_file(self): ...

    @abc.abstractmethod
    def _initializing(self, data): ...

    @abc.abstractmethod
    def _command(self): ...


class MariaDB(Server):
    """A MariaDB; its administrator is ``root``."""

    NAME = 'MariaDB'
    PACKAGE = 'mariadb-server'
    PROGRAMS = ('mariadbd', 'mariadb-install-db')
    OPTIONS = 'CHARACTER SET utf8mb3'

    def url(self, database=None):
        """Return where SQLAlchemy finds a database, through PyMySQL."""
        return sa.URL.create(
            'mysql+pymysql', 'root', None, HOST, self.port, database
        )

    @classmethod
    def _program(cls, name):
        # Debian's directory for the server is not always in PATH.
        return shutil.which(name) or shutil.which(name, path='/usr/sbin')

    @property
    def _pid_file(self):
        return self.folder / 'server.pid'

    def _initializing(self, data):
        return [
            str(self._program('mariadb-install-db')),
            '--no-defaults',
            # Relative, as the script cannot quote a path with a space.
            f'--datadir=./{data.name}',
            *_user_option(),
            '--auth-root-authentication-method=normal',
            '--skip-name-resolve',
            '--skip-test-db',
            *_SMALL,
        ]

    def _command(self):
        return [
            str(self._program('mariadbd')),
            '--no-defaults',
            f'--datadir={self.data}',
            f'--pid-file={self._pid_file}',
            *_user_option(),
            f'--bind-address={HOST}',
            f'--port={self.port}',
            # Relative to the data directory; an absolute path may be too long.
            '--socket=mariadb.sock',
            '--skip-name-resolve',
            # As many as an OpenStack of small services asks for.
            '--max-connections=500',
            *_SMALL,
        ]


# What is lost with the machine does not matter.
_SMALL = (
    '--innodb-buffer-pool-size=64M',
    '--innodb-doublewrite=0',
    '--innodb-flush-log-at-trx-commit=0',
    '--innodb-flush-method=nosync',
    '--innodb-log-file-size=8M',
)


def _user_option():
    # It refuses to run as root unless configured to.
    return ['--user=root'] if os.geteuid() == 0 else []


class PostgreSQL(Server):
    """A PostgreSQL; its administrator is ``nova``.

    It refuses to run as root. Started by root it runs as ``postgres``, a user
    that comes with Debian's packages.
    """

    NAME = 'PostgreSQL'
    PACKAGE = 'postgresql'
    PROGRAMS = ('initdb', 'postgres')
    # With SIGTERM it waits until its last client leaves.
    STOP = signal.SIGINT

    def __init__(self, folder, port):
        super().__init__(folder, port)
        if os.geteuid() == 0:
            account = pwd.getpwnam('postgres')
            self._user, self._group = account.pw_name, account.pw_gid

    def url(self, database=None):
        """Return where SQLAlchemy finds a database, through psycopg2."""
        return sa.URL.create(
            'postgresql+psycopg2',
            'nova',
            None,
            HOST,
            self.port,
            database or 'postgres',
        )

    @classmethod
    def _program(cls, name):
        # Debian keeps versions apart; the newest is as good as any.
        found = _POSTGRESQL.glob(f'*/bin/{name}')
        newest = max(
            found, key=lambda path: float(path.parts[-3]), default=None
        )
        return shutil.which(name) if newest is None else str(newest)

    @property
    def _pid_file(self):
        return self.data / 'postmaster.pid'

    def _initializing(self, data):
        return [
            str(self._program('initdb')),
            f'--pgdata={data}',
            '--username=nova',
            '--auth=trust',
            '--encoding=UTF8',
            '--locale=C.UTF-8',
            '--no-sync',
        ]

    def _command(self):
        settings = {
            'listen_addresses': HOST,
            'port': self.port,
            # Unused, and its path may be too long.
            'unix_socket_directories': '',
            'fsync': 'off',
        }
        return [
            str(self._program('postgres')),
            '-D',
            str(self.data),
            *(f'--{name}={value}' for name, value in settings.items()),
        ]


KINDS = {'mariadb': MariaDB, 'postgresql': PostgreSQL}
