# SPDX-License-Identifier: Apache-2.0
"""``candidates`` leaves out what Nova drops after Placement."""

from collections.abc import Callable
import json
import pathlib
from typing import Any

CLOUD = """\
version: 1
settings:
  filter_scheduler:
    enabled_filters: [AggregateInstanceExtraSpecsFilter, RamFilter]
aggregates:
- {name: ssd, metadata: {ssd: 'true'}, hosts: [cn1]}
providers:
- {name: cn1.example.org, host: cn1, inventories: {VCPU: 8}}
- {name: cn2.example.org, host: cn2, inventories: {VCPU: 8}}
flavors:
- name: fast
  vcpus: 1
  extra_specs: {'aggregate_instance_extra_specs:ssd': 'true'}
"""


def test_hosts_that_nova_drops_are_told_apart(
    run: Callable[..., Any], tmp_path: pathlib.Path
) -> None:
    path = tmp_path / 'cloud.yaml'
    path.write_text(CLOUD)
    asked = ('candidates', '--snapshot', str(path), '--flavor', 'fast')
    document = json.loads(run(*asked, '-f', 'json').out)
    assert [host['name'] for host in document['hosts']] == ['cn1.example.org']
    assert document['dropped'] == [
        {
            'name': 'cn2.example.org',
            'reasons': ['in no aggregate with ssd=true'],
        }
    ]
    assert document['not_known'] == [
        'what the host filters RamFilter drop after Placement'
    ]
    assert (
        '1 host may be used.\n'
        '\n'
        'Dropped by host filters, after Placement:\n'
        '  cn2.example.org: in no aggregate with ssd=true\n'
        '\n'
        'Not known here:\n'
        '  what the host filters RamFilter drop after Placement\n'
    ) in run(*asked).out
