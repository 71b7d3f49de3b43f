# SPDX-License-Identifier: Apache-2.0
"""Options of Nova, or from Nova's specifications, that request filters read.

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
]
