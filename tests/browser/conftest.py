# SPDX-License-Identifier: Apache-2.0
"""A real Chromium that opens pages; without one these tests are skipped."""

import dataclasses
import datetime
import pathlib
import shutil
from typing import Any

from cloud_fixtures import *  # noqa: F403
from oslo_config import cfg
import pytest

from isolate_aggregates import options as tools_options
from isolate_aggregates_tools.audit import AuditedCloud
from isolate_aggregates_tools.cloud.file import cloud_file
from isolate_aggregates_tools.commands import clouds
from isolate_aggregates_tools.report import page as report_page
from isolate_aggregates_tools.report.content import Content

ROOT = pathlib.Path(__file__).parents[2]
CHROMIUM = shutil.which('chromium') or shutil.which('chromium-browser')
# Disable background requests of the browser.
ARGUMENTS = (
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
)

NOW = datetime.datetime(2026, 11, 21, 13, 30, tzinfo=datetime.UTC)


@dataclasses.dataclass
class Opened:
    """An open page, with its console messages and requests."""

    page: Any
    messages: list[str] = dataclasses.field(default_factory=list)
    requests: list[str] = dataclasses.field(default_factory=list)

    def verdict(self, row, column):
        """Return the cell of a row and a column."""
        head = self.page.locator('#grid thead').get_by_title(
            column, exact=True
        )
        place = head.evaluate('(cell) => cell.cellIndex')
        return self.row(row).locator('th, td').nth(place)

    def row(self, name):
        """Return a row of the matrix."""
        return self.page.locator('#grid tr').filter(
            has=self.page.get_by_title(name, exact=True)
        )

    def fit_all(self):
        """Show all columns, of which only some would fit."""
        self.page.evaluate(
            """() => {
              const board = document.querySelector('.board');
              board.style.setProperty('--column', '2rem');
              dispatchEvent(new Event('resize'));
            }"""
        )

    def focused(self):
        """Return what has the focus."""
        return self.page.evaluate(
            """() => {
              const one = document.activeElement;
              // Of a radio button only its label can be seen.
              const seen = one.type === 'radio'
                ? one.nextElementSibling : one;
              return {
                tag: one.tagName, id: one.id, text: one.textContent.trim(),
                row: one.parentNode.rowIndex, column: one.cellIndex,
                name: one.name || '',
                outline: getComputedStyle(seen).outlineStyle,
              };
            }"""
        )

    def nodes(self):
        """Return how many elements the page has."""
        return self.page.evaluate("document.querySelectorAll('*').length")


@pytest.fixture(scope='session')
def browser():
    """A headless Chromium with a temporary profile."""
    if not CHROMIUM:
        pytest.skip('there is no Chromium; "apt-get install chromium"')
    sync_api = pytest.importorskip('playwright.sync_api')
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=CHROMIUM, args=list(ARGUMENTS)
        )
        yield chromium
        chromium.close()


@pytest.fixture
def open_report(browser, tmp_path):
    """Write the report of a cloud and open it."""
    contexts = []

    def write_and_open(
        cloud,
        calendar=None,
        images=(),
        others=None,
        effect=None,
        plan=None,
        **options,
    ):
        path = tmp_path / 'page.html'
        content = content_of(cloud, images, others)
        report_page.write(
            dataclasses.replace(
                content, calendar=calendar, effect=effect, plan=plan
            ),
            path,
        )
        window = {'width': 1440, 'height': 900}
        context = browser.new_context(**{'viewport': window, **options})
        contexts.append(context)
        opened = Opened(context.new_page())
        opened.page.on('console', lambda m: opened.messages.append(m.text))
        opened.page.on('pageerror', lambda e: opened.messages.append(str(e)))
        opened.page.on('request', lambda r: opened.requests.append(r.url))
        opened.page.goto(path.as_uri())
        return opened

    yield write_and_open
    for context in contexts:
        context.close()


def content_of(cloud, images=(), others=None):
    """Return what a page about a cloud, or an example, shows."""
    conf = cfg.ConfigOpts()
    tools_options.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    if isinstance(cloud, str):
        cloud = cloud_file.load(ROOT / 'examples' / f'{cloud}.yaml')
        clouds.apply_settings(conf, cloud)
    else:
        conf.set_override(
            'enable_isolated_aggregate_filtering', True, 'scheduler'
        )
    audited_cloud = AuditedCloud.of(cloud, conf)
    return Content.of(audited_cloud, images, None, NOW, others=others)
