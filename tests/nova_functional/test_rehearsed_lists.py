# SPDX-License-Identifier: Apache-2.0
"""What a rehearsal tells of hypervisors and server groups, a real Nova does.

The cloud is what ``snapshot save`` reads of the real one.
"""

import pathlib
import tempfile

from base import IMAGE
from both_novas import BothNovasTest
import pytest

from isolate_aggregates_tools.cloud.file import cloud_file
from isolate_aggregates_tools.rehearse.exchange import Request

# Each has other fields, or none of them.
MINORS = (1, 12, 13, 27, 28, 33, 52, 53, 63, 64, 87, 88, 96)
# A cloud file does not have these; the tool gets empty ones.
NOT_HELD = {
    *('hypervisor_type', 'hypervisor_version', 'host_ip', 'cpu_info'),
    *('current_workload', 'disk_available_least', 'uptime'),
}


@pytest.mark.slow
class RehearsedListsTest(BothNovasTest):
    """A cloud with a server on one of its hosts, and one in a group."""

    HOSTS = ('host1', 'host2', 'host3')
    OCCUPIED = ('host1',)

    def setUp(self):
        super().setUp()
        self.group = self.admin_api.post_server_groups(
            {'name': 'apart', 'policy': 'anti-affinity'}
        )
        made = self._build_server(image_uuid=IMAGE, networks='none')
        hints = {'group': self.group['id']}
        made = self.admin_api.post_server(
            {
                'server': {**made, 'host': 'host2'},
                'os:scheduler_hints': hints,
            }
        )
        self._wait_for_state_change(made, 'ACTIVE')
        # The hosts report what their servers use.
        self._run_periodics()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'cloud.yaml'
            saved = self.run_command('snapshot', 'save', '--output', str(path))
            assert saved.code == 0, saved.err
            self.hold(cloud_file.load(path))

    def both(self, path, minor, **query):
        """Return the status and the document of the real and the other."""
        self.admin_api.microversion = f'2.{minor}'
        words = '&'.join(f'{key}={value}' for key, value in query.items())
        real = self.admin_api.api_request(f'{path}?{words}', method='GET')
        asked = Request('GET', path, query, None, minor, 'http://nova')
        answer = self.world.answer('nova', self.rehearsed.answer, asked)
        assert answer.status == real.status_code, (path, minor, answer)
        return real, answer

    def test_hypervisors(self):
        for minor in MINORS:
            for path in ('/os-hypervisors', '/os-hypervisors/detail'):
                real, answer = self.both(path, minor)
                lists = (
                    {
                        each['hypervisor_hostname']: told(each, minor)
                        for each in document['hypervisors']
                    }
                    for document in (real.json(), answer.document)
                )
                expected, found = lists
                assert expected, (path, minor)
                assert found == expected, (path, minor)
        assert not self.world.unknown

    def test_their_sums(self):
        for minor in (1, 87, 88, 96):
            real, answer = self.both('/os-hypervisors/statistics', minor)
            if real.status_code == 200:
                expected, found = (
                    told(document['hypervisor_statistics'], minor)
                    for document in (real.json(), answer.document)
                )
                assert found == expected, minor
                assert found['count'] == len(self.HOSTS)

    def test_server_groups(self):
        for minor in MINORS:
            real, answer = self.both(
                '/os-server-groups', minor, all_projects='True'
            )
            [expected], [found] = (
                document['server_groups']
                for document in (real.json(), answer.document)
            )
            assert found.keys() == expected.keys(), minor
            for document in (expected, found):
                assert document.pop('name') in ('apart', '')
                document.pop('user_id', None)
            assert found == expected, minor


def told(document, minor):
    """Return what is compared: without uuids that a cloud file has not."""
    found = {
        key: None if key in NOT_HELD else value
        for key, value in document.items()
    }
    if minor < 53:
        # Numbers of the database.
        found['id'] = 'id' in found and type(found['id']).__name__
    if service := found.get('service'):
        found['service'] = {**service, 'id': type(service['id']).__name__}
    return found
