# SPDX-License-Identifier: Apache-2.0
"""Projects are named on the command line, by id or by name."""

import dataclasses
import json

from cases import cases
from fake_projects import ACME, OTHER, SALES, FakeProjects
from live_example import ISOLATE
import pytest


@pytest.fixture
def kept(in_environment, live, http, config):
    """Reserve linux-1 for a project; return a configuration for it."""
    FakeProjects(http)
    closed, rack = live.nova.aggregates
    live.nova.aggregates[:] = [
        closed,
        dataclasses.replace(rack, metadata={'filter_tenant_id': OTHER}),
    ]
    filters = 'isolate_aggregates, isolate_tenants'
    return config(
        f'{ISOLATE}[isolate_aggregates]\nrequest_filters = {filters}\n'
    )


@cases(
    ('command', 'found'),
    {
        'name': (('acme', '--project-domain', 'sales'), 2),
        'id': ((OTHER,), 2),
        'other': (('acme', '--project-domain', 'Default'), 1),
        'another name': (('Lab',), 1),
    },
)
@pytest.mark.parametrize('program', ['isolate-aggregates', 'openstack'])
def test_a_project_can_be_given_by_name(
    run, openstack, kept, program, command, found
):
    ask = ('-f', 'json', '--flavor', 'm1.small', '--project', *command)
    if program == 'openstack':
        option = ('--os-isolation-config-file', kept)
        result = openstack(*option, 'isolation', 'candidate', 'list', *ask)
    else:
        result = run('--config-file', kept, 'candidate', 'list', *ask)
    assert (result.code, result.err) == (0, '')
    hosts = [host['name'] for host in json.loads(result.out)['hosts']]
    assert hosts == ['linux-1', 'linux-2'][-found:]


def test_a_name_in_several_domains_is_refused_with_its_ids(run, kept):
    result = run(
        *(
            '--config-file',
            kept,
            'candidate',
            'list',
            '--query',
            '--flavor',
            'm1.small',
        ),
        *('--project', 'acme'),
    )
    assert (result.code, result.out) == (1, '')
    assert result.err == (
        f"The project name 'acme' is not unique; name one of {ACME} (domain "
        f'default), {OTHER} (domain {SALES}) instead.\n'
    )


@pytest.mark.parametrize('program', ['isolate-aggregates', 'openstack'])
def test_expectations_name_projects_as_the_command_line_does(
    run, openstack, kept, program, tmp_path
):
    path = tmp_path / 'expectations.yaml'
    path.write_text(
        'version: 1\n'
        'expectations:\n'
        f'- {{flavor: m1.small, project: {OTHER}, min_hosts: 2}}\n'
        '- {flavor: m1.small, project: Lab, min_hosts: 2}\n'
        '- {flavor: m1.small, project: Lap, min_hosts: 1}\n'
        '- {flavor: m1.small, project: "*", min_hosts: 2}\n',
        'utf-8',
    )
    ask = ('-f', 'json', str(path))
    if program == 'openstack':
        option = ('--os-isolation-config-file', kept)
        result = openstack(*option, 'isolation', 'test', *ask)
    else:
        result = run('--config-file', kept, 'test', *ask)
    assert (result.code, result.err) == (4, '')
    problems = [
        [problem['problem'] for problem in each['problems']]
        for each in json.loads(result.out)['expectations']
    ]
    assert problems == [
        [],
        ['flavor m1.small in project Lab may use 1 host'],
        ['there is no project Lap'],
        [],
    ]


def test_an_ambiguous_project_of_an_expectation_is_an_error(
    run, kept, tmp_path
):
    path = tmp_path / 'expectations.yaml'
    path.write_text(
        'version: 1\n'
        'expectations:\n'
        '- {flavor: m1.small, project: acme, min_hosts: 1}\n',
        'utf-8',
    )
    result = run('--config-file', kept, 'test', str(path))
    assert (result.code, result.out) == (1, '')
    assert f"The project name 'acme' is not unique; name one of {ACME}" in (
        result.err
    )
