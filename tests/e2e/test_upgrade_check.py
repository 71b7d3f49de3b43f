# SPDX-License-Identifier: Apache-2.0
"""The upgrade check exits with 0, 1 or 2 in a running cloud."""

import dataclasses
import pathlib
import subprocess

from control_plane.settings import program
import pytest

TAG = {'trait:CUSTOM_UPGRADE_CHECK': 'required'}
CHECKS = (
    'Nova', 'Start', 'Names in the configuration', 'Registration',
    'Request filters', 'Aggregate source', 'Switched-off filters', 'Placement',
    'Query limit', 'Query length', 'Records of servers',
)  # fmt: skip
# nova-scheduler reads Nova's API with its credentials for Placement.
API = '[isolate_aggregates]\naggregate_source = novaclient\n'
SOURCES = {
    'nova': '[isolate_aggregates]\naggregate_source = nova\n',
    'novaclient': f'{API}auth_section = placement\n',
}


@dataclasses.dataclass
class Checked:
    """The output of the check.

    :param text: On one line, without the frame of the table.
    """

    code: int
    text: str


@pytest.fixture
def check(plane, tmp_path):
    """Run the check with the nova.conf of the scheduler, and more options."""
    etc = plane.settings.etc / 'nova'

    def run(options):
        more = pathlib.Path(tmp_path / 'more.conf')
        more.write_text(options)
        result = subprocess.run(
            [
                program('isolate-aggregates-status'),
                f'--config-file={etc}/nova.conf',
                f'--config-file={etc}/nova-scheduler.conf',
                f'--config-dir={etc}/nova.conf.d',
                f'--config-file={more}',
                'upgrade',
                'check',
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert 'Traceback' not in result.stdout + result.stderr, result.stderr
        text = ' '.join(result.stdout.replace('|', ' ').split())
        # A check that breaks down leaves out those behind it. Those with the
        # same cause are named by the first of them.
        assert [one for one in CHECKS if one not in text] == []
        return Checked(result.returncode, text)

    return run


@pytest.mark.parametrize('source', SOURCES)
def test_a_configured_scheduler_passes(check, source):
    checked = check(SOURCES[source])
    assert checked.code == 0, checked.text


@pytest.mark.parametrize('source', SOURCES)
def test_tags_of_a_disabled_filter_are_a_warning(check, cloud, source):
    cloud.aggregate('tagged', ('host1',), TAG)
    checked = check(
        '[scheduler]\nenable_isolated_aggregate_filtering = false\n'
        + SOURCES[source]
    )
    assert checked.code == 1, checked.text
    assert 'the tags for the request filter isolate_aggr' in checked.text


def test_a_wrong_password_is_a_failure(check, plane):
    url = plane.settings.url('keystone')
    checked = check(
        f'{API}auth_type = v3password\nauth_url = {url}/v3\n'
        'username = nova\npassword = wrong\nuser_domain_id = default\n'
        'project_name = service\nproject_domain_id = default\n'
    )
    assert checked.code == 2, checked.text
    assert 'does not accept the credentials' in checked.text
