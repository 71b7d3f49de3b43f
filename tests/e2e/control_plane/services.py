# SPDX-License-Identifier: Apache-2.0
"""The services: their command lines, and when they are ready."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import functools
import pathlib

import requests

from control_plane import broker
from control_plane.settings import HOST, HOSTS, program

# What Nova's services log once they take requests.
_JOINED = 'Join ServiceGroup membership'


@dataclasses.dataclass(frozen=True)
class Service:
    """A service of the control plane.

    :param name: Its name.
    :param command: The program and its arguments.
    :param is_ready: Returns whether it is ready, given its log.
    :param after: The steps to run before it is started.
    :param environment: Additional environment variables.
    """

    name: str
    command: Sequence[str]
    is_ready: Callable[[str], bool]
    after: Sequence[str] = ()
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)


def all_services(settings):
    """Return all services but the database.

    :param settings: Where they listen and keep their files.
    """
    return [
        *_broker(settings),
        _web(settings, 'keystone', 'keystone.wsgi.api', 'OS_KEYSTONE'),
        _web(settings, 'glance', 'glance.wsgi.api', 'OS_GLANCE'),
        _web(settings, 'placement', 'placement.wsgi.api', 'OS_PLACEMENT'),
        _web(
            settings,
            'nova-api',
            'nova.wsgi.osapi_compute',
            'OS_NOVA',
            'rabbitmq',
        ),
        Service(
            'neutron',
            [
                program('python'),
                str(pathlib.Path(__file__).with_name('neutron.py')),
                str(settings.port('neutron')),
            ],
            functools.partial(_answers, settings.url('neutron')),
        ),
        _nova(settings, 'nova-conductor'),
        scheduler(settings, 'nova-scheduler'),
        *(compute(settings, host) for host in HOSTS),
    ]


def scheduler(settings, name):
    """Return a nova-scheduler.

    :param settings: Where it keeps its files.
    :param name: Its name, which is also that of its host.
    """
    etc = settings.etc / 'nova'
    return Service(
        name,
        [
            program('nova-scheduler'),
            f'--config-file={etc}/nova.conf',
            f'--config-file={etc}/{name}.conf',
            f'--config-dir={etc}/nova.conf.d',
        ],
        _has_joined,
        _NOVA_NEEDS,
    )


def compute(settings, host):
    """Return the nova-compute of a host.

    It has a separate configuration, which must not contain any database.

    :param settings: The settings of the control plane.
    :param host: The name of the host.
    """
    return Service(
        host,
        [
            program('nova-compute'),
            f'--config-file={settings.etc}/nova/{host}.conf',
        ],
        _has_joined,
        # Without it, it would wait for an answer in vain at first.
        ('nova-conductor',),
    )


_NOVA_NEEDS = ('nova schema', 'rabbitmq', 'placement', 'accounts')


def _nova(settings, name):
    return Service(
        name,
        [program(name), f'--config-file={settings.etc}/nova/nova.conf'],
        _has_joined,
        _NOVA_NEEDS,
    )


def _web(settings, name, application, variable, *after):
    project = name.partition('-')[0]
    return Service(
        name,
        [
            program('gunicorn'),
            f'--config={settings.etc}/gunicorn.conf.py',
            f'--bind={HOST}:{settings.port(name)}',
            f'--name={name}',
            f'{application}:application',
        ],
        functools.partial(_answers, settings.url(name)),
        (f'{project} schema', *after),
        {f'{variable}_CONFIG_DIR': str(settings.etc / project)},
    )


def _broker(settings):
    if settings.broker_url is not None:
        return []
    environment = broker.environment(settings)
    return [
        Service('epmd', ['epmd'], lambda _: True, environment=environment),
        Service(
            'rabbitmq',
            [str(broker.program())],
            lambda _: broker.answers(settings),
            ('epmd',),
            environment,
        ),
    ]


def _answers(url, logged):
    try:
        return requests.get(url, timeout=5).status_code < 500
    except requests.RequestException:
        return False


def _has_joined(logged):
    return _JOINED in logged
