# SPDX-License-Identifier: Apache-2.0
"""Reserved hosts, from the reservation to the server.

The steps are those of the section "Developer impact" of `Support filtering by
forbidden aggregate membership
<https://docs.openstack.org/placement/latest/specs/train/implemented/2005297-negative-aggregate-membership.html>`_.
"""

from base import RESERVATIONS, CloudTest, host_of
from keystoneauth1 import exceptions as ks_exceptions

from isolate_aggregates import conf as ia_conf

LEASE = 'reservation:4d17d41a'
OWNER, GUEST, STRANGER = 'a' * 32, 'b' * 32, 'c' * 32


class ReservationsTest(CloudTest):
    """Step 0: the operator sets both prefixes."""

    REQUEST_FILTERS = ('isolate_aggregates', 'reservation_prefix')
    HOSTS = ('host1', 'host2', 'host3')
    OPTIONS = (
        *RESERVATIONS,
        (ia_conf.GROUP, 'reservation_key_sources', ['image', 'hint']),
    )

    def test_reserved_hosts_need_a_flavor_that_names_the_reservation(self):
        pool = self.aggregate(
            'freepool', ['host1'], {'reservation:2e1dfa7c': 'true'}
        )
        self.aggregate('lease', ['host2'], {LEASE: 'true'})
        plain = self.flavor()

        # Step 3: though the pool would be preferred.
        assert self.host_for(self.flavor({LEASE: 'true'})) == 'host2'
        # Step 4: though both others would be preferred.
        assert self.host_for(plain) == 'host3'
        # A reservation that is not there is none, not any host.
        message = self.refusal_of(self.flavor({'reservation:9': 'true'}))
        assert message == (
            'no aggregate has the '
            'metadata key reservation:9, which the request names'
        )

        # Nor is the pool a last resort.
        self.admin_api.add_host_to_aggregate(pool, 'host3')

        message = self.refusal_of(plain)
        assert message.startswith('No valid host was found')
        assert self.host_for(self.flavor({LEASE: 'true'})) == 'host2'

    def test_tenants_name_reservations_of_their_own_only(self):
        self.aggregate(
            'lease',
            ['host2'],
            {LEASE: 'true', 'blazar:owner': OWNER, GUEST: 'blazar:tenant'},
        )
        plain = self.flavor()
        # Nova's scheduler does not get this property; Glance has it.
        image = self.image({LEASE: 'true'})
        refused = (
            f'{LEASE} is named by the image or a hint, but project {STRANGER} '
            'does not own it'
        )

        for claim in ({'image': image}, {'hints': {LEASE: 'true'}}):
            for project in (OWNER, GUEST):
                host = self.host_for(plain, project=project, **claim)
                assert host == 'host2', claim
            message = self.refusal_of(plain, project=STRANGER, **claim)
            assert message == refused

        # Whoever got the flavor from the operator need not own it.
        flavor = self.flavor({LEASE: 'true'})
        assert self.host_for(flavor, project=STRANGER) == 'host2'

    def test_a_server_of_a_deleted_image_can_be_moved(self):
        self.aggregate('lease', ['host1'], {LEASE: 'true'})
        image = self.image({})
        server = self.boot(self.flavor(), image=image)
        assert host_of(server) == 'host2'

        self.glance.delete(None, image)
        # What was read of the image is remembered for a while.
        self.restart_scheduler()

        server = self._migrate_server(server)
        assert host_of(server) == 'host3'

    def test_host_filters_need_no_credentials_for_a_rebuild(self):
        self.aggregate('lease', ['host1'], {LEASE: 'true'})
        server = self.boot(self.flavor(), image=self.image({}))
        assert host_of(server) == 'host2'
        show = self.glance.show

        def with_credentials(context, *args, **kwargs):
            # As the client of a real Glance does.
            if context.user_id is None:
                raise ks_exceptions.AuthorizationFailure('No authentication')
            return show(context, *args, **kwargs)

        newer = self.image({})
        self.glance.show = with_credentials
        server = self._rebuild_server(server, newer)
        assert server['image']['id'] == newer
        assert host_of(server) == 'host2'
