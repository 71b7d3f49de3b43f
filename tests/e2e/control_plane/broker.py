# SPDX-License-Identifier: Apache-2.0
"""Runs RabbitMQ in its own folder, on 127.0.0.1 only.

By default it also listens for other nodes and starts a port mapper (epmd),
both on all interfaces.
"""

import shutil

import kombu

from control_plane.settings import HOST

# Debian has a script on the path that runs this as another user.
_PROGRAMS = '/usr/lib/rabbitmq/bin'


def url(settings):
    """Return where services find the broker."""
    if settings.broker_url is not None:
        return settings.broker_url
    port = settings.port('rabbitmq')
    return f'rabbit://e2e:{settings.secret}@{HOST}:{port}/'


def program():
    """Return the path of the server; None if it is not installed."""
    return shutil.which('rabbitmq-server', path=_PROGRAMS) or shutil.which(
        'rabbitmq-server'
    )


def environment(settings):
    """Return the environment of the server and epmd."""
    folder = settings.state / 'rabbitmq'
    return {
        'ERL_EPMD_ADDRESS': HOST,
        'ERL_EPMD_PORT': str(settings.port('epmd')),
        # Where Erlang keeps the cookie.
        'HOME': str(_made(folder)),
        'RABBITMQ_CONFIG_FILE': str(settings.etc / 'rabbitmq.conf'),
        'RABBITMQ_CONF_ENV_FILE': '/dev/null',
        'RABBITMQ_DIST_PORT': str(settings.port('rabbitmq-distribution')),
        'RABBITMQ_ENABLED_PLUGINS_FILE': str(folder / 'enabled_plugins'),
        'RABBITMQ_LOG_BASE': str(folder),
        'RABBITMQ_MNESIA_BASE': str(folder),
        'RABBITMQ_NODENAME': 'e2e@localhost',
        'RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS': (
            '-kernel inet_dist_use_interface {127,0,0,1}'
        ),
    }


def answers(settings):
    """Return whether services can talk to the broker."""
    address = url(settings).replace('rabbit://', 'amqp://')
    with kombu.Connection(address, connect_timeout=5) as connection:
        errors = (*connection.connection_errors, *connection.channel_errors)
        try:
            connection.connect()
        except (OSError, *errors):
            return False
    return True


def _made(folder):
    folder.mkdir(exist_ok=True)
    return folder
