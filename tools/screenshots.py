# SPDX-License-Identifier: Apache-2.0
"""Takes the screenshots of the report for the documentation.

Run it in the root of a clone, after a change of how the report looks. It wants
a Chromium, and Pillow to make the pictures small:

    .venv/bin/pip install pillow
    .venv/bin/python tools/screenshots.py
"""

import datetime
import os
import pathlib
import shutil
import tempfile
from typing import Any

from oslo_config import cfg
from PIL import Image
from playwright.sync_api import sync_playwright

from isolate_aggregates import options as tools_options
from isolate_aggregates_tools.audit import AuditedCloud
from isolate_aggregates_tools.cloud.file import cloud_file
from isolate_aggregates_tools.commands import clouds
from isolate_aggregates_tools.report import page as report_page
from isolate_aggregates_tools.report.content import Content

ROOT = pathlib.Path(__file__).parents[1]
IMAGES = ROOT / 'doc' / 'source' / 'images'
EXAMPLE = 'examples/campus.yaml'
# Constant, or every screenshot would change in each run.
NOW = datetime.datetime(2026, 11, 21, 9, 0, tzinfo=datetime.UTC)

WINDOW = {'width': 1280, 'height': 900}
PHONE = {'width': 390, 'height': 844}


def main() -> None:
    """Write the report of the example and take the screenshots."""
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as play:
        path = pathlib.Path(directory) / 'page.html'
        report_page.write(content(), path)
        browser = play.chromium.launch(
            executable_path=shutil.which('chromium'),
            args=['--no-sandbox', '--disable-gpu'],
        )

        def opened(**options: Any) -> Any:
            page = browser.new_context(**options).new_page()
            page.goto(path.as_uri())
            return page

        page = opened(viewport=WINDOW)
        take(page, 'report')
        page.locator('#grid td[aria-label="no"]').nth(4).click()
        page.locator('#matrix').evaluate('(one) => one.scrollIntoView()')
        take(page, 'report-matrix')
        page = opened(viewport=WINDOW, color_scheme='dark')
        page.locator('#locks').evaluate('(one) => one.scrollIntoView()')
        take(page, 'report-dark')
        take(opened(viewport=PHONE), 'report-phone')
        browser.close()


def take(page: Any, name: str) -> None:
    """Take a screenshot of the window, with few colours."""
    path = IMAGES / f'{name}.png'
    page.screenshot(path=path)
    with Image.open(path) as picture:
        few = picture.convert('RGB').quantize(256, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


def content() -> Content:
    """Return the contents of the example's report."""
    conf = cfg.ConfigOpts()
    tools_options.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    cloud = cloud_file.load(EXAMPLE)
    clouds.apply_settings(conf, cloud)
    return Content.of(AuditedCloud.of(cloud, conf), (), None, NOW)


if __name__ == '__main__':
    main()
