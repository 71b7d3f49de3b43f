# SPDX-License-Identifier: Apache-2.0
"""Every configuration option, once.

The sample file and the documentation are generated from this module. Options
in the group ``scheduler`` are Nova's, or named in Nova's specs; where Nova has
registered one already, Nova's registration is the one that counts.
"""

from collections.abc import Iterable
import re

from keystoneauth1 import loading
from oslo_config import cfg

from isolate_aggregates import exception

GROUP = 'isolate_aggregates'
SCHEDULER = 'scheduler'

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
seen. A ``--limit`` on the command line goes before this option.
""",
    ),
]

isolate_aggregates_opts = [
    cfg.ListOpt(
        'request_filters',
        default=[
            'isolate_aggregates',
            'reservation_prefix',
            'requested_host',
            'compute_status',
        ],
        help="""
The request filters to run, in this order.

Each name is an entry point in ``isolate_aggregates.request_filters``;
``isolate-aggregates filter list`` shows those installed. A filter that is not
named here does not run. A name that can not be loaded stops the program: a
filter that silently did nothing would let servers in where they must not be.
""",
    ),
    cfg.StrOpt(
        'aggregate_source',
        default='novaclient',
        help="""
Where to read the host aggregates.

The name of an entry point in ``isolate_aggregates.aggregate_sources``:
``novaclient`` asks Nova's API, ``file`` reads the cloud file named by
``cloud_file``.
""",
    ),
    cfg.StrOpt(
        'cloud_file',
        help="""
Path of the cloud file for ``aggregate_source = file``.
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

# What decides which hosts a request gets; a cloud file may carry the values.
CLOUD_SETTINGS = (
    (SCHEDULER, 'enable_isolated_aggregate_filtering'),
    (SCHEDULER, 'placement_req_required_member_prefix'),
    (SCHEDULER, 'placement_req_default_forbidden_member_prefix'),
    (SCHEDULER, 'max_placement_results'),
    (GROUP, 'request_filters'),
)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return all options by group, for the generated sample and pages."""
    session = loading.get_session_conf_options()
    auth = loading.get_auth_plugin_conf_options('v3password')
    common = loading.get_auth_common_conf_options()
    return [
        (SCHEDULER, scheduler_opts),
        (GROUP, isolate_aggregates_opts + common + session + auth),
    ]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register all options, except those that somebody else registered.

    :param conf: Where to register them.
    """
    _register(conf, SCHEDULER, scheduler_opts)
    _register(conf, GROUP, isolate_aggregates_opts)
    loading.register_session_conf_options(conf, GROUP)
    loading.register_auth_conf_options(conf, GROUP)


def _register(conf: cfg.ConfigOpts, group: str, opts: list[cfg.Opt]) -> None:
    for opt in opts:
        try:
            conf.register_opt(opt, group=group)
        except cfg.DuplicateOptError:
            # Nova registers some of these with a help text of its own.
            continue


def check(conf: cfg.ConfigOpts) -> None:
    """Look for values that oslo.config accepts but that can not work.

    :param conf: A configuration with our options registered.
    :raises ConfigError: naming the option and what is wrong with it.
    """
    for group, options in list_opts():
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
    except (ValueError, cfg.ConfigFileValueError) as exc:
        raise exception.ConfigError(
            f'[{group}] {option}', f'can not be used: {exc}'
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
