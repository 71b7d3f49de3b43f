# SPDX-License-Identifier: Apache-2.0
"""The records of what servers were placed with, in Nova's own databases."""

import json
from unittest import mock

from base import ISOLATE, host_of
from nova import context as nova_context
from nova import objects
from oslo_db import exception as db_exception
import pytest
from test_lives import LICENSE, MINE, OWNER, LifeTest

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.nova import manage, placed
from isolate_aggregates.request.placed import Placed, hint


def record_of(server):
    """Return the record that Nova stores, without what all images have."""
    context = nova_context.get_admin_context()
    spec = objects.RequestSpec.get_by_instance_uuid(context, server['id'])
    record = placed.recorded(spec)
    if record is None or record.properties is None:
        return record
    properties = {
        name: value
        for name, value in record.properties.items()
        if name not in ('architecture', 'kernel_id', 'ramdisk_id')
    }
    return record._replace(properties=properties)


class RecordTest(LifeTest):
    """What is recorded, and what happens if it cannot be."""

    def test_each_server_of_a_request_has_its_own(self):
        image = self.image({MINE: '1'})
        request = self._build_server(
            image_uuid=image, flavor_id=self.flavor(), networks='none'
        )
        request.update({'min_count': 3, 'max_count': 3, 'name': 'three'})
        # Without it only the first is returned.
        request['return_reservation_id'] = True
        answer = self.user(OWNER).api_post('/servers', {'server': request})
        # Listed once only: each listing goes through all cells, which Nova's
        # fixtures do one after the other, while the servers are being built.
        listed = self.admin_api.api_get(
            '/servers?all_tenants=1&reservation_id='
            + answer.body['reservation_id']
        )
        made = listed.body['servers']
        assert len(made) == 3
        servers = [self._wait_for_state_change(one, 'ACTIVE') for one in made]
        expected = Placed(image, (), {MINE: '1'})
        assert [record_of(one) for one in servers] == [expected] * 3
        # And only its own.
        for one in servers:
            hints = self.admin_api.get_server(one['id'])['scheduler_hints']
            assert {*hints} == {hint(one['id'])}

    def test_a_record_follows_what_was_accepted(self):
        server, image = self.boot_from(MINE)
        record = record_of(server)
        assert record == Placed(image, (), {MINE: 'required'})
        # Nothing accepts what is in the image now.
        self.write(image)
        server = self.rebuild(server, image)
        server = self.rebuild_refused(server)
        server = self.resize(server)
        server = self.shelve(server)
        assert record_of(server) == record
        newer = self.image({MINE: '2'})
        server = self.rebuild(server, newer)
        assert record_of(server) == Placed(newer, (), {MINE: '2'})

    def test_a_host_filter_of_others_refuses_after_ours(self):
        """The record is that of the image that the server has."""
        server, _ = self.boot_from(MINE)
        record = record_of(server)
        manager = self.scheduler_service.manager.host_manager
        with mock.patch.object(
            manager, 'get_filtered_hosts', side_effect=self.refused_last
        ):
            server = self.rebuild_refused(server, MINE, 'other')
        assert record_of(server) == record

    def refused_last(self, hosts, spec_obj, index=0):
        for one in self.scheduler_service.manager.host_manager.enabled_filters:
            hosts = list(one.filter_all(hosts, spec_obj))
        assert list(hosts), 'ours must have passed it'
        return []

    def test_what_cannot_be_recorded_is_not_placed(self):
        image = self.image({MINE: '1'})
        with mock.patch.object(
            placed, '_edit', side_effect=db_exception.DBError('read only')
        ) as edit:
            server = self.boot(
                self.flavor(), image=image, project=OWNER, status='ERROR'
            )
        assert host_of(server) is None
        assert 'No valid host' in self.told_of(server)
        # Not once for each of the two hosts.
        assert edit.call_count == 1
        assert (
            f'Server {server["id"]} is not placed, because it cannot be '
            'recorded what it is placed with, so that later operations on it '
            "could not be decided: Nova's database cannot be changed: DBError"
        ) in self.log()
        allocations = self._get_allocations_by_server_uuid(server['id'])
        assert allocations == {}

    def test_a_rebuild_that_cannot_be_recorded_is_refused(self):
        server, _ = self.boot_from(MINE)
        record = record_of(server)
        with mock.patch.object(
            placed, '_edit', side_effect=db_exception.DBError('read only')
        ):
            server = self.rebuild_refused(server, MINE, 'other')
        assert record_of(server) == record

    def test_a_rebuild_is_recorded_without_our_host_filter(self):
        server, _ = self.boot_from(MINE)
        manager = self.scheduler_service.manager.host_manager
        manager.enabled_filters = [
            one
            for one in manager.enabled_filters
            if type(one).__name__ != 'IsolatedAggregatesFilter'
        ]
        newer = self.image({'other': '1'})
        server = self.rebuild(server, newer)
        assert record_of(server) == Placed(newer, (), {'other': '1'})

    def test_records_are_removed_and_made_again(self):
        server, image = self.boot_from(MINE)
        other, _ = self.boot_from()
        records = [record_of(one) for one in (server, other)]
        assert manage.forget(1).done == 1
        assert manage.forget().done == 1
        assert [record_of(one) for one in (server, other)] == [None] * 2
        # As before the package was installed.
        context = nova_context.get_admin_context()
        spec = objects.RequestSpec.get_by_instance_uuid(context, server['id'])
        assert not spec.scheduler_hints
        assert manage.record(1).done == 1
        assert manage.record().done == 1
        assert manage.record().done == 0
        assert [record_of(one) for one in (server, other)] == records
        self.write(image)
        server = self.rebuild(server, image)
        assert manage.record().done == 0
        assert host_of(self.migrate(server)) == 'host2'

    def test_a_rebuild_without_the_package_is_recorded_by_the_command(self):
        server, _ = self.boot_from(MINE)
        with mock.patch.object(placed, '_is_recorded', return_value=True):
            newer = self.image({MINE: '2'})
            server = self.rebuild(server, newer)
        assert record_of(server).image != newer
        assert manage.record().done == 1
        assert record_of(server) == Placed(newer, (), {MINE: '2'})

    def test_a_server_in_an_operation_is_left_out(self):
        server, _ = self.boot_from(MINE)
        manage.forget()
        with self.in_cell() as context:
            instance = objects.Instance.get_by_uuid(context, server['id'])
            instance.task_state = 'rebuilding'
            instance.save()
        found = manage.record()
        assert (found.busy, found.done) == (1, 0)

    def in_cell(self):
        context = nova_context.get_admin_context()
        return nova_context.target_cell(context, self.cell_mappings['cell1'])

    def test_a_record_of_a_later_version_is_not_used(self):
        server, _ = self.boot_from(MINE)

        def change(stored):
            name = hint(server['id'])
            placed.hints_of(stored)[name] = [json.dumps({'version': 9})]
            return True

        placed.edit(server['id'], change)
        # Nothing that is not understood is overwritten.
        found = manage.record()
        assert found.done == 0
        [problem] = found.problems
        assert server['id'] in problem
        self.admin_api.post_server_action(
            server['id'], {'migrate': None}, check_response_status=[202, 400]
        )
        self._wait_for_assert(
            lambda: (
                'cannot be read by this version' in self.log() or self.fail()
            )
        )


