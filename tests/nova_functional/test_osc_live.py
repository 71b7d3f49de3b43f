# SPDX-License-Identifier: Apache-2.0
"""``openstack isolation ...``, on a real Nova and a real Placement."""

import os
from unittest import mock
import warnings

from day_two import CommandTest
from openstackclient import shell
import pytest
import yaml

LICENSED = 'CUSTOM_LICENSED_WINDOWS'
TAG = f'trait:{LICENSED}'


class OpenStackTest(CommandTest):
    """An operator who uses only the OpenStack client."""

    def main(self, arguments):
        """Be the client, with nothing but clouds.yaml."""
        endpoints = self.connection().endpoints
        cloud = {
            'auth_type': 'admin_token',
            'auth': {'endpoint': endpoints['compute'], 'token': self.TOKEN},
            'isolation_config_file': str(self.config),
            **{
                f'{service}_endpoint_override': endpoint
                for service, endpoint in endpoints.items()
            },
        }
        path = self.config.with_name('clouds.yaml')
        path.write_text(yaml.safe_dump({'clouds': {'real': cloud}}))
        environment = {
            'OS_CLIENT_CONFIG_FILE': str(path),
            'OS_CLOUD': 'real',
        }
        with (
            mock.patch.dict(os.environ, environment),
            warnings.catch_warnings(),
        ):
            return shell.main(['isolation', *arguments])

    def done(self, *arguments):
        """Run a command that must not fail; return its document."""
        result = self.run_command(*arguments, '-f', 'json')
        assert (result.code, result.err) == (0, '')
        return result.document

    @pytest.mark.smoke
    def test_lock_grant_boot_revoke_unlock(self):
        self.aggregate('licensed', ['host1'])
        keyed, plain = self.flavor(), self.flavor()
        assert self.done('lock', 'list')['locks'] == []

        self.done('lock', 'create', 'licensed', '--trait', LICENSED)
        self.done('key', 'add', '--flavor', keyed, '--trait', LICENSED)
        assert self.host_for(keyed) == 'host1'
        assert self.host_for(plain) == 'host2'
        [lock] = self.done('lock', 'list')['locks']
        assert (lock['name'], lock['hosts']) == (TAG, ['host1'])
        offered = self.done('candidate', 'list', '--flavor', plain)
        assert [host['name'] for host in offered['hosts']] == ['host2']

        self.done('key', 'remove', '--flavor', keyed, '--trait', LICENSED)
        self.done('lock', 'delete', 'licensed')
        assert self.done('lock', 'list')['locks'] == []
        assert self.host_for(plain) == 'host1'

    def test_missing_rights_are_one_sentence(self):
        # Nova takes it for an administrator's, Placement does not.
        self.TOKEN = 'nobody'
        result = self.run_command(
            'candidate', 'list', '--flavor', self.flavor()
        )
        assert (result.code, result.out) == (1, '')
        assert result.err.count('\n') == 1
        assert result.err.startswith('Placement at ')
        assert ' denied GET /allocation_candidates?' in result.err
        assert result.err.endswith(
            '; use credentials with the admin or service role.\n'
        )
