# SPDX-License-Identifier: Apache-2.0
"""The maximum age of the aggregates that a server is scheduled with."""

from concurrent import futures
import contextlib
import itertools
import re
import sqlite3
import sys
import threading
import time
import types
from unittest import mock

from base import ISOLATE, RESERVATIONS_CLOSE, CloudTest
from nova import context as nova_context
from nova import objects
from nova.db.api import api as api_db
from nova.db.api import models
from nova.scheduler import request_filter
import nova_flavors
from oslo_utils import uuidutils
import sqlalchemy as sa

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.aggregates import cache

LICENSED = {'trait:CUSTOM_LICENSED_WINDOWS': 'required'}
UNLICENSED = dict.fromkeys(LICENSED)
HOUR = 3600


@contextlib.contextmanager
def broken_database():
    """Let what reads metadata of aggregates fail in the driver."""
    engine = api_db.context_manager.reader.get_engine()

    def fail(cursor, statement, parameters, context):
        if 'FROM aggregate_metadata' in statement:
            raise sqlite3.OperationalError('disk I/O error')

    sa.event.listen(engine, 'do_execute', fail)
    try:
        yield
    finally:
        sa.event.remove(engine, 'do_execute', fail)


class FreshnessTest(CloudTest):
    """The aggregates as Nova's database has them."""

    OPTIONS = (ISOLATE,)

    def test_a_tag_applies_to_the_next_server(self):
        number = self.aggregate('licensed', ['host1'])
        plain = self.flavor()
        assert self.host_for(plain) == 'host1'

        self.tag(number, LICENSED)
        assert self.host_for(plain) == 'host2'
        self.tag(number, UNLICENSED)
        assert self.host_for(plain) == 'host1'

        # Unless the operator has configured less.
        self.flags(aggregate_cache_ttl=HOUR, group=ia_conf.GROUP)
        self.restart_scheduler()
        assert self.host_for(plain) == 'host1'
        self.tag(number, LICENSED)
        assert self.host_for(plain) == 'host1'

    def test_unreadable_aggregates_refuse_requests(self):
        self.aggregate('licensed', ['host1'], LICENSED)
        plain = self.flavor()
        unreadable = (
            'The host aggregates '
            "cannot be read (Nova's API database cannot be read: "
            'OperationalError); they were '
        )

        # Not even for the first server.
        with broken_database():
            message = self.refusal_of(plain)
            assert message == f'{unreadable}never read.'
        # The operator's log has more details.
        [error] = [
            line
            for line in self.stdlog.logger.output.splitlines()
            if 'ERROR [isolate_aggregates' in line
        ]
        assert error.endswith(
            ' Reported: (sqlite3.OperationalError) disk I/O error'
        )
        assert self.host_for(plain) == 'host2'
        with broken_database():
            message = self.refusal_of(plain)
            assert re.fullmatch(
                rf'{re.escape(unreadable)}last read \d+ s ago\.', message
            )

        # The operator may prefer old ones, for a while.
        self.flags(
            on_source_failure='stale',
            aggregate_max_stale=HOUR,
            group=ia_conf.GROUP,
        )
        self.restart_scheduler()
        assert self.host_for(plain) == 'host2'
        with broken_database():
            assert self.host_for(plain) == 'host2'
            assert 'using those read' in self.stdlog.logger.output
            later = types.SimpleNamespace(
                monotonic=lambda: time.monotonic() + HOUR
            )
            with mock.patch.object(cache, 'time', later):
                message = self.refusal_of(plain)
            assert re.search(r' were last read 3[6-9]\d\d s ago\.$', message)


class ManyThreadsTest(CloudTest):
    """The request filters, called as the threads of nova-scheduler do."""

    HOSTS = ()
    REQUEST_FILTERS = ('isolate_aggregates', 'reservation_prefix')
    OPTIONS = (
        ISOLATE,
        RESERVATIONS_CLOSE,
    )

    THREADS = 32
    REQUESTS = 12  # of each thread
    AGGREGATES = 64

    def test_each_request_uses_one_consistent_state_of_aggregates(self):
        """One aggregate at a time has the tags, and the next one gets them.

        Each of the two filters forbids the aggregate with its tag. So there is
        one forbidden aggregate, not two and not none, and it is one that had
        the tags while the request was being judged.
        """
        self._make_aggregates()
        # Let threads get in each other's way much more often than they do.
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1e-6)
        self.moves_begun = self.moves_done = 0
        stop = threading.Event()
        with futures.ThreadPoolExecutor(self.THREADS + 1) as pool:
            mover = pool.submit(self._move_tags, stop)
            try:
                threads = [
                    pool.submit(self._judge_requests)
                    for _ in range(self.THREADS)
                ]
                judged = [one for t in threads for one in t.result()]
            finally:
                stop.set()
            mover.result()

        for before, forbidden, after in judged:
            moves = range(before, after + 1)
            held = {self.uuids[move % self.AGGREGATES] for move in moves}
            assert len(forbidden) == 1
            assert forbidden <= held
        assert len(set().union(*(f for _, f, _ in judged))) > 3

    def _make_aggregates(self):
        numbers = [self.aggregate(f'a{n}') for n in range(self.AGGREGATES)]
        self.tag(numbers[0], {**LICENSED, 'reservation:1': 'true'})
        uuids = {
            found['id']: found['uuid']
            for found in self.admin_api.api_get('/os-aggregates').body[
                'aggregates'
            ]
        }
        self.numbers = numbers
        self.uuids = [uuids[number] for number in numbers]

    def _move_tags(self, stop):
        """Hand all tags on in one transaction after the other."""
        for number in itertools.cycle([*self.numbers[1:], self.numbers[0]]):
            if stop.wait(0.005):
                return
            self.moves_begun += 1
            with api_db.context_manager.writer.using(
                nova_context.get_admin_context()
            ) as session:
                session.execute(
                    sa.update(models.AggregateMetadata).values(
                        aggregate_id=number
                    )
                )
            self.moves_done += 1

    def _judge_requests(self):
        context = nova_context.get_admin_context()
        found = []
        for _ in range(self.REQUESTS):
            spec = self._spec(context)
            before = self.moves_done
            request_filter.process_reqspec(context, spec)
            after = self.moves_begun
            forbidden = spec.requested_destination.forbidden_aggregates
            found.append((before, set(forbidden), after))
        return found

    @staticmethod
    def _spec(context):
        return objects.RequestSpec.from_components(
            context,
            uuidutils.generate_uuid(),
            image={'properties': {}},
            flavor=nova_flavors.small(),
            numa_topology=None,
            pci_requests=None,
            filter_properties={},
            instance_group=None,
            availability_zone=None,
        )
