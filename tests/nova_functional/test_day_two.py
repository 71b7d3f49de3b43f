# SPDX-License-Identifier: Apache-2.0
"""The everyday commands, on a real Nova and a real Placement.

With ``THOROUGH=1`` calls fail in more ways than in an ordinary run.
"""

from base import CONF, IMAGE
from day_two import CommandTest
from keystoneauth1 import exceptions as ks_exceptions
from keystoneauth1 import session
import pytest
from thorough import THOROUGH

from isolate_aggregates_tools import candidates
from isolate_aggregates_tools.mirrored import chain
from isolate_aggregates_tools.request import Request

LICENSED = 'CUSTOM_LICENSED_WINDOWS'
MARK = f'CUSTOM_ISOLATE_SYNC_{LICENSED}'
TAG = f'trait:{LICENSED}'


class BreakableSession(session.Session):
    """A session whose calls can fail, from some number on.

    :param auth: As for any session.
    """

    def __init__(self, auth):
        super().__init__(auth)
        self.calls = 0
        self.fail_at = None
        self.after_sending = False

    def request(self, url, method, **kwargs):
        """Call, unless it is to fail."""
        self.calls += 1
        if self.fail_at is None or self.calls < self.fail_at:
            return super().request(url, method, **kwargs)
        if self.after_sending and self.calls == self.fail_at:
            super().request(url, method, **kwargs)
        raise ks_exceptions.ConnectFailure(f'Unable to connect to {url}')


