# SPDX-License-Identifier: Apache-2.0
"""The counts of forked processes are added up."""

import subprocess
import sys

import pytest
from samples import samples

from isolate_aggregates_tools.metrics import scheduler

WORKERS = """
import os, sys, threading, time
from isolate_aggregates.filters.constraints import Destination
from isolate_aggregates.nova import worker_metrics
from isolate_aggregates_tools.metrics import scheduler

def work():
    for _ in range(100):
        metrics.passed(time.monotonic(), Destination(), False)
        time.sleep(0)

metrics = worker_metrics.WorkerMetrics(['isolate_aggregates'], sys.argv[1])
metrics.passed(time.monotonic(), Destination(), False)
children = []
for number in range(3):
    child = os.fork()
    if not child:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        os._exit(0)
    children.append(child)
for child in children:
    assert os.waitpid(child, 0)[1] == 0
"""
EVENTLET = 'import eventlet; eventlet.monkey_patch()'


@pytest.mark.parametrize(
    'first', ['', EVENTLET], ids=['native threads', 'eventlet']
)
def test_counts_of_forked_workers_are_summed(tmp_path, first):
    if first:
        pytest.importorskip('eventlet')
    # Like nova-scheduler: loaded once, then forked.
    subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', first + WORKERS, tmp_path],
        check=True,
    )
    values = samples(scheduler.Workers(str(tmp_path)))
    prefix = 'isolate_aggregates_scheduler_request'
    assert values[(f'{prefix}s_total',)] == 1201
    assert values[(f'{prefix}_duration_seconds_count',)] == 1201


DAMAGED = """
import glob, os, resource, sys, time
from isolate_aggregates.filters.constraints import Destination
from isolate_aggregates.nova import worker_metrics

def count():
    metrics.passed(time.monotonic(), Destination(), False)

def truncated():
    count()
    for name in glob.glob(f'{sys.argv[1]}/*_{os.getpid()}.db'):
        os.truncate(name, 0)

def without_room():
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

metrics = worker_metrics.WorkerMetrics(['isolate_aggregates'], sys.argv[1])
child = os.fork()
if not child:
    globals()[sys.argv[2]]()
    count()
    count()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.parametrize('damage', ['truncated', 'without_room'])
def test_no_file_that_cannot_be_written_ends_a_worker(tmp_path, damage):
    """Each worker would end with a signal if it wrote to mapped memory."""
    subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', DAMAGED, tmp_path, damage],
        check=True,
    )
