# SPDX-License-Identifier: Apache-2.0
"""Audits of clouds made up by tests."""

from oslo_config import cfg

from isolate_aggregates import options as tools_options
from isolate_aggregates_tools.audit import AuditedCloud, audit
from isolate_aggregates_tools.compute.servers import Server, Servers
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.testing import make_snapshot

LICENSED = 'CUSTOM_LICENSED'
LOCK = {f'trait:{LICENSED}': 'required'}
PREFIXES = (
    'placement_req_required_member_prefix',
    'placement_req_default_forbidden_member_prefix',
)


def configuration(**options):
    """Return a configuration with isolation on; options by their names."""
    conf = cfg.ConfigOpts()
    tools_options.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    options = {'enable_isolated_aggregate_filtering': True, **options}
    groups = {option: group for group, option in tools_options.CLOUD_SETTINGS}
    for option, value in options.items():
        group = groups[option]
        conf.set_override(option, value, group if group in conf else None)
    return conf


def findings(
    aggregates=(),
    providers=(),
    flavors=(),
    images=(),
    mirror=True,
    conf=None,
    services=None,
    **more,
):
    """Audit a cloud, without the finding for clouds without flavors."""
    snapshot = make_snapshot(
        aggregates,
        providers,
        flavors=flavors,
        images=images,
        mirror=mirror,
        services=services,
    )
    return findings_of(snapshot, conf, **more)


def findings_of(snapshot, conf=None, **more):
    """Audit a snapshot, without the finding for clouds without flavors."""
    audited_cloud = AuditedCloud.of(snapshot, conf or configuration(), **more)
    return [f for f in audit(audited_cloud) if f.kind != 'no-flavors']


def kinds(*arguments, **more):
    """Return what kinds of findings an audit has."""
    return [finding.kind for finding in findings(*arguments, **more)]


def server(name='vm', host='h1', flavor=None, **more):
    """Return a running server."""
    return Server(
        f'id-of-{name}', name, 'demo', 'ACTIVE', host, flavor, **more
    )


def servers(*placed, images=(), hints_known=True):
    """Return the data on the servers of a cloud."""
    return Servers(placed, {i.id: i for i in images}, hints_known)


def lines(finding):
    """Return the repairs of a finding, in order."""
    return [
        commands.shown(repair.commands) or repair.text
        for repair in finding.repairs
    ]


def first(finding):
    """Return the first repair of a finding; None if there is none."""
    return next(iter(lines(finding)), None)
