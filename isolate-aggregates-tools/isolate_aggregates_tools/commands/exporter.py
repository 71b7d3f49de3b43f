# SPDX-License-Identifier: Apache-2.0
"""``exporter``: exports metrics of the cloud to Prometheus."""

import argparse
from collections.abc import Callable, Iterable, Iterator
import contextlib
import logging
import threading
from typing import TYPE_CHECKING, Any
from urllib import parse

from isolate_aggregates import exception
from isolate_aggregates_tools.audit import AuditedCloud
from isolate_aggregates_tools.cli import base, periodic, usage
from isolate_aggregates_tools.commands import clouds, reservations
from isolate_aggregates_tools.ledger import recording

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric
    from prometheus_client.registry import CollectorRegistry

    from isolate_aggregates_tools.metrics.reading import CloudReading

LOG = logging.getLogger(__name__)

_LISTEN = '127.0.0.1:9889'
_INTERVAL = 300


class ExportMetrics(usage.Command):
    """Export Prometheus metrics.

    The metrics are hosts, capacity and free slots behind each lock, free slots
    in each availability zone, and the findings of the audit. They are served
    over HTTP until the program ends, or written to a file once. While the
    cloud cannot be read, the last values stay. The exit status is 1 if the
    metrics cannot be served or written, or if the cloud cannot be read for the
    file.
    """

    app: Any

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        where = parser.add_mutually_exclusive_group()
        where.add_argument(
            '--listen',
            type=_address,
            default=_LISTEN,
            metavar='<address>:<port>',
            help='Address to serve the metrics on over HTTP; default: '
            f'{_LISTEN}',
        )
        base.add_output_argument(
            where,
            'Write the metrics to this file, whose name should end in .prom, '
            'and exit',
        )
        parser.add_argument(
            '--interval',
            type=base.positive,
            metavar='<seconds>',
            help=f'Time between readings of the cloud; default: {_INTERVAL}',
        )
        clouds.add_servers_argument(
            parser,
            'Also check the servers of all projects: how many are out of '
            'place, which flavors they have, and how many survive a failing '
            'host',
        )
        parser.add_argument(
            '--scheduler',
            metavar='<directory>',
            help='Also export the metrics of nova-scheduler on this machine '
            'from this directory; see [isolate_aggregates] '
            'scheduler_metrics_directory',
        )
        parser.add_argument(
            '--sync-textfile',
            metavar='<file>',
            help='Also export the time of the last successful sync, from the '
            'file that sync --output writes on this machine',
        )
        parser.add_argument(
            '--no-cloud',
            action='store_true',
            help='With --scheduler or --sync-textfile, export nothing else',
        )
        recording.add_argument(parser)
        base.add_snapshot_argument(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Serve or write the metrics."""
        self._check(parsed_args)
        base.check_metrics_client()
        import prometheus_client

        registry = prometheus_client.CollectorRegistry()
        if parsed_args.output:
            self._write(parsed_args, registry)
        else:
            self._serve(parsed_args, registry)

    def _check(self, args: argparse.Namespace) -> None:
        if args.output and args.interval:
            self._usage.error('--interval has no effect with --output')
        if args.no_cloud and not (args.scheduler or args.sync_textfile):
            self._usage.error(
                '--no-cloud leaves nothing to export; add --scheduler or '
                '--sync-textfile'
            )
        base.check_live(self._usage, args, 'ledger')
        if args.ledger and (args.output or args.no_cloud):
            self._usage.error(
                '--ledger cannot be combined with --output or --no-cloud'
            )
        if args.no_cloud and (args.snapshot or args.servers):
            self._usage.error(
                '--no-cloud cannot be combined with --snapshot or --servers'
            )

    def _write(
        self, args: argparse.Namespace, registry: 'CollectorRegistry'
    ) -> None:
        from isolate_aggregates_tools.metrics import reading, textfile

        textfile.check(args.output)
        _register(registry, args)
        failure = None
        if not args.no_cloud:
            cloud = reading.CloudReading(
                self._families(args, threading.Event(), lambda cloud: None),
                textfile.last_reading(args.output),
            )
            registry.register(cloud)
            try:
                cloud.read()
            except exception.IsolateAggregatesError as exc:
                failure = exc
        textfile.write(args.output, registry)
        if failure:
            raise failure

    def _serve(
        self, args: argparse.Namespace, registry: 'CollectorRegistry'
    ) -> None:
        from isolate_aggregates_tools.metrics import reading, serving

        _register(registry, args)
        stop = threading.Event()
        interval = args.interval or _INTERVAL
        cloud = None
        if not (args.no_cloud or args.snapshot):
            # Fail before serving anything if there are no credentials.
            self.app.connect()
        with (
            periodic.end_signals() as signals,
            recording.recording(
                args.ledger, self.app.conf, interval
            ) as record,
            contextlib.ExitStack() as stack,
        ):
            if not args.no_cloud:
                cloud = reading.CloudReading(
                    self._families(args, stop, record)
                )
                registry.register(cloud)
            url = stack.enter_context(serving.serving(args.listen, registry))
            stack.enter_context(_reading(cloud, interval, stop))
            self.app.stdout.write(f'Metrics are served at {url}.\n')
            self.app.stdout.flush()
            signals.wait()

    def _families(
        self,
        args: argparse.Namespace,
        stop: threading.Event,
        record: recording.Record,
    ) -> 'Callable[[], Iterable[Metric]]':
        """Return a function that reads the cloud and returns its metrics."""
        from isolate_aggregates_tools.cloud.live.provider_memory import (
            ProviderMemory,
        )
        from isolate_aggregates_tools.metrics import cloud as metrics
        from isolate_aggregates_tools.metrics import (
            reservations as reservation_metrics,
        )
        from isolate_aggregates_tools.metrics.slots import SlotCounter
        from isolate_aggregates_tools.room.survival import survival_of

        def track(
            items: Iterator[Any], what: str, total: int | None
        ) -> Iterable[Any]:
            return _until(stop, items)

        def servers() -> Iterable[Any]:
            if args.snapshot:
                from isolate_aggregates_tools.cloud.file import cloud_file

                return cloud_file.load(args.snapshot).known_servers.placed
            live = clouds.live_cloud(self.app)
            return track(live.nova.servers(), 'servers', None)

        slots = SlotCounter(self.app.conf, servers)
        memory = ProviderMemory()

        def read() -> 'Iterable[Metric]':
            if not args.snapshot:
                record(clouds.live_cloud(self.app))
            with clouds.opened(
                self.app, args, memory, remembers=bool(args.output)
            ) as cloud:
                audited_cloud = AuditedCloud.read(
                    cloud, self.app.conf, args.servers, track
                )
            survival = metrics.survival_families(
                survival_of(audited_cloud, self.app.conf)
            )
            if args.snapshot:
                return (*metrics.families(audited_cloud, slots), *survival)
            try:
                audited_cloud = reservations.with_review(
                    self.app, audited_cloud
                )
            except exception.IsolateAggregatesError as exc:
                LOG.error('The reservations cannot be read: %s', exc)
            return (
                *metrics.families(audited_cloud, slots),
                *survival,
                *reservation_metrics.families(audited_cloud.reservations),
            )

        return read


def _register(registry: 'CollectorRegistry', args: argparse.Namespace) -> None:
    """Register the metrics that do not depend on the cloud."""
    from isolate_aggregates_tools.metrics import last_sync, reading, scheduler

    registry.register(reading.Build())
    if args.scheduler:
        registry.register(scheduler.Workers(args.scheduler))
    if args.sync_textfile:
        registry.register(last_sync.LastSync(args.sync_textfile))


@contextlib.contextmanager
def _reading(
    reading: 'CloudReading | None', interval: int, stop: threading.Event
) -> Iterator[None]:
    """Read the cloud at an interval, in a thread."""
    from isolate_aggregates_tools.metrics.reading import keep_reading

    if reading is None:
        yield
        return
    # A daemon, so that a service that does not answer cannot keep the program
    # from exiting.
    threading.Thread(
        target=keep_reading, args=(reading, interval, stop), daemon=True
    ).start()
    try:
        yield
    finally:
        stop.set()


def _until(stop: threading.Event, items: Iterator[Any]) -> Iterator[Any]:
    """Yield items until stopped."""
    from isolate_aggregates_tools.metrics.reading import Stopped

    for item in items:
        if stop.is_set():
            # Cancel the pending reads of resource providers.
            if close := getattr(items, 'close', None):
                close()
            raise Stopped
        yield item


def _address(text: str) -> tuple[str, int]:
    """Parse an address with a port."""
    try:
        parts = parse.urlsplit(f'//{text}')
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or port is None or '@' in text or parts.netloc != text:
        raise argparse.ArgumentTypeError(
            f'{text!r} is not an address to listen on; write '
            '<address>:<port>, '
            'such as 127.0.0.1:9889 or [::1]:9889'
        )
    return host, port
