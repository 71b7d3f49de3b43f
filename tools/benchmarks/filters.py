# SPDX-License-Identifier: Apache-2.0
"""Measures the filters per request, compared with Nova's own filter.

    python tools/benchmarks/filters.py [--csv FILE] [aggregates ...]

All read the same database (Nova's API database on SQLite, in memory) in one
process and put their result onto Nova's own request spec. Of the aggregates
98 % are locked with one of 50 traits, and each has five hosts; the request
requires one of the traits. Of several runs the median counts, of processor
time, which other work on the machine disturbs least.

The columns:

in-tree
    ``nova.scheduler.request_filter.isolate_aggregates``.
fresh
    Ours with the source ``nova``, which reads the aggregates for each
    request.
cached
    Ours with aggregates that were read before.

Each of ours once with rollup aggregates and once without
(``max_query_length = 0``). *Own share* is what cached with rollups takes
without what Nova itself takes for its part: to work out the required traits
(``ResourceRequest.from_request_spec``), which the in-tree filter does as well,
and to take in the uuids.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import statistics
import time
from typing import Any
import uuid

from nova import context as nova_context
from nova import objects
import nova.conf
from nova.db.api import api as api_db
from nova.db.api import models
from nova.scheduler import request_filter
from nova.scheduler import utils as scheduler_utils
from oslo_config import fixture as config_fixture
from oslo_db.sqlalchemy import enginefacade
import sqlalchemy
import table

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.aggregates.cache import IndexCache
from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.nova.messages import Observer
from isolate_aggregates.nova.recheck import HostCheck
from isolate_aggregates.nova.runner import Runner
from isolate_aggregates.nova.source import NovaDatabaseSource
from isolate_aggregates.query_limit import OUR_HOST_FILTER, Shortener

AGGREGATES = (100, 1_000, 5_000, 10_000)
TRAITS = 50
HOSTS = 5
# The extra specs of the request.
KEY = {'trait:CUSTOM_LICENSE_7': 'required'}
LIMIT = 4000
# The minimum duration of a measurement in seconds, and the minimum of runs.
SECONDS = 1.0
RUNS = 5


@dataclasses.dataclass(frozen=True)
class Row:
    """Milliseconds for each request."""

    aggregates: int
    in_tree: float
    fresh: float
    fresh_all: float
    cached: float
    cached_all: float
    nova: float

    @property
    def times(self) -> float:
        """How many times ours, fresh, goes into Nova's own filter."""
        return self.in_tree / self.fresh

    @property
    def own(self) -> float:
        """What of cached with rollups is ours alone."""
        return self.cached - self.nova


def fill(number: int) -> None:
    """Fill Nova's database with aggregates."""
    insert([tags(i) for i in range(1, number + 1)])


def tags(number: int) -> dict[str, str]:
    """Return the metadata of an aggregate."""
    zone = {'availability_zone': f'az{number % 3}'}
    if number % 50 == 0:
        return zone
    return zone | {f'trait:CUSTOM_LICENSE_{number % TRAITS}': 'required'}


def insert(records: Sequence[Mapping[str, str]]) -> None:
    """Replace all aggregates in Nova's database."""
    aggregates, metadata, hosts = [], [], []
    for i, tagged in enumerate(records, start=1):
        aggregates.append(
            {'id': i, 'uuid': str(uuid.uuid4()), 'name': f'aggregate-{i}'}
        )
        metadata += [
            {'aggregate_id': i, 'key': key, 'value': value}
            for key, value in tagged.items()
        ]
        hosts += [
            {'aggregate_id': i, 'host': f'host-{i}-{j}'} for j in range(HOSTS)
        ]
    tables = {
        models.Aggregate: aggregates,
        models.AggregateMetadata: metadata,
        models.AggregateHost: hosts,
    }
    with api_db.context_manager.writer.get_engine().begin() as connection:
        # Referenced tables last.
        for model in reversed(tables):
            connection.execute(sqlalchemy.delete(model))
        for model, rows in tables.items():
            connection.execute(sqlalchemy.insert(model), rows)


