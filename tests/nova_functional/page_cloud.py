# SPDX-License-Identifier: Apache-2.0
"""A cloud in which pages of the documentation are done as they stand."""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
from unittest import mock

from base import CONF
from day_two import CommandTest
import fixtures
from glance_api import URL as GLANCE
from keystone_api import REGIONS, KeystoneApi
from keystone_api import URL as KEYSTONE
from network_api import URL as NEUTRON
from network_api import NetworkApi
from nova.cmd import manage
from openstackclient import shell
from osc_lib import clientmanager
import pages
import runners
import terminal
import yaml

from isolate_aggregates.upgrade_check import status
from isolate_aggregates.upgrade_check.checks import Checks
from isolate_aggregates_tools.cli import app

# The original, before a test replaces it.
CONNECT = app.IsolateAggregatesApp.connect


_PROGRAM = (
    'import sys; from isolate_aggregates_tools.cli import app; '
    'sys.exit(app.main())'
)


def run_program(arguments):
    """Run the program; in another process if it has its own Placement."""
    if '--snapshot' not in arguments:
        return app.main(arguments)
    result = subprocess.run(
        [sys.executable, '-c', _PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    print(result.stdout, end='')
    return result.returncode


class PageTest(CommandTest):
    """A cloud whose operator copies commands from pages."""

    # The file name in the table of runners.
    RUNNER = ''

    def setUp(self):
        super().setUp()
        # No host of the fake driver has room for these.
        for flavor in self.admin_api.get_flavors():
            if flavor['name'] in ('m1.large', 'm1.xlarge'):
                self.admin_api.delete_flavor(flavor['id'])
        endpoints = {
            **self.connection().endpoints,
            'image': GLANCE,
            'network': NEUTRON,
        }
        for api in (
            NetworkApi(self.neutron._networks.values()),
            KeystoneApi(self.TOKEN, endpoints),
        ):
            api.interceptor.__enter__()
            self.addCleanup(api.interceptor.__exit__, None, None, None)
        self.stub_out(
            'isolate_aggregates_tools.cli.app.IsolateAggregatesApp.connect',
            CONNECT,
        )
        # Whoever needs the usual one may have it.
        self.stub_out(
            'isolate_aggregates_tools.commands.exporter._LISTEN', '127.0.0.1:0'
        )
        clouds = self.config.with_name('clouds.yaml')
        clouds.write_text(yaml.safe_dump({'clouds': {'mycloud': self.cloud}}))
        environment = {
            'OS_CLIENT_CONFIG_FILE': str(clouds),
            'OS_CLOUD': 'mycloud',
        }
        for name, value in environment.items():
            self.useFixture(fixtures.EnvironmentVariable(name, value))
        # It is another cloud than that of the test before, and the clients
        # are kept for as long as a process of osc runs.
        for member in vars(clientmanager.ClientManager).values():
            if isinstance(member, clientmanager.ClientCache):
                member._handle = None

    @property
    def cloud(self):
        """What the operator has in clouds.yaml."""
        return {
            'auth': {
                'auth_url': f'{KEYSTONE}/v3',
                'username': 'admin',
                'password': 'secret',
                'project_name': 'admin',
                'user_domain_id': 'default',
                'project_domain_id': 'default',
            },
            'regions': list(REGIONS),
            # Nova's fixtures keep openstacksdk from looking for it.
            'network_endpoint_override': NEUTRON,
            'isolation_config_file': str(self.config),
        }

    @contextlib.contextmanager
    def new_terminal(self):
        """Sit down in front of a terminal, in an empty home directory."""
        environment = {
            name: value
            for name, value in os.environ.items()
            if name.startswith('OS_CL')
        }
        with (
            tempfile.TemporaryDirectory() as folder,
            terminal.Terminal(
                pathlib.Path(folder),
                {
                    'isolate-aggregates': run_program,
                    'isolate-aggregates-status': self.check_upgrade,
                    'nova-manage': self.manage,
                    'openstack': shell.main,
                },
                environment,
            ) as self.terminal,
        ):
            yield pathlib.Path(folder)

    def check_upgrade(self, arguments):
        """Be the program that checks the configuration of this Nova."""
        self.reach_placement()
        if arguments == ['placement', 'check', '--probe']:
            return status._probe_placement()
        *options, what, verb = arguments
        assert (what, verb) == ('upgrade', 'check')
        assert {*options[::2]} <= {'--config-file', '--config-dir'}
        # Which this Nova has done at its start.
        with mock.patch('nova.db.api.api.configure'):
            return Checks(CONF).check()

    def manage(self, arguments):
        """Be nova-manage, as far as pages need it."""
        assert arguments == ['placement', 'sync_aggregates']
        return manage.PlacementCommands().sync_aggregates()

    def play(self, name, **around):
        """Follow a page; check that it is correct."""
        wrong = self.faults(name, **around)
        assert wrong == [], '\n'.join(wrong)

    def faults(self, name, before=None, typed_values=None, files=None):
        """Follow a page with commands for a cloud; return the differences.

        :param name: The name of the page.
        :param before: What to do before a command that begins so.
        :param typed_values: What to type in place of what a page cannot have.
        :param files: Files that the page takes for granted, by name.
        """
        wrong = []
        with self.new_terminal() as folder:
            for block in pages.blocks(pages.path(name)):
                if block.caption and not block.caption.startswith('/'):
                    (folder / block.caption).write_text(block.text)
            for file, text in (files or {}).items():
                (folder / file).write_text(text)
            for command in runners.commands_of(name, self.RUNNER):
                for beginning, act in (before or {}).items():
                    if beginning in command.text:
                        act()
                wrong += self.do(command, typed_values or {})
        return [f'{name}: {each}' for each in wrong]

    def do(self, command, typed_values):
        """Run a command; yield the differences from the page."""
        text = runners.here(command.text)
        text = text.replace(runners.NOVA_CONF, str(self.config))
        for placeholder, value in typed_values.items():
            text = text.replace(placeholder, value)
        typed = self.terminal.type(text)
        true = (
            pages.agrees(command.output, typed.output)
            if command.output
            else typed.code in self.usual(command.words)
        )
        if not true:
            yield f'$ {command.text}\n{typed.output}({typed.code})'

    @staticmethod
    def usual(words):
        """Return how a command may end if nothing is wrong."""
        if words[-1] in ('sync', '--dry-run'):
            return (0, 3)
        return (0, 4) if words[-1] == 'audit' else (0,)
