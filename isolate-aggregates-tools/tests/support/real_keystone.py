# SPDX-License-Identifier: Apache-2.0
"""Keystone itself, in a process of its own and with SQLite.

Run as a program, it serves Keystone with the configuration that the
environment names, and prints its port.
"""

import contextlib
import os
import pathlib
import subprocess
import sys
from wsgiref import simple_server

from cryptography import fernet
from keystoneauth1 import session
from keystoneauth1.identity import v3

_PASSWORD = 'secret'


class RealKeystone:
    """A Keystone with an administrator.

    :param folder: An empty folder for its files.
    """

    def __init__(self, folder):
        self._config = folder / 'keystone.conf'
        self._options = {
            'database': f'connection = sqlite:///{folder}/keystone.sqlite',
        }
        for section in ('fernet_tokens', 'fernet_receipts', 'credential'):
            keys = folder / section
            keys.mkdir(0o700)
            for name in '01':
                (keys / name).write_bytes(fernet.Fernet.generate_key())
            self._options[section] = f'key_repository = {keys}'
        self._write({})
        self._manage('db_sync')
        self._manage('bootstrap', f'--bootstrap-password={_PASSWORD}')

    @contextlib.contextmanager
    def serving(self, **options):
        """Serve it and return its URL.

        :param options: Options of the section ``resource``.
        """
        self._write(options)
        with subprocess.Popen(
            [sys.executable, '-W', 'ignore', __file__],
            env=self._environment,
            stdout=subprocess.PIPE,
            # Its log would fill a pipe.
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            try:
                assert process.stdout
                port = int(process.stdout.readline())
                yield f'http://127.0.0.1:{port}/v3'
            finally:
                process.terminate()

    @staticmethod
    def session(url, user='admin', **scope):
        """Return a session of a user.

        :param scope: The scope for keystoneauth; by default that of the
            administrator.
        """
        usual = {'project_name': 'admin', 'project_domain_id': 'default'}
        return session.Session(
            v3.Password(
                auth_url=url,
                username=user,
                password=_PASSWORD,
                user_domain_id='default',
                **(scope or usual),
            )
        )

    @property
    def _environment(self):
        return os.environ | {
            'OS_KEYSTONE_CONFIG_DIR': str(self._config.parent),
            'OS_KEYSTONE_CONFIG_FILES': self._config.name,
        }

    def _write(self, resource):
        options = self._options | {
            'resource': '\n'.join(f'{k} = {v}' for k, v in resource.items())
        }
        self._config.write_text(
            ''.join(f'[{name}]\n{text}\n' for name, text in options.items()),
            encoding='utf-8',
        )

    def _manage(self, *arguments):
        program = pathlib.Path(sys.executable).with_name('keystone-manage')
        subprocess.run(
            [str(program), f'--config-file={self._config}', *arguments],
            check=True,
            capture_output=True,
        )


def main():
    """Serve Keystone until terminated."""
    from keystone.wsgi.api import application

    server = simple_server.make_server('127.0.0.1', 0, application)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == '__main__':
    main()
