# SPDX-License-Identifier: Apache-2.0
"""Projects are named on the command line, by id or by name."""

from collections.abc import Callable
import dataclasses
import json
from typing import Any

from fake_projects import ACME, OTHER, SALES, FakeProjects
from live_example import ISOLATE, Live
import pytest
import requests_mock

Run = Callable[..., Any]


@pytest.fixture
def kept(
    in_environment: None,
    live: Live,
    http: requests_mock.Mocker,
    config: Callable[[str], str],
) -> str:
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


@pytest.mark.parametrize(
    ('command', 'found'),
    [
        pytest.param(('acme', '--project-domain', 'sales'), 2, id='name'),
        pytest.param((OTHER,), 2, id='id'),
        pytest.param(('acme', '--project-domain', 'Default'), 1, id='other'),
        pytest.param(('Lab',), 1, id='another name'),
    ],
)
@pytest.mark.parametrize('program', ['isolate-aggregates', 'openstack'])
def test_a_project_can_be_given_by_name(
    run: Run,
    openstack: Run,
    kept: str,
    program: str,
    command: tuple[str, ...],
    found: int,
) -> None:
    ask = ('-f', 'json', '--flavor', 'm1.small', '--project', *command)
    if program == 'openstack':
        option = ('--os-isolation-config-file', kept)
        result = openstack(*option, 'isolation', 'candidate', 'list', *ask)
    else:
        result = run('--config-file', kept, 'candidates', *ask)
    assert (result.code, result.err) == (0, '')
    hosts = [host['name'] for host in json.loads(result.out)['hosts']]
    assert hosts == ['linux-1', 'linux-2'][-found:]


def test_a_name_in_several_domains_is_refused_with_its_ids(
    run: Run, kept: str
) -> None:
    result = run(
        *('--config-file', kept, 'query', '--flavor', 'm1.small'),
        *('--project', 'acme'),
    )
    assert (result.code, result.out) == (1, '')
    assert result.err == (
        f"The project name 'acme' is not unique; name one of {ACME} (domain "
        f'default), {OTHER} (domain {SALES}) instead.\n'
    )
