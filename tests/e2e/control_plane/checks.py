# SPDX-License-Identifier: Apache-2.0
"""What has to be so before anything starts, and what to do if it is not."""

import socket

from control_plane import broker as rabbitmq
from control_plane.databases import database_servers
from control_plane.settings import HOST, PORTS


def folder(settings):
    """Check that the folder contains only our files, as it will be emptied.

    :raises RuntimeError: if it has.
    """
    if settings.state.exists():
        results = set(settings.state.iterdir()) - {settings.logs}
        if results and not settings.kept.exists():
            raise RuntimeError(
                f'{settings.state} is not empty; set E2E_STATE to a folder '
                'for the cloud alone'
            )


def programs(settings):
    """Check that database and broker, or their programs, are available.

    :raises RuntimeError: if there is not.
    """
    if not (settings.database_url or database_servers.MariaDB.is_installed()):
        raise _missing(database_servers.MariaDB.PACKAGE, 'E2E_DATABASE_URL')
    if not (settings.broker_url or rabbitmq.program()):
        raise _missing('rabbitmq-server', 'E2E_BROKER_URL')


def ports(settings):
    """Check that the ports of the services are free.

    :raises RuntimeError: if somebody does.
    """
    for name in PORTS:
        port = settings.port(name)
        try:
            socket.create_server((HOST, port)).close()
        except OSError as exc:
            raise RuntimeError(
                f'Port {port}, for {name}, is taken; set E2E_BASE_PORT'
            ) from exc


def broker(settings):
    """See that a broker that runs already can be talked to.

    :raises RuntimeError: if it cannot.
    """
    if not rabbitmq.answers(settings):
        raise RuntimeError('The broker of E2E_BROKER_URL does not answer')


def _missing(package, variable):
    return RuntimeError(
        f'{package} is not installed, and {variable} names none'
    )
