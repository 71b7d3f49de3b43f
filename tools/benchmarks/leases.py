# SPDX-License-Identifier: Apache-2.0
"""Measures the first request after a new lease.

    python tools/benchmarks/leases.py [--csv FILE] [--quick] [leases ...]

Each lease has an aggregate with a lock of its own (``reservation:<id>``) and
five hosts, and every host is in the rollups of its locks. The request has no
key, reads the aggregates anew (the source ``nova``, on SQLite in memory) and
is made short with rollups. *request* is what it takes while nothing changes,
*after* what the first one takes after there is the aggregate of one lease
more, and *more* the difference: milliseconds of processor time, the least of
several runs.
"""

from collections.abc import Iterator
import contextlib
import dataclasses
import time
from typing import Any
import uuid

from filters import LIMIT, configured, database, insert, make_spec, runner
from nova import context as nova_context
from nova.db.api import api as api_db
from nova.db.api import models
import sqlalchemy
import table

LEASES = (100, 1_000, 5_000)
RUNS = 20
PREFIX = 'reservation:'


@dataclasses.dataclass(frozen=True)
class Row:
    """Milliseconds of processor time."""

    leases: int
    request: float
    after: float
    more: float


def lease() -> dict[str, str]:
    """Return the metadata of the aggregate of one lease."""
    return {'availability_zone': 'az', f'{PREFIX}{uuid.uuid4()}': 'lease'}


@contextlib.contextmanager
def one_more() -> Iterator[None]:
    """Add the aggregate of one more lease to Nova's database."""
    engine = api_db.context_manager.writer.get_engine()
    new = {'id': 1_000_000, 'uuid': str(uuid.uuid4()), 'name': 'new'}
    metadata = [
        {'aggregate_id': new['id'], 'key': key, 'value': value}
        for key, value in lease().items()
    ]
    with engine.begin() as connection:
        connection.execute(sqlalchemy.insert(models.Aggregate), [new])
        connection.execute(
            sqlalchemy.insert(models.AggregateMetadata), metadata
        )
    yield
    with engine.begin() as connection:
        for model, key in (
            (models.AggregateMetadata, models.AggregateMetadata.aggregate_id),
            (models.Aggregate, models.Aggregate.id),
        ):
            connection.execute(
                sqlalchemy.delete(model).where(key == new['id'])
            )


def measure(number: int, conf: Any, runs: int) -> Row:
    """Measure with a number of leases."""
    insert([lease() for _ in range(number)])
    context = nova_context.get_admin_context()
    filters = runner(conf, 0, LIMIT)

    def request() -> float:
        # A flavor without the trait has no key.
        spec = make_spec(context, {})
        started = time.process_time()
        filters(context, spec)
        filters.finish(context, spec)
        took = time.process_time() - started
        assert spec.requested_destination.forbidden_aggregates
        return 1000 * took

    usual, after = [], []
    request()
    for _ in range(runs):
        usual.append(request())
        with one_more():
            after.append(request())
        request()
    return Row(number, min(usual), min(after), min(after) - min(usual))


def main() -> None:
    """Measure and print a table."""
    parser = table.parser('leases', LEASES)
    parser.add_argument(
        '--quick', action='store_true', help='run all of it twice'
    )
    options = parser.parse_args()
    with configured() as conf, database():
        for option in (
            'placement_req_required_member_prefix',
            'placement_req_default_forbidden_member_prefix',
        ):
            conf.set_override(option, [PREFIX], 'scheduler')
        conf.clear_override('request_filters', 'isolate_aggregates')
        runs = 2 if options.quick else RUNS
        rows = [measure(number, conf, runs) for number in options.leases]
    table.report(rows, options.csv)


if __name__ == '__main__':
    main()
