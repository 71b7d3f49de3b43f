# SPDX-License-Identifier: Apache-2.0
"""What Nova itself does with a request, for pipelines of tests."""

from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import options as tools_options
from isolate_aggregates_tools.mirrored import chain


def mirrored(*names, **options):
    """Return mirrored filters by name; without names all that run.

    :param options: Options of Nova, of whichever of the two groups.
    """
    conf = cfg.ConfigOpts()
    tools_options.register_own_opts(conf)
    conf([], default_config_files=[])
    for name, value in options.items():
        group = (
            ia_conf.SCHEDULER
            if name in conf[ia_conf.SCHEDULER]
            else tools_options.HOST_FILTERS
        )
        conf.set_override(name, value, group)
    found = {one.name: one.request_filter for one in chain.mirrored(conf)}
    return {name: found[name] for name in names or found}
