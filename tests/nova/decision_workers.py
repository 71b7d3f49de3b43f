# SPDX-License-Identifier: Apache-2.0
"""Forks workers of oslo.service that record decisions, as nova-scheduler does.

    python decision_workers.py threading|eventlet LOG

The recorder is made, and its thread is started, before workers are forked.
Each line of the log has the process and the thread that wrote it, and a record
of a request that nobody can examine.
"""

import sys

BACKEND, LOG = sys.argv[1:]
if BACKEND == 'eventlet':
    import eventlet

    eventlet.monkey_patch()

import logging  # noqa: E402
import logging.handlers  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402

from oslo_config import cfg  # noqa: E402
from oslo_service import backend  # noqa: E402

backend.init_backend(backend.BackendType(BACKEND))

from nova import context as nova_context  # noqa: E402
from nova import objects  # noqa: E402
from oslo_service import service  # noqa: E402

from isolate_aggregates import exception  # noqa: E402
from isolate_aggregates.nova import records  # noqa: E402
from isolate_aggregates.nova.messages import Observer  # noqa: E402
from isolate_aggregates.nova.recorder import Recorder  # noqa: E402
from isolate_aggregates.record import LOGGER, SCHEMA  # noqa: E402

WORKERS = 2


class Unreachable:
    """A Placement that cannot be reached."""

    def read(self, *args, **kwargs):
        raise exception.ServiceUnreachable('Placement', None, 'is gone.')


def write(recorder):
    """Write the record of a request without a host."""
    trace = records.Trace(
        nova_context.get_admin_context(), objects.RequestSpec(), ()
    )
    recorder.write(
        lambda: {'schema': SCHEMA, 'cause': 'no_candidates'}, trace, True
    )


class Worker(service.ServiceBase):
    """Serves requests until it is stopped."""

    def __init__(self, recorder):
        self._recorder = recorder
        self._is_stopped = False

    def start(self):
        """Start."""
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while not self._is_stopped:
            write(self._recorder)
            time.sleep(0.1)

    def stop(self):
        """Stop."""
        self._is_stopped = True

    def wait(self):
        """Wait for the end."""

    def reset(self):
        """Read the configuration anew."""


def main():
    """Fork workers and wait for them."""
    objects.register_all()
    handler = logging.handlers.WatchedFileHandler(LOG)
    handler.setFormatter(
        logging.Formatter('%(process)d %(threadName)s %(message)s')
    )
    log = logging.getLogger(LOGGER)
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    recorder = Recorder('failures', frozenset(), {}, Unreachable, Observer())
    write(recorder)
    while recorder._queue.qsize():
        time.sleep(0.01)
    time.sleep(0.2)
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    launcher = service.launch(
        conf, Worker(recorder), workers=WORKERS, restart_method='mutate'
    )
    launcher.wait()


if __name__ == '__main__':
    main()
