# SPDX-License-Identifier: Apache-2.0
"""Matrix and report of a live cloud agree with where servers are scheduled."""

import json
import pathlib
import re
import tempfile

from base import host_of
from day_two import CommandTest

LICENSED = 'CUSTOM_LICENSED_WINDOWS'


class MatrixTest(CommandTest):
    """Nova, its scheduler and Placement are real."""

    def setUp(self):
        super().setUp()
        self.give_trait('host1', LICENSED)
        self.aggregate(
            'licensed', ['host1'], {f'trait:{LICENSED}': 'required'}
        )
        self.names = {}
        for extra_specs in ({}, {f'trait:{LICENSED}': 'required'}):
            number = self.flavor(extra_specs)
            self.names[self.admin_api.get_flavor(number)['name']] = number

    def reached(self, document):
        """Return the hosts that each flavor may go to."""
        return {
            row['flavor']: {
                host
                for column, verdict in zip(
                    document['columns'], row['verdicts'], strict=True
                )
                for host in column['hosts']
                if verdict == 'yes'
            }
            for row in document['rows']
        }

    def test_servers_land_where_the_matrix_says(self):
        flavors = list(self.names)
        result = self.run_command(
            'matrix',
            'list',
            *(f'--flavor={one}' for one in flavors),
            '-f',
            'json',
        )
        assert result.code == 0, result.err
        reached = self.reached(result.document)
        assert sorted(map(sorted, reached.values())) == [['host1'], ['host2']]
        for flavor, hosts in reached.items():
            server = self.boot(self.names[flavor])
            assert {host_of(server)} == hosts

    def test_the_report_agrees_with_the_matrix(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'page.html'
            result = self.run_command(
                'report', 'save', '--servers', '--output', str(path)
            )
            assert (result.code, result.out) == (0, f'Wrote {path}.\n'), (
                result.err
            )
            page = path.read_text('utf-8')
        cells = json.loads(re.search(r'id="cells">(.*?)</script>', page)[1])
        shown = {
            row['flavor']: cells['lines'][row['cells']]
            for row in cells['rows']
            # Others are only offered to be tried.
            if row['table']
        }
        groups = [group['hosts'] for group in cells['groups']]
        assert groups == [['host1'], ['host2']]
        assert sorted(
            [case == 0 for case in shown[flavor]] for flavor in self.names
        ) == [[False, True], [True, False]]
        assert f'trait:{LICENSED}' in page
