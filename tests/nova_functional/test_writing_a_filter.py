# SPDX-License-Identifier: Apache-2.0
"""The filter of the page "Writing a filter" works in nova-scheduler."""

import configparser
import pathlib
import sys
import tomllib

from base import CloudTest
import fixtures
import pages
from stevedore import extension

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.filters import loading

PAGE = pages.SOURCE / 'contributor' / 'writing-a-filter.rst'
FILES = {b.caption: b.text for b in pages.blocks(PAGE) if b.caption}


class Installed(fixtures.Fixture):
    """The filter package of the page, installed.

    What pip makes of the packaging is made by hand here; that pip does make
    it is tested elsewhere.
    """

    def _setUp(self):  # noqa: N802
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (folder / 'drain_filter.py').write_text(FILES['drain_filter.py'])
        project = tomllib.loads(FILES['pyproject.toml'])['project']
        info = folder / f'drain_filter-{project["version"]}.dist-info'
        info.mkdir()
        (info / 'METADATA').write_text(
            f'Metadata-Version: 2.1\nName: {project["name"]}\n'
            f'Version: {project["version"]}\n'
        )
        parser = configparser.ConfigParser()
        parser.read_dict(project['entry-points'])
        with open(info / 'entry_points.txt', 'w') as stream:
            parser.write(stream)
        self.useFixture(
            fixtures.MonkeyPatch('sys.path', [str(folder), *sys.path])
        )
        # stevedore caches the installed entry points.
        self._forget()
        self.addCleanup(self._forget)

    def _forget(self):
        extension.ExtensionManager.ENTRY_POINT_CACHE.pop(
            loading.NAMESPACE, None
        )
        sys.modules.pop('drain_filter', None)


class WritingAFilterTest(CloudTest):
    """The last step of the page."""

    HOSTS = ('cn1', 'cn2')

    def setUp(self):
        self.useFixture(Installed())
        parser = configparser.ConfigParser(strict=False)
        parser.read_string(FILES['nova.conf'])
        ours = parser[ia_conf.GROUP]
        self.REQUEST_FILTERS = tuple(ours['request_filters'].split(','))
        self.SOURCE = ours['aggregate_source']
        self.AVAILABLE = parser['filter_scheduler']['available_filters']
        super().setUp()

    def test_servers_stay_off_a_host_that_is_being_emptied(self):
        line = (
            'Request filters of isolate-aggregates: isolate_aggregates (off '
            'by [scheduler] enable_isolated_aggregate_filtering), drain (on '
            'by [drain] enabled)'
        )
        assert line in ' '.join(PAGE.read_text('utf-8').split())
        assert line in self.stdlog.logger.output

        small = self.flavor()
        rack = self.aggregate('rack-1', ['cn1'])
        assert self.host_for(small) == 'cn1'
        self.tag(rack, {'drain': 'true'})
        assert self.host_for(small) == 'cn2'
        self.tag(rack, {'drain': None})
        assert self.host_for(small) == 'cn1'
