# SPDX-License-Identifier: Apache-2.0
"""How long it takes to test expectations, and to find what they leave out.

    python tools/benchmarks/expectations.py [--csv FILE] [hosts ...]

The cloud is that of ``effect.py``. For each of its four locks, expectations
name the hosts of a flavor with the key and the room for it, and keep 12 kinds
of other flavors out. Times are processor time, with the cloud in memory.
"""

import tempfile
import time

from effect import FLAVORS, cloud, configuration
import table
import yaml

from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates_tools.answers.requests import Requests
from isolate_aggregates_tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates_tools.expectations import document, mutations
from isolate_aggregates_tools.expectations.answers import Answers, Context
from isolate_aggregates_tools.expectations.expectation import evaluate
from isolate_aggregates_tools.mirrored import chain

FIELDS = (
    *('hosts', 'aggregates', 'flavors', 'expectations', 'test_seconds'),
    *('mutations', 'mutate_seconds'),
)
LOCKS = (0, 10, 20, 30)
OTHERS = 12


def expectations() -> list[dict[str, object]]:
    """Return the expectations as they are in a file."""
    entries: list[dict[str, object]] = []
    for number in LOCKS:
        lock = {'lock': f'trait:CUSTOM_LICENCE_{number}'}
        flavor = f'flavor-{number:03}'
        entries += [
            {'flavor': flavor, 'exactly': lock},
            {'flavor': flavor, 'min_room': 1},
        ]
        entries += [
            {'flavor': f'flavor-0{other}', 'never': lock}
            for other in range(40, 40 + OTHERS)
        ]
    return entries


def measure(hosts: int) -> dict[str, object]:
    """Return the costs of testing a cloud."""
    snapshot, conf = cloud(hosts), configuration()
    with tempfile.NamedTemporaryFile('w', suffix='.yaml') as file:
        yaml.safe_dump(
            {'version': 1, 'expectations': expectations()}, file.file
        )
        file.flush()
        everything = document.load(file.name)
    context = Context(
        conf,
        chain.as_in_nova(conf),
        Pipeline(loading.load(conf)),
        Requests(SnapshotCloud(snapshot), conf),
    )
    start = time.process_time()
    answers = Answers(snapshot, context)
    results = evaluate(everything, answers)
    tested = time.process_time()
    assert not any(result.violations for result in results)
    coverage = mutations.coverage(everything, answers)
    return {
        'hosts': hosts,
        'aggregates': len(snapshot.aggregates),
        'flavors': FLAVORS,
        'expectations': len(everything),
        'test_seconds': round(tested - start, 2),
        'mutations': coverage.noticed
        + coverage.without_effect
        + len(coverage.gaps),
        'mutate_seconds': round(time.process_time() - tested, 2),
    }


if __name__ == '__main__':
    table.measure_apart(
        __doc__, 'hosts', [100, 1_000, 10_000], measure, FIELDS
    )
