# SPDX-License-Identifier: Apache-2.0
"""What deployment tools are given makes a nova.conf that works."""

import pathlib
import re

import jinja2
import pytest
from starting import starts
import yaml

ROOT = pathlib.Path(__file__).parents[2]
DEPLOYMENT = ROOT / 'etc' / 'deployment'

# What the nova.conf of either has of what the snippets refer to.
SERVICE_USER = """
[service_user]
auth_type = password
auth_url = https://keystone.example.com/v3
username = nova
password = secret
project_name = service
"""


def check(path, host_filters):
    started = starts(path)
    # The options of credentials follow from their kind, once they are used.
    unknown = [u for u in started['unknown'] if '[service_user]' not in u]
    assert unknown == []
    assert started['registration'] == 'SUCCESS'
    assert started['filters'] == (
        'Request filters: isolate_aggregates, reservation_prefix.'
    )
    assert started['host_filters'] == host_filters


def test_nova_scheduler_starts_with_what_kolla_ansible_is_given(tmp_path):
    given = (DEPLOYMENT / 'kolla-ansible/nova-scheduler.conf').read_text()
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, autoescape=False
    )
    rendered = environment.from_string(given).render(
        openstack_cacert='', openstack_region_name='RegionOne'
    )
    path = tmp_path / 'nova.conf'
    path.write_text(f'{rendered}\n{SERVICE_USER}')
    check(
        path,
        [
            'ComputeFilter',
            'ComputeCapabilitiesFilter',
            'ImagePropertiesFilter',
            'ServerGroupAntiAffinityFilter',
            'ServerGroupAffinityFilter',
            'IsolatedAggregatesFilter',
        ],
    )


def as_ini(overrides):
    """Write overrides as openstack-ansible's config_template does.

    A dictionary without values is an option that is there several times, in
    alphabetical order.
    """
    lines = []
    for group, options in overrides.items():
        lines.append(f'[{group}]')
        for name, value in options.items():
            values = sorted(value) if isinstance(value, dict) else [value]
            lines += [f'{name} = {one}' for one in values]
    return '\n'.join(lines)


@pytest.mark.slow
def test_nova_scheduler_starts_with_what_openstack_ansible_is_given(tmp_path):
    given = yaml.safe_load(
        (DEPLOYMENT / 'openstack-ansible/user_variables.yml').read_text()
    )
    overrides = given['nova_nova_conf_overrides']
    # The role writes this one, of its defaults and those.
    overrides['filter_scheduler']['enabled_filters'] = ','.join(
        ['ComputeFilter', *given['nova_scheduler_extra_filters']]
    )
    path = tmp_path / 'nova.conf'
    path.write_text(f'{as_ini(overrides)}\n{SERVICE_USER}')
    check(path, ['ComputeFilter', 'IsolatedAggregatesFilter'])


def test_images_of_kolla_ansible_are_named_by_variables_of_its_role():
    given = yaml.safe_load(
        (DEPLOYMENT / 'kolla-ansible/globals.yml').read_text()
    )
    assert set(given) == {'nova_scheduler_image_full', 'nova_api_image_full'}


@pytest.mark.parametrize(
    'name', ['kolla-ansible', 'openstack-ansible'], ids=str
)
def test_sync_is_run_elsewhere_but_with_the_same_arguments(name):
    """A drop-in clears ``ExecStart`` before it sets it anew."""
    unit = ROOT / 'etc/systemd/isolate-aggregates-sync.service'
    [command] = re.findall('^ExecStart=(.*)$', unit.read_text(), re.MULTILINE)
    _, program, arguments = command.partition(' isolate-aggregates ')
    dropin = DEPLOYMENT / name / 'isolate-aggregates-sync.service.d.conf'
    cleared, set_anew = re.findall(
        '^ExecStart=(.*)$', dropin.read_text(), re.MULTILINE
    )
    assert program
    assert cleared == ''
    assert set_anew.endswith(f'isolate-aggregates {arguments}')
