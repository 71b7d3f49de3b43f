# SPDX-License-Identifier: Apache-2.0
"""The capacity for reservations on the report page: chart and text."""

import datetime
import os
import pathlib

import pytest
from test_report_page import HOSTILE, POOR_CONTRAST

from isolate_aggregates_reservations.plan import FreePeriod
from isolate_aggregates_reservations.views import Calendar, HostCalendar

START = datetime.datetime(2027, 3, 1, 12, tzinfo=datetime.UTC)
DAY = datetime.timedelta(days=1)
CAPACITY = {'MEMORY_MB': 4096, 'VCPU': 10}


def period(start, end, slots, vcpus):
    free = {'MEMORY_MB': max(0, 4096 - 64 * slots), 'VCPU': vcpus}
    return FreePeriod(START + start * DAY, START + end * DAY, slots, free)


def host(name, *periods, obstacle=None):
    return HostCalendar(name, obstacle, CAPACITY, periods)


BUSY = host(
    'busy', period(0, 2, 0, 10), period(2, 6, 1, 6), period(6, 8, 1234, 0)
)
FREE = host('free', period(0, 8, 0, 10))
GPUS = HostCalendar(
    'gpus',
    None,
    {'VGPU': 4},
    [FreePeriod(START, START + 8 * DAY, 1, {'VGPU': 3})],
)
DOWN = host('down', obstacle='is down')


def calendar(*hosts):
    return Calendar(START, START + 8 * DAY, hosts or (BUSY, FREE, DOWN))


@pytest.fixture
def report(open_report):
    return open_report('campus', calendar())


def bars(report, name):
    return report.page.locator('#rooms li').filter(has_text=name).locator('g')


def detail(report):
    return report.page.locator('#room-detail').inner_text()


MIDDLE = (
    'busy, 03 Mar 2027, 12:00 to 07 Mar 2027, 12:00 UTC: 1 slot, free '
    '3.938 GiB memory, 6 VCPU'
)


def test_a_bar_shows_duration_by_width_and_usage_by_height(report):
    def part(number, which):
        box = bars(report, 'busy').nth(number).locator(which).bounding_box()
        return box['x'], box['width'], box['height']

    start, width, height = part(0, '.rail')
    whole = 4 * width
    assert part(1, '.rail') == pytest.approx(
        (start + whole / 4, whole / 2, height), abs=1
    )
    assert [part(n, '.fill')[2] / height for n in range(3)] == pytest.approx(
        [0, 0.4, 1], abs=0.02
    )
    assert bars(report, 'busy').locator('.full').count() == 1
    assert bars(report, 'down').locator('.shut').count() == 1
    assert report.page.locator('#room-marks time').all_inner_texts() == [
        f'0{day} Mar 2027, 12:00' for day in (1, 3, 5, 7, 9)
    ]
    assert report.messages == []
    assert report.requests == [report.page.url]


def test_hovering_shows_the_details(report):
    hint = detail(report)
    bars(report, 'busy').nth(1).hover()
    assert detail(report) == MIDDLE
    report.page.locator('h1').hover()
    assert detail(report) == hint
    bars(report, 'busy').nth(2).click()
    report.page.locator('h1').hover()
    assert '1,234 slots, free' in detail(report)


@pytest.mark.smoke
def test_keyboard_focus_shows_the_details(report):
    page = report.page
    stops = page.locator('#rooms [tabindex="0"]')
    assert stops.count() == 1
    stops.focus()
    for key, start in (
        ('ArrowRight', 'busy, 03 Mar'),
        ('ArrowRight', 'busy, 07 Mar'),
        ('ArrowRight', 'busy, 07 Mar'),
        ('ArrowLeft', 'busy, 03 Mar'),
        ('ArrowDown', 'free, 01 Mar'),
        ('ArrowDown', 'down is down'),
        ('ArrowDown', 'down is down'),
        ('ArrowUp', 'free, 01 Mar'),
        ('ArrowUp', 'busy, 01 Mar'),
        ('End', 'busy, 07 Mar'),
        ('Home', 'busy, 01 Mar'),
    ):
        page.keyboard.press(key)
        assert detail(report).startswith(start)
        assert stops.count() == 1
        assert detail(report) == page.evaluate(
            "document.activeElement.getAttribute('aria-label')"
        )
    # What has the focus can be seen.
    width = page.evaluate(
        "getComputedStyle(document.activeElement.querySelector('.edge'))"
        '.strokeWidth'
    )
    assert width == '3px'


