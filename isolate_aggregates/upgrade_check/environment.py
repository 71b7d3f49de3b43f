# SPDX-License-Identifier: Apache-2.0
"""Finds environment variables that damage options set in files.

oslo.config reads ``OS_<GROUP>__<OPTION>`` before the files, for every option.
It splits the value of an option that may be repeated into letters, and an
empty variable, as templates of containers leave it, counts as a value.
"""

from collections.abc import Iterator
import os

from oslo_config import cfg

from isolate_aggregates import options
from isolate_aggregates.upgrade_check import unknown

# Nova's own, which registers it itself.
_AVAILABLE = cfg.MultiStrOpt('available_filters')


def damaging_variables(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Yield a sentence for each variable that an operator cannot mean.

    :param conf: A configuration whose files have been read. The environment
        is that of this process, which must be that of nova-scheduler.
    """
    in_files: dict[tuple[str, str], str] = {}
    for path in unknown.files(conf):
        for section, names in unknown.parsed(path).items():
            for name in names:
                in_files[section.lower(), name] = path
    for group, opts in options.list_opts():
        more = [_AVAILABLE] if group == options.HOST_FILTERS else []
        for option in (*opts, *more):
            variable = f'OS_{group.upper()}__{option.name.upper()}'
            value = os.environ.get(variable)
            if value is None:
                continue
            if option.multi and value:
                yield (
                    f'oslo.config splits {variable} in the environment into '
                    f'letters, because [{group}] {option.dest} may be '
                    'repeated; unset it, and set the option in a file'
                )
            elif not value and (
                set_in := in_files.get((group.lower(), option.dest))
            ):
                yield (
                    f'{variable} in the environment is empty, and takes '
                    f'precedence over [{group}] {option.dest} of {set_in}; '
                    'unset it'
                )