class NothingCountsTest(LifeTest):
    """No filter reads a property of an image."""

    REQUEST_FILTERS = ('isolate_aggregates',)
    OPTIONS = (ISOLATE, (ia_conf.GROUP, 'servers_recorded', True))

    def lock(self):
        """Let hosts be licensed."""
        for host in ('host1', 'host2'):
            self.give_trait(host, LICENSE.removeprefix('trait:'))
        self.aggregate('licensed', ['host1', 'host2'], {LICENSE: 'required'})

    @pytest.mark.slow
    def test_only_traits_are_recorded(self):
        licensed, image = self.boot_from(LICENSE, 'other')
        trait = LICENSE.removeprefix('trait:')
        assert record_of(licensed) == Placed(image, (trait,))
        # What nothing has accepted is not recorded later.
        self.write(image, LICENSE, MINE)
        licensed = self.rebuild(licensed, image)
        assert manage.record().done == 0
        assert record_of(licensed) == Placed(image, (trait,))
        whole, image = self.boot_from(LICENSE, 'other')
        assert manage.record().done == 1
        assert record_of(whole) == Placed(
            image, (trait,), {'other': 'required', LICENSE: 'required'}
        )
        plain, _ = self.boot_from('other')
        assert record_of(plain) is None
        plain = self.rebuild_refused(plain, LICENSE)
        # It would have a record if it had been placed with a trait.
        assert host_of(self.migrate(plain)) not in ('host1', 'host2')
        licensed = self.rebuild_refused(licensed)
        assert host_of(self.migrate(licensed)) == 'host2'