def test_details_of_a_host_list_only_its_resources(open_report):
    report = open_report('campus', calendar(BUSY, GPUS))
    bars(report, 'gpus').hover()
    assert detail(report).endswith('UTC: 1 slot, free 3 VGPU')


def test_up_and_down_keep_the_time(open_report):
    other = host('other', period(0, 6, 2, 2), period(6, 8, 0, 10))
    report = open_report('campus', calendar(BUSY, other))
    report.page.locator('#rooms [tabindex="0"]').focus()
    for key in ('End', 'ArrowDown'):
        report.page.keyboard.press(key)
    assert detail(report).startswith('other, 07 Mar')


def test_bars_have_accessible_names_and_a_table(report):
    page = report.page
    assert page.get_by_role('img', name=MIDDLE, exact=True).count() == 1
    assert page.get_by_role('group', name='busy').count() == 1
    page.get_by_text('As a table').click()
    rows = page.locator('#room-rows tr')
    # The table is made after it was opened.
    rows.first.wait_for()
    assert [
        row.locator('th, td').all_inner_texts() for row in rows.all()
    ] == [
        [
            'busy', '01 Mar 2027, 12:00', '03 Mar 2027, 12:00', '0',
            '4 GiB memory, 10 VCPU',
        ],
        [
            'busy', '03 Mar 2027, 12:00', '07 Mar 2027, 12:00', '1',
            '3.938 GiB memory, 6 VCPU',
        ],
        [
            'busy', '07 Mar 2027, 12:00', '09 Mar 2027, 12:00', '1,234',
            '0 GiB memory, 0 VCPU',
        ],
        [
            'free', '01 Mar 2027, 12:00', '09 Mar 2027, 12:00', '0',
            '4 GiB memory, 10 VCPU',
        ],
        ['down', '', '', '', 'is down'],
    ]  # fmt: skip


def test_search_keeps_hosts_with_matching_names(report):
    names = report.page.locator('#rooms li span')
    report.page.get_by_label('Search').fill('BUS')
    assert names.all_inner_texts() == ['busy']
    report.page.get_by_label('Search').fill('<no such thing>')
    assert report.page.locator('#room-none').is_visible()
    assert report.messages == []


def test_a_page_without_a_calendar_has_no_calendar_section(open_report):
    report = open_report('campus')
    assert report.page.locator('#calendar').count() == 0
    assert report.page.get_by_role('link', name='Reservations').count() == 0


def test_many_hosts_are_paged(open_report):
    many = [host(f'host-{n:04}', period(0, 8, 0, 10)) for n in range(1000)]
    report = open_report('campus', calendar(*many))
    page = report.page
    names = page.locator('#rooms li span')
    assert names.count() == 40
    assert page.locator('#room-shown').inner_text() == 'hosts 1 to 40 of 1,000'
    page.get_by_role('button', name='Hosts after').click()
    assert names.first.inner_text() == 'host-0040'
    assert report.nodes() < 8000


def test_hostile_names_are_shown_as_text(open_report):
    report = open_report(
        'campus',
        calendar(
            host(HOSTILE, period(0, 8, 0, 10)),
            host('b', obstacle=HOSTILE),
        ),
    )
    report.page.get_by_text('As a table').click()
    bars(report, HOSTILE).first.hover()
    assert detail(report).startswith(HOSTILE)
    assert report.page.title() == 'Isolation report'
    assert report.page.locator('img').count() == 0
    assert report.messages == []


@pytest.mark.parametrize('scheme', ['light', 'dark'])
@pytest.mark.parametrize('width', [1280, 390])
def test_every_text_has_enough_contrast(open_report, scheme, width):
    viewport = {'width': width, 'height': 800}
    report = open_report(
        'campus', calendar(), color_scheme=scheme, viewport=viewport
    )
    report.page.get_by_text('As a table').click()
    assert report.page.evaluate(POOR_CONTRAST) == []
    across = report.page.evaluate('document.documentElement.scrollWidth')
    assert across == width


@pytest.mark.parametrize('scheme', ['light', 'dark'])
def test_axe_finds_nothing(open_report, scheme):
    source = os.environ.get('AXE_CORE')
    if not source:
        pytest.skip('AXE_CORE does not name an axe.min.js of axe-core')
    report = open_report('campus', calendar(), color_scheme=scheme)
    report.page.get_by_text('As a table').click()
    report.page.evaluate(pathlib.Path(source).read_text('utf-8'))
    axe = report.page.evaluate('axe.run()')
    assert [
        (rule['id'], [node['html'] for node in rule['nodes']])
        for rule in axe['violations']
    ] == []
