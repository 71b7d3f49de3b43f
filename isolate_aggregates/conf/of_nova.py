# SPDX-License-Identifier: Apache-2.0
"""Options of Nova, or from Nova's specifications.

If Nova has already registered an option, its registration is used.
"""

from oslo_config import cfg

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
Maximum number of allocation candidates to request from Placement.

Placement returns no more than that, so hosts beyond the limit are not
considered. A ``--limit`` on the command line takes precedence over this
option.
""",
    ),
]

# Commands read these options to send the same queries as Nova.
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

Nova's own option.
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
