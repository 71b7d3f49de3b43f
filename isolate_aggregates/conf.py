# SPDX-License-Identifier: Apache-2.0
"""Every configuration option, once.

The sample file and the documentation are generated from this module. Options
in the groups ``scheduler`` and ``filter_scheduler`` are Nova's, or named in
Nova's specs; where Nova has registered one already, Nova's registration is the
one that counts.
"""

from collections.abc import Iterable
import re

from oslo_config import cfg, types

from isolate_aggregates import exception

GROUP = 'isolate_aggregates'
SCHEDULER = 'scheduler'
HOST_FILTERS = 'filter_scheduler'
BLAZAR = 'blazar:physical:host'

# Keys with a meaning of their own in Nova; a reservation prefix that reaches
# into them would turn ordinary extra specs into reservations.
_TAKEN = (
    'aggregate_instance_extra_specs:',
    'availability_zone',
    'filter_tenant_id',
    'hw:',
    'os:',
    'resources',
    'trait',
)


class _SharedOpt:
    """An option that blazar-nova registers too, with a help of its own.

    oslo.config refuses a second registration that is not equal to the first,
    whichever comes first. For these the name and the default have to be equal.
    """

    name: str
    default: object

    def __eq__(self, other: object) -> bool:
        return (self.name, self.default) == (
            getattr(other, 'name', None),
            getattr(other, 'default', None),
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.name)


class _SharedStrOpt(_SharedOpt, cfg.StrOpt):
    pass


class _SharedBoolOpt(_SharedOpt, cfg.BoolOpt):
    pass


scheduler_opts = [
    cfg.BoolOpt(
        'enable_isolated_aggregate_filtering',
        default=False,
        help="""
Keep requests out of isolated aggregates.

An aggregate with the metadata ``trait:<NAME>=required`` takes only servers
whose flavor and image together require that trait. Without this option such
metadata has no effect, and any server may land there.

Related options:

* ``[isolate_aggregates] request_filters`` must name ``isolate_aggregates``.
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
request is refused.

Related options:

* ``[scheduler] placement_req_default_forbidden_member_prefix`` keeps all other
  servers out; list a prefix in both.
""",
    ),
    cfg.ListOpt(
        'placement_req_default_forbidden_member_prefix',
        default=[],
        help="""
Prefixes of metadata keys that close an aggregate by default.

An aggregate with a metadata key that starts with one of these prefixes takes
no servers whose flavor and image have no key with that prefix.

Related options:

* ``[scheduler] placement_req_required_member_prefix`` sends a server that has
  such a key to its own aggregate; list a prefix in both, or a server with any
  key of that prefix may land in every aggregate of that prefix.
""",
    ),
    cfg.IntOpt(
        'max_placement_results',
        default=1000,
        min=1,
        help="""
The most allocation candidates to ask Placement for.

Placement returns that many and no more, so hosts beyond the limit are not
seen. A ``--limit`` on the command line takes precedence over this option.
""",
    ),
]

# What these mean to Nova. Commands read them to ask what Nova would ask.
scheduler_opts += [
    cfg.BoolOpt(
        'limit_tenants_to_placement_aggregate',
        default=False,
        help="""
Limit projects to the aggregates that name them.

Nova's own option. An aggregate names a project in a metadata key that starts
with ``filter_tenant_id``.
""",
    ),
    cfg.BoolOpt(
        'placement_aggregate_required_for_tenants',
        default=False,
        help="""
Refuse projects that no aggregate names.

Nova's own option.

Related options:

* ``[scheduler] limit_tenants_to_placement_aggregate`` must be true.
""",
    ),
    cfg.BoolOpt(
        'query_placement_for_image_type_support',
        default=False,
        help="""
Require hosts that can boot from the disk format of the image.

Nova's own option.
""",
    ),
    cfg.BoolOpt(
        'image_metadata_prefilter',
        default=False,
        help="""
Require hosts that have the devices which properties of the image name.

Nova's own option.
""",
    ),
    cfg.BoolOpt(
        'query_placement_for_routed_network_aggregates',
        default=False,
        help="""
Require hosts on a segment of each routed network that is asked for.

Nova's own option.
""",
    ),
]

default_opts: list[cfg.Opt] = [
    cfg.StrOpt(
        'default_schedule_zone',
        help="""
The availability zone of servers that are asked for in none.

Nova's own option.
""",
    ),
]

filter_scheduler_opts = [
    cfg.ListOpt(
        'enabled_filters',
        help="""
The host filters that Nova runs after Placement has answered.

Nova's own option. Commands take into account those that look at aggregates
alone, and name the others in their answer. If it is not set here, they do not
know which ones run.
""",
    ),
    cfg.StrOpt(
        'aggregate_image_properties_isolation_namespace',
        help="""
How metadata starts that ``AggregateImagePropertiesIsolation`` looks at.

Nova's own option.
""",
    ),
    cfg.StrOpt(
        'aggregate_image_properties_isolation_separator',
        default='.',
        help="""
What stands after that namespace in metadata.

Nova's own option.
""",
    ),
    cfg.ListOpt(
        'isolated_hosts',
        default=[],
        help="""
Hosts that ``IsolatedHostsFilter`` keeps for isolated images.

Nova's own option.
""",
    ),
    cfg.ListOpt(
        'isolated_images',
        default=[],
        help="""
Ids of images that ``IsolatedHostsFilter`` keeps on isolated hosts.

Nova's own option.
""",
    ),
    cfg.BoolOpt(
        'restrict_isolated_hosts_to_isolated_images',
        default=True,
        help="""
Whether ``IsolatedHostsFilter`` keeps other images off isolated hosts.

Nova's own option.
""",
    ),
]

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
        help='How the availability zones of reserved aggregates start.',
    ),
]

