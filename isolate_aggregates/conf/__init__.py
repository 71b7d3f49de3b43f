# SPDX-License-Identifier: Apache-2.0
"""The options that nova-scheduler reads for this package."""

from collections.abc import Iterable
import math
import re

from oslo_config import cfg

from isolate_aggregates import exception
from isolate_aggregates.conf.opts import (
    blazar_opts,
    isolate_aggregates_opts,
    scheduler_opts,
)

GROUP = 'isolate_aggregates'
SCHEDULER = 'scheduler'
BLAZAR = 'blazar:physical:host'

# Enough parallel requests to hide latency, without overloading a service.
MAX_CONCURRENCY = 8

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

OPTIONS: dict[str, list[cfg.Opt]] = {
    SCHEDULER: scheduler_opts,
    BLAZAR: blazar_opts,
    GROUP: isolate_aggregates_opts,
}


def register_opts(conf: cfg.ConfigOpts, connection: bool = True) -> None:
    """Register all options, except those that are registered already.

    :param connection: Whether to register those for the connection to a cloud.
    """
    for group, opts in OPTIONS.items():
        register(conf, group, opts)
    if connection:
        register_connection_opts(conf)


def register_connection_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options for the connection to a cloud."""
    # Imported late, as this is slow and not needed for cloud files.
    from keystoneauth1 import loading

    loading.register_session_conf_options(conf, GROUP)
    loading.register_auth_conf_options(conf, GROUP)


def connection_opts() -> list[cfg.Opt]:
    """Return the options for the connection, with those of one plugin."""
    from keystoneauth1 import loading

    return [
        *loading.get_auth_common_conf_options(),
        *loading.get_session_conf_options(),
        *loading.get_auth_plugin_conf_options('v3password'),
    ]


def register(
    conf: cfg.ConfigOpts, group: str | None, opts: list[cfg.Opt]
) -> None:
    """Register options, except those that are registered already."""
    for opt in opts:
        try:
            conf.register_opt(opt, group=group)
        except cfg.DuplicateOptError:
            # Nova registers some of these with another help text.
            continue


def check(conf: cfg.ConfigOpts) -> None:
    """Check for invalid values that oslo.config accepts.

    Options for the connection are checked only if they are registered.
    """
    for group, options in OPTIONS.items():
        for option in options:
            check_value(conf, group, option)
    if 'auth_type' in conf[GROUP]:
        for option in connection_opts():
            check_value(conf, GROUP, option)
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


def check_value(conf: cfg.ConfigOpts, group: str, option: cfg.Opt) -> None:
    """Check for an invalid value that oslo.config accepts."""
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
