# SPDX-License-Identifier: Apache-2.0
"""What a member of a project sees of its reservations, by Nova's policies."""

import json

from keystoneauth1 import session, token_endpoint
from nova.api import auth
from reservation_cloud import OWNER, SIZE, STRANGER, ReservationTest

MEMBER = 'the-token-of-a-member'
SCHEMA = 'isolate-aggregates/reservation-list/1'
MINE = ('list', '--mine')
LATER = ('--start', '2127-03-01T08:00Z', '--end', '7d')


class MemberTest(ReservationTest):
    """Reservations that an operator made, listed by other users."""

    def setUp(self):
        super().setUp()
        self.project = OWNER
        create_context = auth.NovaKeystoneContext._create_context

        def with_token(env, **kwargs):
            if env.get('HTTP_X_AUTH_TOKEN') == MEMBER:
                env.update(
                    HTTP_X_AUTH_USER='fake',
                    HTTP_X_AUTH_PROJECT_ID=self.project,
                    HTTP_X_ROLES='member,reader',
                )
            return create_context(env, **kwargs)

        self.stub_out(
            'nova.api.auth.NovaKeystoneContext._create_context', with_token
        )

    def become(self, project):
        """Let the next commands be run by a member of a project."""
        self.project = project
        self.session = session.Session(
            token_endpoint.Token(self.COMPUTE, MEMBER)
        )

    def test_a_member_sees_the_flavors_of_running_reservations(self):
        reservation = self.reserve('--amount', '2', '--note', 'order 7')
        self.done('set', reservation, '--amount', '1')
        self.done('create', '--project', OWNER, *SIZE, *LATER)
        self.boot(reservation)

        self.become(OWNER)

        assert self.done(*MINE) == {
            'schema': SCHEMA,
            'reservations': [
                {
                    'id': reservation,
                    'flavor': f'reservation:{reservation}',
                    'shape': {
                        'vcpus': 1,
                        'ram': 64,
                        'disk': 1,
                        'ephemeral': 0,
                        'swap': 0,
                    },
                    'servers': 1,
                    'boot_until': None,
                }
            ],
        }
        result = self.run_command('reservation', *MINE)
        assert (result.code, result.err) == (0, '')
        assert f'| reservation:{reservation} |' in result.out
        assert 'Only administrators can see the number of slots' in result.out
        # As the page warns.
        [flavor] = [
            flavor
            for flavor in self.user(OWNER).get_flavors()
            if flavor['id'] == reservation
        ]
        assert json.loads(flavor['description'])['note'] == 'order 7'
        # The whole list needs an administrator.
        assert '403' in self.refused('list')

    def test_a_member_of_another_project_sees_none(self):
        self.reserve()
        self.become(STRANGER)
        assert self.done(*MINE) == {'schema': SCHEMA, 'reservations': []}
        result = self.run_command('reservation', *MINE)
        assert result.out.startswith(
            'No reservation of your project has started.\n'
        )