# What decides which hosts a request gets; a cloud file may carry the values.
CLOUD_SETTINGS = (
    (SCHEDULER, 'enable_isolated_aggregate_filtering'),
    (SCHEDULER, 'placement_req_required_member_prefix'),
    (SCHEDULER, 'placement_req_default_forbidden_member_prefix'),
    (SCHEDULER, 'max_placement_results'),
    (SCHEDULER, 'limit_tenants_to_placement_aggregate'),
    (SCHEDULER, 'placement_aggregate_required_for_tenants'),
    (SCHEDULER, 'query_placement_for_image_type_support'),
    (SCHEDULER, 'image_metadata_prefilter'),
    (SCHEDULER, 'query_placement_for_routed_network_aggregates'),
    (HOST_FILTERS, 'enabled_filters'),
    (HOST_FILTERS, 'aggregate_image_properties_isolation_namespace'),
    (HOST_FILTERS, 'aggregate_image_properties_isolation_separator'),
    (HOST_FILTERS, 'isolated_hosts'),
    (HOST_FILTERS, 'isolated_images'),
    (HOST_FILTERS, 'restrict_isolated_hosts_to_isolated_images'),
    (GROUP, 'nova_release'),
    (GROUP, 'request_filters'),
    (GROUP, 'trait_sources'),
    (GROUP, 'reservation_key_sources'),
    (GROUP, 'reservation_required'),
    (GROUP, 'max_query_length'),
    (BLAZAR, 'aggregate_freepool_name'),
    (BLAZAR, 'allow_preemptibles'),
    (BLAZAR, 'preemptible_aggregate'),
    (BLAZAR, 'blazar_owner'),
    (BLAZAR, 'blazar_az_prefix'),
)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return all options by group, for the generated sample and pages."""
    return [
        ('DEFAULT', default_opts),
        (SCHEDULER, scheduler_opts),
        (HOST_FILTERS, filter_scheduler_opts),
        (BLAZAR, blazar_opts),
        (GROUP, isolate_aggregates_opts + _connection_opts()),
    ]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register all options, except those that are registered already.

    :param conf: Where to register them.
    """
    register_own_opts(conf)
    register_connection_opts(conf)


def register_own_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options that decide: all but how to reach a live cloud."""
    _register(conf, None, default_opts)
    _register(conf, SCHEDULER, scheduler_opts)
    _register(conf, HOST_FILTERS, filter_scheduler_opts)
    _register(conf, BLAZAR, blazar_opts)
    _register(conf, GROUP, isolate_aggregates_opts)


def register_connection_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options that say how to reach a live cloud."""
    # It takes as long to import as a command on a cloud file takes to run.
    from keystoneauth1 import loading

    loading.register_session_conf_options(conf, GROUP)
    loading.register_auth_conf_options(conf, GROUP)


def _connection_opts() -> list[cfg.Opt]:
    from keystoneauth1 import loading

    return [
        *loading.get_auth_common_conf_options(),
        *loading.get_session_conf_options(),
        *loading.get_auth_plugin_conf_options('v3password'),
    ]


def _register(
    conf: cfg.ConfigOpts, group: str | None, opts: list[cfg.Opt]
) -> None:
    for opt in opts:
        try:
            conf.register_opt(opt, group=group)
        except cfg.DuplicateOptError:
            # Nova registers some of these with a help text of its own.
            continue


def check(conf: cfg.ConfigOpts) -> None:
    """Look for values that oslo.config accepts but that cannot work.

    :param conf: A configuration with our options registered; those that say
        how to reach a live cloud are looked at if they are registered too.
    :raises ConfigError: naming the option and what is wrong with it.
    """
    connection = _connection_opts() if 'auth_type' in conf[GROUP] else []
    for group, options in (
        (SCHEDULER, scheduler_opts),
        (HOST_FILTERS, filter_scheduler_opts),
        (BLAZAR, blazar_opts),
        (GROUP, isolate_aggregates_opts + connection),
    ):
        for option in options:
            _read(conf, group, option.dest)
    for name in (
        'placement_req_required_member_prefix',
        'placement_req_default_forbidden_member_prefix',
    ):
        _check_prefixes(f'[{SCHEDULER}] {name}', conf[SCHEDULER][name])
    filters = conf[GROUP].request_filters
    twice = sorted({name for name in filters if filters.count(name) > 1})
    if twice:
        raise exception.ConfigError(
            f'[{GROUP}] request_filters',
            f'names {", ".join(twice)} twice; name each filter once.',
        )


def _read(conf: cfg.ConfigOpts, group: str, option: str) -> None:
    try:
        conf[group][option]
    except cfg.NoSuchOptError:
        # An auth option that only another auth plugin has.
        return
    except ValueError as exc:
        # oslo.config puts the name of the option and more around the reason.
        raise exception.ConfigError(
            f'[{group}] {option}',
            f'cannot be used: {exc.__context__ or exc}.',
        ) from exc


def _check_prefixes(option: str, prefixes: Iterable[str]) -> None:
    for prefix in prefixes:
        if not prefix or re.search(r'\s', prefix):
            raise exception.ConfigError(
                option,
                f'has the prefix {prefix!r}; a prefix must not be empty or '
                'have white space in it, such as "reservation:".',
            )
        for taken in _TAKEN:
            if taken.startswith(prefix) or prefix.startswith(taken):
                raise exception.ConfigError(
                    option,
                    f'has the prefix {prefix!r}, which takes in keys such as '
                    f'{taken!r} that mean something else to Nova; choose a '
                    'prefix of its own, such as "reservation:".',
                )
