# SPDX-License-Identifier: Apache-2.0
"""Options of this package, and those of Nova and Blazar that it reads."""

from oslo_config import cfg, types

from isolate_aggregates import web_servers

# Of Nova, or from its specifications. The registration of Nova is used, if it
# has registered an option already.
scheduler_opts = [
    cfg.BoolOpt(
        'enable_isolated_aggregate_filtering',
        default=False,
        help="""
Keep requests out of isolated aggregates.

An aggregate with the metadata ``trait:<NAME>=required`` takes only servers
whose flavor and image together require that trait. Without this option such
metadata has no effect, and any server may land there.
""",
    ),
    cfg.ListOpt(
        'placement_req_required_member_prefix',
        default=[],
        help="""
Prefixes of keys that require membership of an aggregate.

A flavor extra spec or image property whose key starts with one of these
prefixes, such as ``reservation:``, sends the server to the aggregates that
have exactly that key in their metadata. If there is no such aggregate the
request is refused. List a prefix in
``placement_req_default_forbidden_member_prefix`` too, which keeps all other
servers out.
""",
    ),
    cfg.ListOpt(
        'placement_req_default_forbidden_member_prefix',
        default=[],
        help="""
Prefixes of metadata keys that close an aggregate by default.

An aggregate with a metadata key that starts with one of these prefixes takes
no servers whose flavor and image have no key with that prefix. List a prefix
in ``placement_req_required_member_prefix`` too, or a server with any key of
that prefix may land in every aggregate of that prefix.
""",
    ),
]

