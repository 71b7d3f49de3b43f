# SPDX-License-Identifier: Apache-2.0
"""All configuration options.

The sample file and the documentation are generated from this package.
"""

from collections.abc import Iterable
import math
import re
from typing import Any

from oslo_config import cfg

from isolate_aggregates import exception
from isolate_aggregates.conf.of_blazar import blazar_opts
from isolate_aggregates.conf.of_nova import (
    cinder_opts,
    default_opts,
    filter_scheduler_opts,
    pci_opts,
    scheduler_opts,
    workarounds_opts,
)
from isolate_aggregates.conf.own import isolate_aggregates_opts

DEFAULT = 'DEFAULT'
GROUP = 'isolate_aggregates'
SCHEDULER = 'scheduler'
HOST_FILTERS = 'filter_scheduler'
WORKAROUNDS = 'workarounds'
PCI = 'pci'
CINDER = 'cinder'
BLAZAR = 'blazar:physical:host'

# The prefix of the names of the metrics of nova-scheduler's workers.
SCHEDULER_METRICS = 'isolate_aggregates_scheduler'

# Keys with a meaning in Nova. A reservation prefix that matches them would
# turn ordinary extra specs into reservations.
_KEYS_OF_NOVA = (
    'aggregate_instance_extra_specs:',
    'availability_zone',
    'filter_tenant_id',
    'hw:',
    'os:',
    'resources',
    'trait',
)

# The options that affect the hosts for a request; a cloud file can have their
# values.
CLOUD_SETTINGS = (
    (DEFAULT, 'default_availability_zone'),
    (DEFAULT, 'default_schedule_zone'),
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
    (WORKAROUNDS, 'disable_fallback_pcpu_query'),
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


def list_opts(connection: bool = True) -> list[tuple[str, list[cfg.Opt]]]:
    """Return all options by group, for the sample file and the pages.

    Those for the connection to a cloud can be left out.
    """
    return [
        (DEFAULT, default_opts),
        (SCHEDULER, scheduler_opts),
        (HOST_FILTERS, filter_scheduler_opts),
        (WORKAROUNDS, workarounds_opts),
        (PCI, pci_opts),
        (CINDER, cinder_opts),
        (BLAZAR, blazar_opts),
        (
            GROUP,
            isolate_aggregates_opts
            + (_connection_opts() if connection else []),
        ),
    ]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register all options, except those that are registered already."""
    register_own_opts(conf)
    register_connection_opts(conf)


def register_own_opts(conf: cfg.ConfigOpts) -> None:
    """Register all options except those for the connection to a cloud."""
    _register(conf, None, default_opts)
    _register(conf, SCHEDULER, scheduler_opts)
    _register(conf, HOST_FILTERS, filter_scheduler_opts)
    _register(conf, WORKAROUNDS, workarounds_opts)
    _register(conf, PCI, pci_opts)
    _register(conf, CINDER, cinder_opts)
    _register(conf, BLAZAR, blazar_opts)
    _register(conf, GROUP, isolate_aggregates_opts)


def register_connection_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options for the connection to a cloud."""
    # Imported late, as this is slow and not needed for cloud files.
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


def value_of(conf: cfg.ConfigOpts, group: str, option: str) -> Any:
    """Return the value of an option; :data:`DEFAULT` is a group, too."""
    return conf[option] if group == DEFAULT else conf[group][option]


def set_default(
    conf: cfg.ConfigOpts, group: str, option: str, value: object
) -> None:
    """Replace the default of an option; :data:`DEFAULT` is a group, too."""
    conf.set_default(option, value, None if group == DEFAULT else group)


def _register(
    conf: cfg.ConfigOpts, group: str | None, opts: list[cfg.Opt]
) -> None:
    for opt in opts:
        try:
            conf.register_opt(opt, group=group)
        except cfg.DuplicateOptError:
            # Nova registers some of these with another help text.
            continue


def check(conf: cfg.ConfigOpts) -> None:
    """Check for invalid values that oslo.config accepts.

    :param conf: A configuration with our options registered. Options for the
        connection are checked only if they are registered.
    """
    connection = _connection_opts() if 'auth_type' in conf[GROUP] else []
    for group, options in (
        (SCHEDULER, scheduler_opts),
        (HOST_FILTERS, filter_scheduler_opts),
        (WORKAROUNDS, workarounds_opts),
        (BLAZAR, blazar_opts),
        (GROUP, isolate_aggregates_opts + connection),
    ):
        for option in options:
            _check_value(conf, group, option)
    sources = conf[GROUP].trait_sources
    if 'flavor' not in sources:
        raise exception.ConfigError(
            f'[{GROUP}] trait_sources',
            'does not have flavor, but the traits of a flavor always open an '
            'isolated aggregate; set it to flavor, or to flavor,image.',
        )
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


def _check_value(conf: cfg.ConfigOpts, group: str, option: cfg.Opt) -> None:
    name = f'[{group}] {option.dest}'
    try:
        value = conf[group][option.dest]
    except cfg.NoSuchOptError:
        # An auth option that the configured plugin does not have.
        return
    except ValueError as exc:
        # oslo.config adds the name of the option to the reason.
        problem = plain(exc.__context__ or exc)
        raise exception.ConfigError(
            name, f'cannot be used: {problem}.'
        ) from exc
    if value is None and option.default is not None:
        # As a template writes it whose variable is empty.
        raise exception.ConfigError(
            name,
            f'is empty; give it a value, or remove it for the default, '
            f'{option.default}.',
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise exception.ConfigError(
            name, f'cannot be used: {value} is not a finite number.'
        )


# What Python says of a text that is no number, and what a user understands.
_NO_NUMBER = (
    (r'could not convert string to float: (.*)', r'\1 is not a number'),
    (
        r'invalid literal for int\(\) with base 10: (.*)',
        r'\1 is not an integer',
    ),
)


def plain(problem: object) -> str:
    """Return why a value is invalid, in words of users."""
    text = str(problem)
    for pattern, sentence in _NO_NUMBER:
        text = re.sub(pattern, sentence, text)
    return text


def _check_prefixes(option: str, prefixes: Iterable[str]) -> None:
    for prefix in prefixes:
        if not prefix or re.search(r'\s', prefix):
            raise exception.ConfigError(
                option,
                f'has the prefix {prefix!r}; a prefix must not be empty or '
                'contain white space; use one such as "reservation:".',
            )
        for key in _KEYS_OF_NOVA:
            if key.startswith(prefix) or prefix.startswith(key):
                raise exception.ConfigError(
                    option,
                    f'has the prefix {prefix!r}, which also matches keys such '
                    f'as {key!r} that have another meaning in Nova; choose '
                    'another prefix, such as "reservation:".',
                )
