# SPDX-License-Identifier: Apache-2.0
"""Configuration files, written from templates."""

import pathlib
import shlex
import shutil
import sys

import jinja2

from control_plane import broker
from control_plane.settings import REGION

_ROOT = pathlib.Path(__file__).parents[3]
_SAMPLE = _ROOT / 'etc/isolate-aggregates/nova-scheduler.conf.sample'

_FILES = (
    ('keystone.conf', 'etc/keystone/keystone.conf'),
    ('glance-api.conf', 'etc/glance/glance-api.conf'),
    ('placement.conf', 'etc/placement/placement.conf'),
    ('nova.conf', 'etc/nova/nova.conf'),
    ('isolation.conf', 'etc/nova/nova.conf.d/isolation-2.conf'),
    ('gunicorn.conf.py', 'etc/gunicorn.conf.py'),
    ('rabbitmq.conf', 'etc/rabbitmq.conf'),
    ('clouds.yaml', 'clouds.yaml'),
    ('openrc', 'openrc'),
)


class Configuration:
    """Writes configuration files.

    :param settings: What stands in them.
    :param database: Returns where a service finds its database.
    """

    def __init__(self, settings, database):
        self._settings = settings
        self._templates = jinja2.Environment(
            loader=jinja2.PackageLoader('control_plane'),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            # No markup, so nothing to escape.
            autoescape=False,
        )
        self._templates.filters['quoted'] = lambda path: shlex.quote(str(path))
        self._templates.globals.update(
            broker=broker.url(settings),
            database=database,
            port=settings.port,
            prefix=sys.prefix,
            region=REGION,
            secret=settings.secret,
            state=settings.state,
            url=settings.url,
        )

    def write_all(self):
        """Write the files that exist once."""
        for template, path in _FILES:
            self.write(template, path)
        # As in the documentation for operators.
        etc = self._settings.etc / 'nova'
        shutil.copy(_SAMPLE, etc / 'nova.conf.d' / 'isolation-1.conf')
        # Nova's API expects it next to nova.conf.
        shutil.copy(pathlib.Path(sys.prefix) / 'etc/nova/api-paste.ini', etc)

    def write(self, template, path, **names):
        """Write a file from a template.

        :param template: The name of the template.
        :param path: The file, below the folder of the control plane.
        :param names: What else stands in it.
        """
        written = self._settings.state / path
        written.parent.mkdir(parents=True, exist_ok=True)
        text = self._templates.get_template(template).render(names)
        written.write_text(text, 'utf-8')
        return written