isolate_aggregates_opts = [
    cfg.ListOpt(
        'request_filters',
        default=[
            'isolate_aggregates',
            'reservation_prefix',
        ],
        help="""
The request filters to run, in this order.

``isolate-aggregates filter list`` shows the installed ones. A name that cannot
be loaded stops the program.
""",
    ),
    cfg.BoolOpt(
        'servers_recorded',
        default=False,
        help="""
Whether all servers have a record of what they were placed with.

nova-scheduler records it for the servers that it places. Set this after
``isolate-aggregates-manage record`` has ended with status 0 while all
nova-schedulers run this package, or if there were no servers before. A server
without a record then has an image of which nothing counts. Otherwise it is
refused to move such a server after a rebuild that was refused, unless an
operator names the host.
""",
    ),
    cfg.ListOpt(
        'trait_sources',
        item_type=types.String(choices=['flavor', 'image']),
        default=['flavor', 'image'],
        help="""
Sources of the required traits that open an isolated aggregate.

By default the flavor and the image, as in Nova. Any tenant who can upload an
image can then set ``trait:<NAME>=required`` on it and use the isolated hosts.
With only ``flavor``, which cannot be left out, an image's traits still
constrain the request but open nothing.
""",
    ),
    cfg.ListOpt(
        'reservation_key_sources',
        item_type=types.String(choices=['image', 'hint']),
        default=['image'],
        help="""
Where a request may name a reservation, in addition to the flavor.

Tenants set image properties and scheduler hints, so a reservation named there
counts only for a project that owns it: the aggregate's ``blazar:owner`` is the
project's id, or one of its metadata keys is. Otherwise the request is refused.
With ``image``, nova-scheduler reads the image properties from Nova's
databases, as they were when the server was accepted.
""",
    ),
    cfg.BoolOpt(
        'reservation_required',
        default=False,
        help="""
Refuse servers without a reservation.

The filter ``blazar_reservation`` then refuses a request that has neither the
scheduler hint ``reservation`` nor a flavor of an instance reservation.
""",
    ),
    cfg.BoolOpt(
        'check_claims',
        default=True,
        help="""
Check after each claim of a slot that Placement has not oversold it.

Placement may accept more claims than fit when they are written at the same
time. So after claiming a slot (a resource class ``CUSTOM_RESERVATION_*``),
nova-scheduler reads usage and inventories. If they are oversold, or cannot be
read within five seconds, it withdraws the claim. If they were oversold, it
tries the host again, up to five times within about six seconds. Disable it
only with a Placement that does not oversell; "Known Placement bugs" in the
documentation names its setting.
""",
    ),
    cfg.IntOpt(
        'max_query_length',
        default=4000,
        min=0,
        help=f"""
Maximum number of bytes in the query string of a request to Placement.

The query string is everything after the ``?``, as nova-scheduler sends it:
resources, traits and aggregates, including those that other request filters
add. ``isolate-aggregates-status upgrade check`` measures how long it may be on
the way to Placement, and recommends a value. The default suits gunicorn, which
by default accepts about {web_servers.GUNICORN:,} bytes. By default, uWSGI
accepts about {web_servers.UWSGI:,}, Apache {web_servers.APACHE:,} and HAProxy
in front of any of them {web_servers.HAPROXY:,}. Deployment tools raise the
limit of uWSGI to 30,000 or more.

A longer query forbids what excludes the most hosts, with rollup aggregates
that ``isolate-aggregates sync`` maintains. What it leaves out is checked for
the hosts that Placement returns. 0 means no limit.

``[filter_scheduler] enabled_filters`` must name ``IsolatedAggregatesFilter``.
Without it no query is shortened: a longer one is refused.
""",
    ),
    cfg.StrOpt(
        'aggregate_source',
        help="""
Source of the host aggregates.

``nova`` reads Nova's API database and works only in nova-scheduler,
``novaclient`` uses Nova's API, ``file`` reads the file named by
``cloud_file``. The default is ``nova`` in nova-scheduler and ``novaclient`` in
commands, which use it instead of ``nova`` too.
""",
    ),
    cfg.StrOpt(
        'cloud_file',
        help='Path of the cloud file for ``aggregate_source = file``.',
    ),
    cfg.FloatOpt(
        'aggregate_cache_ttl',
        min=0,
        help="""
Number of seconds for which nova-scheduler caches the aggregates.

Within this time a change of an aggregate may not be seen. With 0 they are read
for every request, so a tag takes effect for every request after it. The
default is 0 with ``aggregate_source = nova``, where reading takes
milliseconds, and 30 with any other source, where it may take seconds.

With ``nova``, use more than 0 only to reduce the load on the database; older
aggregates are never used. With any other source, one thread reads the
aggregates again when this time has passed. Meanwhile requests use the old
ones, for at most the same time again and only until a read fails.
""",
    ),
    cfg.FloatOpt(
        'aggregate_deadline',
        default=5,
        min=0.1,
        help="""
Maximum number of seconds that a request waits for the aggregates.

This includes retries and requests for tokens. It also limits each call to Nova
or Keystone. A request that has waited this long is refused, or uses old
aggregates if ``on_source_failure`` permits it.

With ``aggregate_source = nova`` this option applies only to the read at the
start of nova-scheduler: each request reads for itself, and ``[api_database]``
limits how long it waits for the database.
""",
    ),
    cfg.StrOpt(
        'on_source_failure',
        default='refuse',
        choices=[
            ('refuse', 'Refuse requests until the aggregates can be read'),
            ('stale', 'Use the last aggregates read, for a limited time'),
        ],
        help="""
What nova-scheduler does when it cannot read the aggregates.

``stale`` is for short failures, such as a failover of the database. A tag that
is set meanwhile has no effect until the aggregates can be read again.
""",
    ),
    cfg.FloatOpt(
        'aggregate_max_stale',
        default=300,
        min=0,
        help="""
Maximum age of the aggregates for ``on_source_failure = stale``, in seconds.

If the aggregates were read longer ago, requests are refused. With a source
other than ``nova``, requests use them for half a minute after a failed read,
without waiting for the next read.
""",
    ),
    cfg.StrOpt(
        'mode',
        default='enforce',
        choices=[
            ('enforce', 'The request filters restrict requests'),
            ('shadow', 'They only record what they would have changed'),
        ],
        help="""
Whether the request filters have an effect.

In shadow mode nova-scheduler works as without this package: Nova's own filters
stay, queries to Placement are not changed and no host is checked. After each
request the filters decide about a copy of it, and a record says what they
would have changed.
""",
    ),
    cfg.ListOpt(
        'shadow_filters',
        default=[],
        help="""
Request filters that only record, while the others have an effect.

Each must be named in ``request_filters``, too. With ``mode = shadow`` all of
them only record.
""",
    ),
    cfg.StrOpt(
        'decisions',
        default='failures',
        choices=[
            ('none', 'No request'),
            ('failures', 'Requests that ended without a host'),
            ('narrowed', 'These, and those that a filter kept from hosts'),
            ('all', 'All requests'),
        ],
        help="""
The requests that nova-scheduler leaves a record of.

A record is one line of JSON in the log, by the logger
``isolate_aggregates.decisions``. It says what was asked for, what the request
filters concluded, what became of the request and, if it got no host, why. For
that Placement is asked again, after Nova has answered. Requests that filters
in shadow would have changed always leave a record.
""",
    ),
    cfg.ListOpt(
        'decisions_omit',
        item_type=types.String(choices=['hints', 'names']),
        default=[],
        help="""
What the records leave out.

``hints`` are the scheduler hints of the request, ``names`` those of flavor and
image. Users choose hints and names of images, and may write personal data into
them.
""",
    ),
    cfg.StrOpt(
        'scheduler_metrics_directory',
        help="""
Directory in which nova-scheduler counts what the request filters do.

``isolate-aggregates exporter --scheduler`` serves the counts to Prometheus. By
default nothing is counted.
""",
    ),
    cfg.StrOpt(
        'region_name',
        help='Region whose Nova, Placement and Glance are used.',
    ),
    cfg.ListOpt(
        'valid_interfaces',
        item_type=types.String(choices=['internal', 'public', 'admin']),
        default=['internal', 'public'],
        help='Endpoint interfaces, in order of preference.',
    ),
]


class _SharedOpt:
    """An option that blazar-nova registers too, with another help text.

    oslo.config rejects a second registration that differs from the first. For
    these options only name and default must be equal.
    """

    name: str
    default: object

    def __ne__(self, other: object) -> bool:
        return (self.name, self.default) != (
            getattr(other, 'name', None),
            getattr(other, 'default', None),
        )


class _SharedStrOpt(_SharedOpt, cfg.StrOpt):
    pass


class _SharedBoolOpt(_SharedOpt, cfg.BoolOpt):
    pass


blazar_opts: list[cfg.Opt] = [
    _SharedStrOpt(
        'aggregate_freepool_name',
        default='freepool',
        help='Name of the aggregate of hosts that may be reserved.',
    ),
    _SharedBoolOpt(
        'allow_preemptibles',
        default=False,
        help="""
Let flavors with ``blazar:preemptible=true`` use the preemptible aggregate.
""",
    ),
    _SharedStrOpt(
        'preemptible_aggregate',
        default='freepool',
        help='Name of the aggregate whose hosts take preemptible servers.',
    ),
    _SharedStrOpt(
        'blazar_owner',
        default='blazar:owner',
        help="""
Metadata key of a reserved aggregate that holds the owner's project id.
""",
    ),
    _SharedStrOpt(
        'blazar_az_prefix',
        default='blazar_',
        help='Prefix of the availability zones of reserved aggregates.',
    ),
]
