# SPDX-License-Identifier: Apache-2.0
"""Tools name projects, whose names are in the cloud file."""

from operator_tools import CLOUD
import pytest
import yaml

from isolate_aggregates_tools.testing import Rehearsal

# Its project_domain is of no use: the module hands it on in a wrong way in
# openstack.cloud 2.6.0, so that it fails with any cloud.
PLAYBOOK = """
- hosts: localhost
  gather_facts: false
  tasks:
    - openstack.cloud.compute_flavor_access:
        name: own
        project: teaching
"""
PROJECTS = {
    'domains': [
        {'id': 'default', 'name': 'Default'},
        {'id': 'd2', 'name': 'partners'},
    ],
    'projects': [
        {'id': 'b' * 32, 'name': 'teaching', 'domain': 'default'},
        {'id': 'c' * 32, 'name': 'research', 'domain': 'default'},
        {'id': 'd' * 32, 'name': 'research', 'domain': 'd2'},
    ],
}
BY_DOMAIN = 'openstack flavor set own --project research --project-domain'


@pytest.fixture
def changed(operator):
    """Return how a tool ends that gives a flavor to a project.

    With it: the projects that may use the flavor then, and what is not known.
    """

    def run(command, **keystone):
        cloud = yaml.safe_load(CLOUD.read_text())
        (operator / 'cloud.yaml').write_text(
            yaml.safe_dump({**cloud, **keystone})
        )
        (operator / 'access.yml').write_text(PLAYBOOK)
        with Rehearsal('cloud.yaml', clouds=['prod']) as rehearsal:
            status = rehearsal.run(command.split(), timeout=300)
            [own] = (f for f in rehearsal.cloud.flavors if f.name == 'own')
            return status, own.projects - {'a' * 32}, rehearsal.unknown

    return run


@pytest.mark.parametrize(
    ('command', 'key'),
    [
        ('ansible-playbook access.yml', 'b'),
        (f'{BY_DOMAIN} Default', 'c'),
        (f'{BY_DOMAIN} partners', 'd'),
    ],
)
def test_a_tool_names_a_project(changed, command, key):
    assert changed(command, keystone=PROJECTS) == (0, {key * 32}, [])


def test_a_name_that_the_file_has_not_is_not_known(changed):
    status, projects, unknown = changed('ansible-playbook access.yml')
    assert status
    assert not projects
    assert any('whether there is a project teaching' in x for x in unknown)
