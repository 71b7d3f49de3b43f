# SPDX-License-Identifier: Apache-2.0
"""The hooks that OpenStackClient calls in a plugin on every start.

The client imports this module for every command, so it must not import
anything slow. See `Plugins
<https://docs.openstack.org/python-openstackclient/latest/contributor/plugins.html>`_.
"""

import argparse

# The client loads the commands from the group "openstack.isolation.v1".
API_NAME = 'isolation'
API_VERSION_OPTION = 'os_isolation_api_version'
API_VERSIONS = ('1',)
DEFAULT_API_VERSION = '1'


def build_option_parser(
    parser: argparse.ArgumentParser,
) -> argparse.ArgumentParser:
    """Add the options that the client does not have itself."""
    parser.add_argument(
        '--os-isolation-config-file',
        action='append',
        metavar='<path>',
        help='Configuration file with [isolate_aggregates] and [scheduler], '
        'such as nova.conf; may be repeated. Default: '
        'isolation_config_file in clouds.yaml, or isolate-aggregates.conf in '
        '~/.isolate-aggregates, ~, /etc/isolate-aggregates and /etc',
    )
    parser.add_argument(
        '--os-isolation-config-dir',
        action='append',
        metavar='<path>',
        help='Directory of configuration files, read after '
        '--os-isolation-config-file; may be repeated',
    )
    return parser
