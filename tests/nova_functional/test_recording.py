# SPDX-License-Identifier: Apache-2.0
"""Which decisions are recorded, what is left out, and what it costs others."""

import json
import threading
import time

from base import ISOLATE, LOCK, ShorteningCloudTest, host_of
import jsonschema
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova.db.api import api as api_db
from nova.db.api import models
from nova.scheduler import manager, utils
import oslo_messaging as messaging
from oslo_utils import uuidutils
import pytest
from record_schema import SCHEMA
import sqlalchemy as sa

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.nova import recorder, records

TRAIT = LOCK.removeprefix('trait:')
REQUESTS = 150
OURS = 'isolate-aggregates-records'


class Recording(ShorteningCloudTest):
    """host1 is licensed."""

    OPTIONS = (ISOLATE,)
    HOSTS = ('host1', 'host2')

    def setUp(self):
        super().setUp()
        self.aggregate('licensed', ['host1'], {LOCK: 'required'})
        self._create_trait(TRAIT)

    def records_of(self, server):
        found = [
            json.loads(line.partition('[isolate_aggregates.decisions] ')[2])
            for line in self.log().splitlines()
            if '[isolate_aggregates.decisions]' in line
            and server['id'] in line
        ]
        for record in found:
            jsonschema.validate(record, SCHEMA)
        return found

    def wait_for(self, found):
        until = time.monotonic() + 60
        while not found() and time.monotonic() < until:
            time.sleep(0.1)
        return found()


class All(Recording):
    """All requests are recorded, without what users write."""

    OPTIONS = (
        *Recording.OPTIONS,
        (ia_conf.GROUP, 'decisions', 'all'),
        (ia_conf.GROUP, 'decisions_omit', ['hints', 'names']),
    )

    def test_a_request_without_constraints_is_recorded(self):
        server = self.boot(self.flavor({LOCK: 'required'}), status='ERROR')
        [record] = self.wait_for(lambda: self.records_of(server))
        assert 'locks' not in record
        assert record['cause'] == 'traits'

    def test_a_placed_request_is_recorded(self):
        server = self.boot(self.flavor())
        [record] = self.records_of(server)
        assert record['result'] == 'placed'
        assert record['hosts'] == [host_of(server)] == ['host2']

    def test_neither_hints_nor_names_are_recorded(self):
        server = self.boot(self.flavor(), hints={'mine': 'secret'})
        [record] = self.records_of(server)
        assert record['omitted'] == ['hints', 'names']
        assert 'hints' not in record['keys']
        assert record['flavor'].keys() == {'id'}
        assert record['image'].keys() == {'id'}
        assert 'secret' not in json.dumps(record)


class Hanging(Recording):
    """Placement answers Nova, and then nobody."""

    def test_no_request_waits_while_placement_hangs(self):
        never = threading.Event()
        self.addCleanup(never.set)

        class Hangs:
            def read(self, *args, **kwargs):
                never.wait()
                raise exception.ServiceUnreachable(
                    'Placement', None, 'is gone.'
                )

        records._recorder._placement = lambda: Hangs()
        scheduler = self.scheduler_service.manager
        context = nova_context.get_admin_context()
        threads = threading.enumerate()
        flavor = objects.Flavor.get_by_flavor_id(
            context, self.flavor({LOCK: 'required'})
        )
        for _ in range(REQUESTS):
            uuid = uuidutils.generate_uuid()
            spec = objects.RequestSpec.from_components(
                context, uuid, {'properties': {}}, flavor, None, None, {},
                None, None,
            )  # fmt: skip
            with pytest.raises(messaging.ExpectedException) as failure:
                scheduler.select_destinations(
                    context, spec_obj=spec, instance_uuids=[uuid]
                )
            error = failure.value.exc_info[1]
            assert isinstance(error, nova_exception.NoValidHost)
        # The others wait for the only thread. Nova may start some of its own.
        more = [t.name for t in threading.enumerate() if t not in threads]
        assert more.count('isolate-aggregates-records') <= 1
        lines = [
            line
            for line in self.log().splitlines()
            if '[isolate_aggregates.decisions]' in line
            and 'too many requests at once' in line
        ]
        assert len(lines) == REQUESTS - recorder._QUEUE - 1


class Shadowed(Recording):
    """In shadow."""

    OPTIONS = (*Recording.OPTIONS, (ia_conf.GROUP, 'mode', 'shadow'))
    REQUEST_FILTERS = ('isolate_aggregates', 'isolate_tenants')

    def setUp(self):
        super().setUp()
        self.aggregate('theirs', ['host2'], {'filter_tenant_id': 'a' * 32})
        self.give_trait('host1', TRAIT)

    def test_nothing_is_written_and_the_answer_leaves_first(self):
        events = []
        compare = records._recorder.shadow.compare
        select = manager.SchedulerManager.select_destinations

        def compared(trace):
            events.append(('compared', threading.current_thread().name))
            return compare(trace)

        def selected(*args, **kwargs):
            found = select(*args, **kwargs)
            events.append(('answered', threading.current_thread().name))
            return found

        records._recorder.shadow.compare = compared
        self.stub_out(
            'nova.scheduler.manager.SchedulerManager.select_destinations',
            selected,
        )
        # Enforced, its trait would be written down.
        image = self.image({LOCK: 'required'})
        server = self.boot(self.flavor(), image=image)
        self.wait_for(lambda: len(events) > 1)
        assert [what for what, _ in events] == ['answered', 'compared']
        assert events[1][1] == OURS != events[0][1]

        with api_db.context_manager.reader.get_engine().connect() as database:
            text = database.execute(
                sa.select(models.RequestSpec.spec).where(
                    models.RequestSpec.instance_uuid == server['id']
                )
            ).scalar()
        hints = json.loads(text)['nova_object.data']['scheduler_hints']
        assert hints == {}
        assert utils.claim_resources.__module__ == 'nova.scheduler.utils'
