# SPDX-License-Identifier: Apache-2.0
"""The snippets for deployment tools result in a nova.conf that works."""

import pathlib
import re

import jinja2
import pytest
from starting import starts
import yaml

ROOT = pathlib.Path(__file__).parents[2]
DEPLOYMENT = ROOT / 'etc' / 'deployment'

# The section of nova.conf that the snippets refer to.
SERVICE_USER = """
[service_user]
auth_type = password
auth_url = https://keystone.example.com/v3
username = nova
password = secret
project_name = service
"""

# Nova's defaults, and our host filter, which checks rebuilds.
DEFAULT_FILTERS = [
    'ComputeFilter',
    'ComputeCapabilitiesFilter',
    'ImagePropertiesFilter',
    'ServerGroupAntiAffinityFilter',
    'ServerGroupAffinityFilter',
    'IsolatedAggregatesFilter',
]


def check(path, host_filters):
    started = starts(path)
    # keystoneauth registers these options only when it loads the plugin.
    unknown = [u for u in started['unknown'] if '[service_user]' not in u]
    assert unknown == []
    assert started['registration'] == 'SUCCESS'
    assert started['filters'] == (
        'Request filters: isolate_aggregates, reservation_prefix.'
    )
    assert started['host_filters'] == host_filters


def test_nova_scheduler_starts_with_the_kolla_ansible_example(tmp_path):
    given = (DEPLOYMENT / 'kolla-ansible/nova-scheduler.conf').read_text()
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, autoescape=False
    )
    rendered = environment.from_string(given).render(
        openstack_cacert='', openstack_region_name='RegionOne'
    )
    path = tmp_path / 'nova.conf'
    path.write_text(f'{rendered}\n{SERVICE_USER}')
    check(path, DEFAULT_FILTERS)


def as_ini(conf):
    """Write options as openstack-ansible's config_template does.

    A dictionary without values becomes an option that is repeated, in
    alphabetical order.
    """
    lines = []
    for group, options in conf.items():
        lines.append(f'[{group}]')
        for name, value in options.items():
            values = sorted(value) if isinstance(value, dict) else [value]
            lines += [f'{name} = {one}' for one in values]
    return '\n'.join(lines)


BLAZAR_FILTER = 'blazarnova.scheduler.filters.blazar_filter.BlazarFilter'


def ansible_variables(uncommented=''):
    text = (DEPLOYMENT / 'openstack-ansible/user_variables.yml').read_text()
    if uncommented:
        text = text.replace(f'# {uncommented}:', f'{uncommented}:')
    return yaml.safe_load(text)


def ansible_conf(variables, blazar_filters=()):
    """Return the options that os_nova and the overrides set.

    An override replaces all values of an option.
    """
    enabled = [
        'ComputeFilter',
        *blazar_filters,
        *variables['nova_scheduler_extra_filters'],
    ]
    conf = {'filter_scheduler': {'enabled_filters': ','.join(enabled)}}
    if blazar_filters:
        conf['filter_scheduler']['available_filters'] = {
            'nova.scheduler.filters.all_filters': None,
            BLAZAR_FILTER: None,
        }
    for group, options in variables['nova_nova_conf_overrides'].items():
        conf.setdefault(group, {}).update(options)
    return f'{as_ini(conf)}\n{SERVICE_USER}'


@pytest.mark.slow
def test_nova_scheduler_starts_with_the_openstack_ansible_example(tmp_path):
    path = tmp_path / 'nova.conf'
    path.write_text(ansible_conf(ansible_variables()))
    check(path, ['ComputeFilter', 'IsolatedAggregatesFilter'])


@pytest.mark.slow
def test_openstack_ansible_keeps_blazar_filter_if_it_is_uncommented(tmp_path):
    path = tmp_path / 'nova.conf'
    variables = ansible_variables(BLAZAR_FILTER)
    path.write_text(ansible_conf(variables, ['BlazarFilter']))
    check(path, ['ComputeFilter', 'BlazarFilter', 'IsolatedAggregatesFilter'])


@pytest.mark.slow
def test_openstack_ansible_with_blazar_does_not_start_without_its_filter(
    tmp_path,
):
    path = tmp_path / 'nova.conf'
    path.write_text(ansible_conf(ansible_variables(), ['BlazarFilter']))
    with pytest.raises(AssertionError, match='BlazarFilter'):
        starts(path)


