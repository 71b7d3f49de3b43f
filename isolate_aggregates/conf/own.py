# SPDX-License-Identifier: Apache-2.0
"""Options of this package alone."""

from oslo_config import cfg, types

isolate_aggregates_opts = [
    cfg.IntOpt(
        'nova_release',
        min=31,
        max=34,
        help="""
The release of Nova whose requests commands repeat.

Later releases add more to a request. By default the microversions of Nova's
API tell the release, and with a cloud file it is the newest that is supported.
""",
    ),
    cfg.ListOpt(
        'request_filters',
        default=[
            'isolate_aggregates',
            'reservation_prefix',
        ],
        help="""
The request filters to run, in this order.

Each name is an entry point in ``isolate_aggregates.request_filters``;
``isolate-aggregates filter list`` shows those installed. A filter that is not
named here does not run. A name that cannot be loaded stops the program: a
filter that silently did nothing would let servers in where they must not be.
""",
    ),
    cfg.ListOpt(
        'trait_sources',
        item_type=types.String(choices=['flavor', 'image']),
        default=['flavor', 'image'],
        help="""
Whose required traits open an isolated aggregate.

By default those of flavor and image, as in Nova. Any tenant who may upload an
image may then write ``trait:<NAME>=required`` on it and land on the isolated
hosts. With ``flavor`` alone an image's traits still constrain the request but
open nothing; the traits of ports and device profiles count as the flavor's.
Another remedy is to let only operators write such image properties, with
Glance's property protections.
""",
    ),
    cfg.ListOpt(
        'reservation_key_sources',
        item_type=types.String(choices=['image', 'hint']),
        default=['image'],
        help="""
Where a request may name a reservation beside the flavor.

Image properties and scheduler hints are written by tenants; a reservation
named there is granted only to a project that owns it: the aggregate's
``blazar:owner`` is the project's id, or one of its metadata keys is. A foreign
one is refused. With ``image``, nova-scheduler reads what the image said when
the server was accepted from Nova's databases; without it that is saved.

Related options:

* ``[scheduler] placement_req_required_member_prefix``
* ``[blazar:physical:host] blazar_owner``
""",
    ),
    cfg.BoolOpt(
        'reservation_required',
        default=False,
        help="""
Refuse servers without a reservation.

With this option the filter ``blazar_reservation`` refuses a request that has
neither the scheduler hint ``reservation`` nor a flavor of an instance
reservation. For clouds whose hosts are all handed out by reservation.
""",
    ),
    cfg.IntOpt(
        'reservation_cleaning_time',
        default=0,
        min=0,
        max=604800,
        help="""
Seconds between two reservations of the same room.

So long after the end of a reservation another one may have its room, at the
earliest. Servers are deleted at the end, and as long as they are not gone the
next owner cannot boot. Reservations that were made before keep their times.
The commands for reservations read it; Blazar has an option of its own.
""",
    ),
    cfg.IntOpt(
        'max_query_length',
        default=4000,
        min=0,
        help="""
The most bytes of the query string of a request to Placement.

The query string is what stands after the ``?``, as nova-scheduler sends it:
resources, traits and aggregates, those that other request filters add
included. Web servers limit the request line, which has some 50 bytes more; the
default is for the 4,094 bytes of gunicorn. With the limits that they have by
default 8000 is right for Apache and nginx, and 1500 for uWSGI, which counts
the query twice. A query that would be longer forbids rollup
aggregates, which ``isolate-aggregates sync`` maintains, in place of those they
stand for. If that does not suffice, the request is refused. 0 sets no limit.

Related options:

* ``[filter_scheduler] enabled_filters`` must name
  ``IsolatedAggregatesFilter``. Without it no query is shortened: one that is
  longer is refused.
""",
    ),
    cfg.StrOpt(
        'aggregate_source',
        help="""
Where to read the host aggregates.

The name of an entry point in ``isolate_aggregates.aggregate_sources``:
``nova`` reads Nova's API database and works in nova-scheduler alone,
``novaclient`` asks Nova's API, ``file`` reads the cloud file named by
``cloud_file``. By default ``nova`` in nova-scheduler and ``novaclient`` in
commands. Commands take ``nova`` for ``novaclient``.
""",
    ),
    cfg.StrOpt(
        'cloud_file',
        help="""
Path of the cloud file for ``aggregate_source = file``.
""",
    ),
    cfg.FloatOpt(
        'aggregate_cache_ttl',
        min=0,
        help="""
How many seconds nova-scheduler may use the aggregates it has read.

Within this time a change of an aggregate may not be seen. 0 reads them for
every request, so that a tag set before the request is honoured by it. By
default 0 with ``aggregate_source = nova``, where reading takes milliseconds,
and 30 with any other source, where it may take seconds.

With ``nova`` more than 0 spares a busy database, and nothing older is used.
With any other source one thread reads the aggregates again when the time is
over, while requests go on with what there is, for at most the same time once
more and not after that reading has failed.
""",
    ),
    cfg.FloatOpt(
        'aggregate_deadline',
        default=5,
        min=0.1,
        help="""
For how many seconds a request may wait for the aggregates.

It counts for all that reading them takes, with retries and tokens. A request
that has waited so long is refused, or goes on with old aggregates where
``on_source_failure`` allows that. No single answer of Nova or Keystone is
waited for longer either. With ``aggregate_source = nova`` it counts for the
reading at the start of nova-scheduler alone: each request reads for itself,
and how long it may wait for the database is said in ``[api_database]``.

Related options:

* ``on_source_failure``
""",
    ),
    cfg.StrOpt(
        'on_source_failure',
        default='refuse',
        choices=[
            ('refuse', 'Refuse requests until the aggregates can be read'),
            ('stale', 'Use the aggregates read last for a while'),
        ],
        help="""
What nova-scheduler does when it cannot read the aggregates.

``stale`` is for short failures, as when another database server takes over. A
tag that is set meanwhile is not honoured.

Related options:

* ``aggregate_max_stale`` limits ``stale``.
""",
    ),
    cfg.FloatOpt(
        'aggregate_max_stale',
        default=300,
        min=0,
        help="""
For how many seconds ``on_source_failure = stale`` may use old aggregates.

Counted from when they were read. After that requests are refused. With another
source than ``nova``, once a reading has failed, requests use them for half a
minute without waiting for the next one, which goes on meanwhile.
""",
    ),
    cfg.BoolOpt(
        'scheduler_metrics',
        default=False,
        help="""
Let nova-scheduler count what the request filters do, for Prometheus.

Its workers count into the directory that ``PROMETHEUS_MULTIPROC_DIR`` names in
their environment, and ``isolate-aggregates exporter --scheduler`` reads it.
Without that variable nova-scheduler does not start. It takes some tens of
microseconds for each request.
""",
    ),
    cfg.ListOpt(
        'metrics_flavors',
        default=[],
        help="""
The flavors whose free slots the exporter counts.

Names or ids. By default the ten that most servers have. The exporter learns
that from a list of all servers, which it reads at each reading with
``--servers`` or ``--textfile``, and once an hour without. A cloud with no more
than ten flavors is not asked for it.
""",
    ),
    cfg.StrOpt(
        'region_name',
        help='Region whose Nova, Placement and Glance are used.',
    ),
    cfg.ListOpt(
        'valid_interfaces',
        default=['internal', 'public'],
        help="""
Kinds of endpoints to look for in the service catalog, best first.
""",
    ),
]