def make_spec(context: Any, extra_specs: Mapping[str, str] = KEY) -> Any:
    """Return a request spec like that in the scheduler."""
    return objects.RequestSpec.from_components(
        context,
        str(uuid.uuid4()),
        image={'properties': {}},
        flavor=objects.Flavor(
            name='m1.large',
            flavorid='4',
            vcpus=4,
            memory_mb=8192,
            root_gb=80,
            ephemeral_gb=0,
            swap=0,
            extra_specs=dict(extra_specs),
        ),
        numa_topology=None,
        pci_requests=None,
        filter_properties={},
        instance_group=None,
        availability_zone=None,
    )


def milliseconds(run: Callable[[Any], object], context: Any) -> float:
    """Return the duration with a new request spec."""
    # The first run fills caches.
    run(make_spec(context))
    found: list[float] = []
    until = time.monotonic() + SECONDS
    while len(found) < RUNS or time.monotonic() < until:
        spec = make_spec(context)
        start = time.process_time()
        run(spec)
        found.append(1000 * (time.process_time() - start))
    return statistics.median(found)


@contextlib.contextmanager
def configured() -> Iterator[Any]:
    """Configure Nova to isolate aggregates."""
    with config_fixture.Config(nova.conf.CONF) as fixture:
        ia_conf.register_opts(fixture.conf)
        fixture.config(
            enable_isolated_aggregate_filtering=True, group='scheduler'
        )
        fixture.config(
            request_filters=['isolate_aggregates'], group=ia_conf.GROUP
        )
        yield fixture.conf


@contextlib.contextmanager
def database() -> Iterator[None]:
    """Create an API database for Nova in memory."""
    objects.register_all()
    manager = enginefacade.transaction_context()
    manager.configure(connection='sqlite://')
    models.BASE.metadata.create_all(manager.writer.get_engine())
    restore = api_db.context_manager.patch_factory(manager)
    yield
    restore()


def runner(conf: Any, ttl: float, limit: int) -> Runner:
    """Return our filters as they run in nova-scheduler."""
    filters = loading.load(conf)
    source = NovaDatabaseSource(conf, lambda: None)  # type: ignore[arg-type, return-value]
    return Runner(
        conf,
        filters,
        IndexCache(source.aggregates, ttl=ttl),
        Shortener(
            limit, Pipeline(filters).locks, [OUR_HOST_FILTER], source.sizes
        ),
        HostCheck(source, never, limit),
        Observer(),
    )


def never() -> Any:
    """Fail: no request here is forced to a host."""
    raise AssertionError


def measure(number: int, conf: Any) -> Row:
    """Measure with a number of aggregates."""
    fill(number)
    context = nova_context.get_admin_context()

    uuids: set[str] = set()

    def ours(ttl: float, limit: int) -> float:
        filters = runner(conf, ttl, limit)

        def run(spec: Any) -> None:
            filters(context, spec)
            filters.finish(context, spec)

        spec = make_spec(context)
        run(spec)
        if limit:
            uuids.update(spec.requested_destination.forbidden_aggregates)
        return milliseconds(run, context)

    def nova_part(spec: Any) -> None:
        resource_request = scheduler_utils.ResourceRequest.from_request_spec(
            spec
        )
        list(resource_request.all_required_traits)
        spec.requested_destination = objects.Destination()
        spec.requested_destination.append_forbidden_aggregates(set(uuids))

    def in_tree(spec: Any) -> None:
        request_filter.isolate_aggregates(context, spec)

    return Row(
        aggregates=number,
        in_tree=milliseconds(in_tree, context),
        fresh=ours(0, LIMIT),
        fresh_all=ours(0, 0),
        cached=ours(3600, LIMIT),
        cached_all=ours(3600, 0),
        nova=milliseconds(nova_part, context),
    )


def main() -> None:
    """Measure and print a table."""
    options = table.parser('aggregates', AGGREGATES).parse_args()
    with configured() as conf, database():
        rows = [measure(number, conf) for number in options.aggregates]
    table.report(rows, options.csv)


if __name__ == '__main__':
    main()