@pytest.mark.slow
def test_openstack_ansible_can_replace_blazar_filter(tmp_path):
    path = tmp_path / 'nova.conf'
    variables = ansible_variables()
    variables['nova_nova_conf_overrides']['isolate_aggregates'][
        'request_filters'
    ] += ',blazar_reservation'
    path.write_text(ansible_conf(variables))
    started = starts(path)
    assert started['filters'] == (
        'Request filters: isolate_aggregates, reservation_prefix, '
        'blazar_reservation.'
    )
    assert started['host_filters'] == [
        'ComputeFilter',
        'IsolatedAggregatesFilter',
    ]


def to_oslo_conf(conf):
    """Write values like helm-toolkit's to_oslo_conf in openstack-helm.

    Its template iterates over maps in the order of their keys. A list becomes
    comma-separated values; only a map of type multistring becomes an option
    that is repeated.
    """
    lines = []
    for group, options in sorted(conf.items()):
        lines.append(f'[{group}]')
        for name, value in sorted(options.items()):
            if isinstance(value, dict):
                assert value['type'] == 'multistring'
                values = value['values']
            elif isinstance(value, list):
                values = [','.join(map(str, value))]
            elif isinstance(value, bool):
                values = [str(value).lower()]
            else:
                values = [value]
            lines += [f'{name} = {one}' for one in values]
    return '\n'.join(lines)


def helm_values():
    return yaml.safe_load(
        (DEPLOYMENT / 'openstack-helm/nova.yaml').read_text()
    )


@pytest.mark.slow
def test_nova_scheduler_starts_with_the_openstack_helm_example(tmp_path):
    path = tmp_path / 'nova.conf'
    path.write_text(
        f'{to_oslo_conf(helm_values()["conf"]["nova"])}\n{SERVICE_USER}'
    )
    check(path, DEFAULT_FILTERS)


@pytest.mark.slow
def test_a_list_in_place_of_a_multistring_does_not_start(tmp_path):
    conf = helm_values()['conf']['nova']
    filters = conf['filter_scheduler']['available_filters']['values']
    conf['filter_scheduler']['available_filters'] = filters
    path = tmp_path / 'nova.conf'
    path.write_text(f'{to_oslo_conf(conf)}\n{SERVICE_USER}')
    with pytest.raises(AssertionError, match='all_filters,isolate_aggregates'):
        starts(path)


# What the Nova image of Atmosphere contains besides Nova.
FAILURE_DOMAIN = """
from nova.scheduler import filters

class FailureDomainFilter(filters.BaseHostFilter):
    pass
"""


@pytest.mark.slow
def test_nova_scheduler_starts_with_the_atmosphere_example(
    tmp_path, monkeypatch
):
    package = tmp_path / 'nova_scheduler_filters'
    package.mkdir()
    (package / '__init__.py').touch()
    (package / 'failure_domain_filter.py').write_text(FAILURE_DOMAIN)
    monkeypatch.setenv('PYTHONPATH', str(tmp_path))
    given = yaml.safe_load((DEPLOYMENT / 'atmosphere/vars.yml').read_text())
    conf = given['nova_helm_values']['conf']['nova']
    path = tmp_path / 'nova.conf'
    path.write_text(f'{to_oslo_conf(conf)}\n{SERVICE_USER}')
    check(path, conf['filter_scheduler']['enabled_filters'])


# The part of the file of nova-operator that matters to this package.
OPERATOR = """
[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
enabled_filters = ComputeFilter
[scheduler]
enable_isolated_aggregate_filtering=true
"""


@pytest.mark.slow
def test_nova_scheduler_starts_with_the_nova_operator_example(tmp_path):
    """Values of ``available_filters`` in both files count."""
    given = yaml.safe_load(
        (DEPLOYMENT / 'nova-operator/controlplane.yaml').read_text()
    )
    template = given['spec']['nova']['template']['schedulerServiceTemplate']
    (tmp_path / '01-nova.conf').write_text(OPERATOR + SERVICE_USER)
    custom = template['customServiceConfig']
    (tmp_path / '02-nova-override.conf').write_text(custom)
    [enabled] = re.findall('^enabled_filters = (.*)$', custom, re.MULTILINE)
    check(tmp_path, enabled.split(','))
    assert 'IsolatedAggregatesFilter' in enabled


def test_images_of_kolla_ansible_are_named_by_variables_of_its_role():
    given = yaml.safe_load(
        (DEPLOYMENT / 'kolla-ansible/globals.yml').read_text()
    )
    assert set(given) == {'nova_scheduler_image_full', 'nova_api_image_full'}


@pytest.mark.parametrize(
    'name', ['kolla-ansible', 'openstack-ansible'], ids=str
)
def test_deployment_units_keep_the_arguments_of_sync(name):
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