class DayTwoTest(CommandTest):
    """Commands of an operator, each as the program runs it."""

    def done(self, *arguments):
        """Run a command that must succeed; return its output."""
        result = self.run_command(*arguments, '-f', 'json')
        only_shown = '--dry-run' in arguments and result.changes
        assert (result.code, result.err) == (3 if only_shown else 0, '')
        return result

    def state(self):
        """Return all metadata, traits and extra specs of locks, by object."""
        aggregates = {
            aggregate['name']: aggregate['metadata']
            for aggregate in self.admin_api.api_get('/os-aggregates').body[
                'aggregates'
            ]
        }
        for host in self.HOSTS:
            provider = self._get_provider_uuid_by_host(host)
            aggregates[host] = (
                sorted(
                    trait
                    for trait in self._get_provider_traits(provider)
                    if trait.startswith('CUSTOM_')
                ),
                sorted(self._get_provider_aggregates(provider)),
            )
        aggregates['marks'] = [
            trait for trait in self._get_all_traits() if trait == MARK
        ]
        return aggregates

    def open_to(self, flavor):
        """Return the hosts that are offered for a flavor."""
        cloud = self.live_cloud()
        outcome = candidates.find(
            cloud,
            chain.as_in_nova(CONF),
            Request(cloud.flavor(flavor)),
            None,
        )
        return {host.name for host in outcome.hosts}

    def test_lock_grant_boot_revoke_unlock(self):
        self.aggregate('licensed', ['host1'], {'rack': '7'})
        keyed, plain = self.flavor(), self.flavor()
        before = self.state()

        locked = self.done('lock', 'create', 'licensed', '--trait', LICENSED)
        assert locked.changes == [
            (f'create trait {LICENSED}', 'done'),
            (f'create trait {MARK}', 'done'),
            (f'tag aggregate licensed {TAG}=required', 'done'),
            (f'add trait {LICENSED} to host host1', 'done'),
        ]
        assert locked.document['left'] == [
            f'no flavor and no image requires {LICENSED} yet, so no server '
            f'can use the hosts; next, run key add --flavor <flavor> --trait '
            f'{LICENSED}'
        ]
        assert self.state()['licensed'] == {'rack': '7', TAG: 'required'}
        assert self.host_for(plain) == 'host2'

        again = self.done('lock', 'create', 'licensed', '--trait', LICENSED)
        assert again.changes == []

        grant = ('key', 'add', '--flavor', keyed, '--trait', LICENSED)
        granted = self.done(*grant)
        assert [result for _, result in granted.changes] == ['done']
        assert self.done(*grant).changes == []
        assert self.host_for(keyed) == 'host1'
        assert self.host_for(plain) == 'host2'
        assert (
            self.done(
                'lock', 'create', 'licensed', '--trait', LICENSED
            ).document['left']
            == []
        )

        output = self.done('lock', 'list').document['locks']
        [lock] = output
        assert (lock['name'], lock['hosts']) == (TAG, ['host1'])
        assert lock['capacity']['VCPU'] == {'free': 39, 'used': 1}
        assert self.done('lock', 'show', 'host1').document['locks'] == [TAG]

        revoke = ('key', 'remove', '--flavor', keyed, '--trait', LICENSED)
        assert len(self.done(*revoke).changes) == 1
        assert self.done(*revoke).changes == []

        unlocked = self.done('lock', 'delete', 'licensed')
        assert unlocked.changes == [
            (f'remove trait {LICENSED} from host host1', 'done'),
            (f'delete trait {MARK}', 'done'),
            (f'untag aggregate licensed {TAG}', 'done'),
        ]
        assert self.state() == before
        assert self.done('lock', 'delete', 'licensed').changes == []
        assert self.state() == before
        assert self.host_for(plain) == 'host1'

    def test_sync_and_lock_make_the_same_changes(self):
        self.aggregate('licensed', ['host1'])
        number = self.aggregate('tagged', ['host2'])
        before = self.state()
        self.done('lock', 'create', 'licensed', '--trait', LICENSED)
        assert self.done('sync').document['changes'] == []
        self.tag(number, {TAG: 'required'})
        self.done('sync', '--yes')
        assert (
            self.done('lock', 'create', 'tagged', '--trait', LICENSED).changes
            == []
        )
        # Two aggregates with one lock have a rollup, which is for sync alone.
        unlocked = self.done('lock', 'delete', 'licensed')
        assert any('until sync has' in n for n in unlocked.document['notes'])
        assert self.host_for(self.flavor()) == 'host1'
        self.done('sync', '--yes')
        unlocked = self.done('lock', 'delete', 'tagged')
        assert unlocked.document['notes'] == []
        assert self.done('sync').document['changes'] == []
        assert self.state() == before

    @pytest.mark.slow
    def test_an_image_can_have_the_key(self):
        self.aggregate('licensed', ['host1'])
        image, flavor = self.image({}), self.flavor()
        self.done('lock', 'create', 'licensed', '--trait', LICENSED)
        assert self.host_for(flavor, image=image) == 'host2'

        grant = ('key', 'add', '--image', image, '--trait', LICENSED)
        granted = self.done(*grant)
        assert [result for _, result in granted.changes] == ['done']
        assert any(
            'belongs to project 8a5c0e6d2f7b4d31a9f05f2c1be07c44' in note
            for note in granted.document['notes']
        )
        assert self.done(*grant).changes == []
        assert self.host_for(flavor, image=image) == 'host1'
        assert self.host_for(flavor, image=IMAGE) == 'host2'

        revoke = ('key', 'remove', '--image', image, '--trait', LICENSED)
        assert len(self.done(*revoke).changes) == 1
        assert self.done(*revoke).changes == []
        assert self.host_for(flavor, image=image) == 'host2'

    def test_a_dry_run_changes_nothing(self):
        self.aggregate('licensed', ['host1'])
        flavor = self.flavor()
        before = self.state()
        for command in (
            ('lock', 'create', 'licensed', '--trait', LICENSED),
            ('lock', 'delete', 'licensed', '--trait', LICENSED),
        ):
            self.done(*command, '--dry-run')
            assert self.state() == before
        planned = self.done(
            'lock', 'create', 'licensed', '--trait', LICENSED, '--dry-run'
        )
        assert {result for _, result in planned.changes} == {'would be done'}
        self.done('lock', 'create', 'licensed', '--trait', LICENSED)
        locked = self.state()
        self.done('lock', 'delete', 'licensed', '--dry-run')
        assert self.state() == locked
        grant = ('key', 'add', '--flavor', flavor, '--trait', LICENSED)
        assert len(self.done(*grant, '--dry-run').changes) == 1
        assert len(self.done(*grant).changes) == 1

    @pytest.mark.slow
    def test_unlock_removes_only_unneeded_traits_that_we_added(self):
        self.give_trait('host1', LICENSED)
        number = self.aggregate('licensed', ['host1', 'host2'])
        before = self.state()
        self.done('lock', 'create', 'licensed', '--trait', LICENSED)
        unlocked = self.done('lock', 'delete', 'licensed')
        assert self.state() == before
        assert unlocked.document['notes'] == [
            f'host host1 keeps trait {LICENSED}, which isolate-aggregates did '
            'not add'
        ]

        other = self.aggregate('rack', ['host2'])
        self.done('lock', 'create', str(other), '--trait', LICENSED)
        between = self.state()
        self.done('lock', 'create', str(number), '--trait', LICENSED)
        unlocked = self.done('lock', 'delete', str(number))
        assert self.state() == between
        assert (
            f'host host2 keeps trait {LICENSED}, which aggregate rack requires'
            in unlocked.document['notes']
        )

    @pytest.mark.slow
    def test_an_interrupted_lock_is_safe_and_can_be_repeated(self):
        self.interrupt(
            ('lock', 'create', 'licensed', '--trait', LICENSED),
            ('lock', 'delete', 'licensed'),
        )

    @pytest.mark.slow
    def test_an_interrupted_unlock_is_safe_and_can_be_repeated(self):
        self.interrupt(
            ('lock', 'delete', 'licensed'),
            ('lock', 'create', 'licensed', '--trait', LICENSED),
        )

    def interrupt(self, command, back):
        """Let each call of a command fail, before and after it had effect."""
        self.aggregate('licensed', ['host1', 'host2'])
        keyed, plain = self.flavor({TAG: 'required'}), self.flavor()
        # So that the query of the keyed flavor makes sense all the time.
        self._create_trait(LICENSED)
        if command[:2] == ('lock', 'delete'):
            self.done(*back)
        start = self.state()
        self.done(*command)
        end = self.state()
        self.done(*back)
        assert self.state() == start != end
        at, interrupted = 1, 0
        while True:
            # An ordinary run alternates, a thorough one does both each time.
            for after_sending in (False, True) if THOROUGH else (at % 2 == 0,):
                broken = self.broken(at, after_sending)
                result = self.run_command(*command)
                self.session = None
                if broken.calls < at:
                    assert interrupted > 5
                    return
                interrupted += 1
                assert 'Traceback' not in result.err
                ordinary, special = self.open_to(plain), self.open_to(keyed)
                # Servers do not mix, and no server gets a host too early.
                assert not ordinary & special, at
                if self.state()['licensed']:
                    assert not ordinary, at
                assert self.run_command(*command).code == 0
                assert self.state() == end, at
                assert self.run_command(*back).code == 0
                assert self.state() == start, at
            at += 1

    def broken(self, at, after_sending):
        self.session = BreakableSession(self.auth())
        self.session.fail_at = at
        self.session.after_sending = after_sending
        return self.session

    def test_wrong_names_are_one_sentence(self):
        self.aggregate('licensed', ['host1'])
        before = self.state()
        for arguments, said in (
            (
                ('lock', 'create', 'nobody', '--trait', LICENSED),
                "There is no aggregate with the name or id 'nobody' in Nova.",
            ),
            (
                ('lock', 'create', 'licensed', '--trait', 'HW_NO_SUCH'),
                'Trait HW_NO_SUCH cannot lock an aggregate: this Placement '
                'does not know it; traits that are not standard must start '
                'with CUSTOM_.',
            ),
            (
                (
                    'lock',
                    'create',
                    'licensed',
                    '--trait',
                    'COMPUTE_VOLUME_EXTEND',
                ),
                'Trait COMPUTE_VOLUME_EXTEND cannot lock an aggregate: '
                'nova-compute reports it, or it has a special meaning; '
                'require a CUSTOM_ trait instead.',
            ),
            (
                ('key', 'add', '--flavor', 'any', '--trait', LICENSED),
                f'Placement knows no trait {LICENSED}; lock an aggregate with '
                'it first.',
            ),
        ):
            result = self.run_command(*arguments)
            assert (result.code, result.out) == (1, '')
            assert result.err == f'{said}\n'
        result = self.run_command(
            'lock', 'create', 'licensed', '--trait', 'custom-windows'
        )
        assert (result.code, result.out) == (2, '')
        assert "--trait: 'custom-windows' cannot be the name of a trait" in (
            result.err
        )
        assert self.state() == before

    @pytest.mark.slow
    def test_a_flavor_that_forbids_the_trait_gets_no_key(self):
        self.aggregate('licensed', ['host1'])
        self.done('lock', 'create', 'licensed', '--trait', LICENSED)
        flavor = self.flavor({TAG: 'forbidden'})
        result = self.run_command(
            'key', 'add', '--flavor', flavor, '--trait', LICENSED
        )
        assert result.code == 1
        assert f'has {TAG}=forbidden' in result.err
        assert self.admin_api.get_extra_specs(flavor) == {TAG: 'forbidden'}

    def test_without_rights_it_is_one_sentence(self):
        self.aggregate('licensed', ['host1'])
        before = self.state()
        self.policy_rules = {
            'os_compute_api:os-aggregates:set_metadata': '!',
        }
        self.policy.set_rules(self.policy_rules, overwrite=False)
        process = self.run_command(
            'lock', 'create', 'licensed', '--trait', LICENSED, '-f', 'json'
        )
        assert process.code == 1
        assert [result for _, result in process.changes] == [
            'done',
            'done',
            'failed',
            'not done',
        ]
        assert process.err.startswith('Nova at ')
        assert '(403)' in process.err
        assert process.err.count('\n') == 1
        # The mark is on nothing yet.
        assert self.state() == {**before, 'marks': [MARK]}

    @pytest.mark.slow
    def test_lock_reports_hosts_that_it_cannot_lock(self):
        self.aggregate('empty')
        locked = self.done('lock', 'create', 'empty', '--trait', LICENSED)
        assert locked.document['notes'] == [
            'aggregate empty has no hosts; after adding hosts, run the same '
            'command again, or sync'
        ]

        self.aggregate('licensed', ['host1', 'host2'])
        provider = self._get_provider_uuid_by_host('host2')
        self.placement.delete(f'/resource_providers/{provider}')
        result = self.run_command(
            'lock', 'create', 'licensed', '--trait', LICENSED, '-f', 'json'
        )
        assert result.code == 1
        assert result.document['problems'] == [
            'host host2: Placement has no resource provider for its compute '
            'node host2; check the log of nova-compute there'
        ]
        assert 'Host host2: Placement has no resource provider' in result.err
        assert (
            f'add trait {LICENSED} to host host1',
            'done',
        ) in result.changes

    def test_lock_adds_a_missing_membership_in_placement(self):
        self.aggregate('licensed', ['host1'])
        provider = self._get_provider_uuid_by_host('host1')
        mirrored = self.state()
        path = f'/resource_providers/{provider}/aggregates'
        self.placement.put(path, [], version='1.1')
        assert not self._get_provider_aggregates(provider)
        locked = self.done('lock', 'create', 'licensed', '--trait', LICENSED)
        assert (
            'add host host1 to aggregate licensed in Placement',
            'done',
        ) in locked.changes
        self.done('lock', 'delete', 'licensed')
        assert self.state() == mirrored
