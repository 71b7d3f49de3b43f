# SPDX-License-Identifier: Apache-2.0
"""All options of the commands: those of the plugin, and those of Nova.

Commands read options of Nova to send the same queries. The sample file and the
documentation are generated from this module.
"""

from typing import Any

from oslo_config import cfg

from isolate_aggregates import conf as ia_conf

DEFAULT = 'DEFAULT'
HOST_FILTERS = 'filter_scheduler'
WORKAROUNDS = 'workarounds'
PCI = 'pci'
CINDER = 'cinder'

# How to give our commands a nova.conf, in both programs.
CONFIG_FILE = '--config-file (openstack: --os-isolation-config-file)'

# The supported releases of Nova.
OLDEST_NOVA = 31
NEWEST_NOVA = 34

scheduler_opts: list[cfg.Opt] = [
    cfg.IntOpt(
        'max_placement_results',
        default=1000,
        min=1,
        help="""
Maximum number of allocation candidates to request from Placement.

Placement returns no more than that, so hosts beyond the limit are not
considered. A ``--limit`` on the command line takes precedence over this
option.
""",
    ),
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
Require hosts that support the devices named by image properties.

Nova's own option.
""",
    ),
    cfg.BoolOpt(
        'query_placement_for_routed_network_aggregates',
        default=False,
        help="""
Require hosts on a segment of each requested routed network.

Nova's own option.
""",
    ),
]

default_opts: list[cfg.Opt] = [
    cfg.StrOpt(
        'default_availability_zone',
        default='nova',
        help="""
Availability zone of hosts that are in no aggregate with a zone.

Nova's own option.
""",
    ),
    cfg.StrOpt(
        'internal_service_availability_zone',
        default='internal',
        help="""
Availability zone of Nova's services other than nova-compute.

Nova's own option.
""",
    ),
    cfg.StrOpt(
        'default_schedule_zone',
        help="""
Availability zone for servers that request none.

Nova's own option.
""",
    ),
]

filter_scheduler_opts = [
    cfg.ListOpt(
        'enabled_filters',
        help="""
The host filters that Nova runs after Placement has answered.

Nova's own option. Commands take into account those that check only aggregates,
and name the others in their output. If this option is not set here, commands
do not know which host filters run.
""",
    ),
    cfg.StrOpt(
        'aggregate_image_properties_isolation_namespace',
        help="""
Prefix of the metadata keys that ``AggregateImagePropertiesIsolation`` checks.

Nova's own option.
""",
    ),
    cfg.StrOpt(
        'aggregate_image_properties_isolation_separator',
        default='.',
        help="""
Separator between that prefix and the rest of a metadata key.

Nova's own option.
""",
    ),
    cfg.ListOpt(
        'isolated_hosts',
        default=[],
        help="""
Hosts that ``IsolatedHostsFilter`` reserves for isolated images.

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

filter_scheduler_opts += [
    cfg.BoolOpt(
        'pci_in_placement',
        default=False,
        help="""
Request PCI devices of flavors from Placement.

Nova's own option.

Related options:

* ``[pci] alias``
""",
    ),
]

pci_opts: list[cfg.Opt] = [
    cfg.MultiStrOpt(
        'alias',
        default=[],
        help="""
What an alias in ``pci_passthrough:alias`` of a flavor stands for.

Nova's own option. Use the aliases of nova-api, which refuses flavors with
another one.
""",
    ),
]

cinder_opts: list[cfg.Opt] = [
    cfg.BoolOpt(
        'cross_az_attach',
        default=True,
        help="""
Let servers use volumes of other availability zones.

Nova's own option. If it is false, the zone of its volumes limits where a
server may run, which commands do not know and say so.
""",
    ),
]

workarounds_opts: list[cfg.Opt] = [
    cfg.BoolOpt(
        'disable_fallback_pcpu_query',
        default=False,
        help="""
Do not ask for VCPU if a server requests pinned CPUs.

Nova's own option. By default Nova sends two queries for such a server: one for
PCPU, and one for VCPU, for hosts that do not provide PCPU yet.
""",
    ),
]

isolate_aggregates_opts: list[cfg.Opt] = [
    cfg.IntOpt(
        'nova_release',
        min=OLDEST_NOVA,
        max=NEWEST_NOVA,
        help="""
Release of Nova whose scheduling the commands reproduce.

Newer releases add more to a request. By default it is derived from the
microversions that Nova's API offers. For a cloud file it is the newest
supported release.
""",
    ),
    cfg.BoolOpt(
        'remember_providers',
        default=True,
        help="""
Keep what is read of resource providers for the next command.

Commands that change nothing then read only what has changed. It is kept for a
day, in a file of the user's cache folder. Usage is always read.
""",
    ),
    cfg.IntOpt(
        'max_concurrency',
        min=1,
        max=64,
        default=ia_conf.MAX_CONCURRENCY,
        help="""
Most requests that a command or service sends at the same time.

That is to Placement, and for the ledger to Nova. After a response 429 or 503
nothing is sent to Placement for as long as its header ``Retry-After`` says, at
most ten seconds. Lower it if Placement has few workers.
""",
    ),
    cfg.ListOpt(
        'metrics_flavors',
        default=[],
        help="""
The flavors whose free slots the exporter counts.

Names or ids. By default the ten flavors with the most servers. To find them,
the exporter lists all servers: at each reading with ``--servers`` or
``--output``, otherwise once an hour. If the cloud has at most ten flavors,
the exporter does not list the servers for this.
""",
    ),
]

_OPTIONS: dict[str, list[cfg.Opt]] = {
    DEFAULT: default_opts,
    ia_conf.SCHEDULER: scheduler_opts,
    HOST_FILTERS: filter_scheduler_opts,
    WORKAROUNDS: workarounds_opts,
    PCI: pci_opts,
    CINDER: cinder_opts,
    ia_conf.BLAZAR: [],
    ia_conf.GROUP: isolate_aggregates_opts,
}

# The options that affect the hosts for a request; a cloud file can have their
# values.
CLOUD_SETTINGS = (
    (DEFAULT, 'default_availability_zone'),
    (DEFAULT, 'default_schedule_zone'),
    (DEFAULT, 'internal_service_availability_zone'),
    (ia_conf.SCHEDULER, 'enable_isolated_aggregate_filtering'),
    (ia_conf.SCHEDULER, 'placement_req_required_member_prefix'),
    (ia_conf.SCHEDULER, 'placement_req_default_forbidden_member_prefix'),
    (ia_conf.SCHEDULER, 'max_placement_results'),
    (ia_conf.SCHEDULER, 'limit_tenants_to_placement_aggregate'),
    (ia_conf.SCHEDULER, 'placement_aggregate_required_for_tenants'),
    (ia_conf.SCHEDULER, 'query_placement_for_image_type_support'),
    (ia_conf.SCHEDULER, 'image_metadata_prefilter'),
    (ia_conf.SCHEDULER, 'query_placement_for_routed_network_aggregates'),
    (HOST_FILTERS, 'enabled_filters'),
    (HOST_FILTERS, 'aggregate_image_properties_isolation_namespace'),
    (HOST_FILTERS, 'aggregate_image_properties_isolation_separator'),
    (HOST_FILTERS, 'isolated_hosts'),
    (HOST_FILTERS, 'isolated_images'),
    (HOST_FILTERS, 'restrict_isolated_hosts_to_isolated_images'),
    (HOST_FILTERS, 'pci_in_placement'),
    (PCI, 'alias'),
    (WORKAROUNDS, 'disable_fallback_pcpu_query'),
    (ia_conf.GROUP, 'nova_release'),
    (ia_conf.GROUP, 'request_filters'),
    (ia_conf.GROUP, 'trait_sources'),
    (ia_conf.GROUP, 'reservation_key_sources'),
    (ia_conf.GROUP, 'reservation_required'),
    (ia_conf.GROUP, 'max_query_length'),
    (ia_conf.BLAZAR, 'aggregate_freepool_name'),
    (ia_conf.BLAZAR, 'allow_preemptibles'),
    (ia_conf.BLAZAR, 'preemptible_aggregate'),
    (ia_conf.BLAZAR, 'blazar_owner'),
    (ia_conf.BLAZAR, 'blazar_az_prefix'),
)


def list_opts(connection: bool = True) -> list[tuple[str, list[cfg.Opt]]]:
    """Return all options by group, for the sample file and the pages.

    Those for the connection to a cloud can be left out.
    """
    options = {
        group: ia_conf.OPTIONS.get(group, []) + opts
        for group, opts in _OPTIONS.items()
    }
    if connection:
        options[ia_conf.GROUP] += ia_conf.connection_opts()
    return list(options.items())


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register all options, except those that are registered already."""
    ia_conf.register_opts(conf)
    _register(conf)


def register_own_opts(conf: cfg.ConfigOpts) -> None:
    """Register all options except those for the connection to a cloud."""
    ia_conf.register_opts(conf, connection=False)
    _register(conf)


def _register(conf: cfg.ConfigOpts) -> None:
    for group, opts in _OPTIONS.items():
        ia_conf.register(conf, None if group == DEFAULT else group, opts)


def check(conf: cfg.ConfigOpts) -> None:
    """Check for invalid values that oslo.config accepts."""
    for group, options in _OPTIONS.items():
        for option in options:
            if group != DEFAULT:
                ia_conf.check_value(conf, group, option)
    ia_conf.check(conf)


def value_of(conf: cfg.ConfigOpts, group: str, option: str) -> Any:
    """Return the value of an option; :data:`DEFAULT` is a group, too."""
    return conf[option] if group == DEFAULT else conf[group][option]


def set_default(
    conf: cfg.ConfigOpts, group: str, option: str, value: object
) -> None:
    """Replace the default of an option; :data:`DEFAULT` is a group, too."""
    if isinstance(value, str) and any(
        each.name == option and each.multi for each in _OPTIONS[group]
    ):
        value = [value]
    conf.set_default(option, value, None if group == DEFAULT else group)
