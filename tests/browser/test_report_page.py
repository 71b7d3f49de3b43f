# SPDX-License-Identifier: Apache-2.0
"""The report in a real browser: it loads, explains, filters, and is kind."""

import dataclasses
import os
import pathlib
import re

from oslo_config import cfg
import pytest

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import options as tools_options
from isolate_aggregates_tools.cloud import changes
from isolate_aggregates_tools.cloud.file import cloud_file
from isolate_aggregates_tools.documents import content
from isolate_aggregates_tools.effect import effect, shown
from isolate_aggregates_tools.report import page as report_page
from isolate_aggregates_tools.room.plan import Planner
from isolate_aggregates_tools.room.shown import plan_document
from isolate_aggregates_tools.room.task import Task
from isolate_aggregates_tools.testing import (
    make_aggregate,
    make_compute_node,
    make_flavor,
    make_image,
    make_snapshot,
)

HOSTILE = '</script><script>document.title="owned"</script><img src=x>'

# The contrast of each visible text with what is behind it, where it is less
# than the 4.5 that WCAG 2.2 asks for (success criterion 1.4.3).
POOR_CONTRAST = """() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => {
    const [R, G, B] = [r, g, b].map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * R + 0.7152 * G + 0.0722 * B;
  };
  const behind = (one) => {
    for (let up = one; up; up = up.parentElement) {
      const color = rgb(getComputedStyle(up).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll('body *')].filter((one) =>
    one.checkVisibility({ visibilityProperty: true, opacityProperty: true }) &&
    !one.disabled &&
    [...one.childNodes].some((n) => n.nodeType === 3 && n.data.trim())
  ).map((one) => {
    const [a, b] = [rgb(getComputedStyle(one).color), behind(one)]
      .map(luminance).sort((x, y) => y - x);
    return [(a + 0.05) / (b + 0.05), one.outerHTML.slice(0, 80)];
  }).filter(([contrast]) => contrast < 4.5);
}"""


def open_cell(report, row, column):
    report.verdict(row, column).click()
    return report.page.locator('#reason').inner_text()


def tab_stops(report):
    """Press Tab until the focus has left the page.

    In the matrix the cell is opened, so that what is in the panel counts too.
    """
    stops = []
    while True:
        report.page.keyboard.press('Tab')
        focused = report.focused()
        if focused['tag'] == 'BODY' or len(stops) > 100:
            return stops
        stops.append(focused)
        if focused['tag'] == 'TD':
            report.page.keyboard.press('Enter')


def big_cloud():
    """Return 2,000 hosts in 60 locked aggregates, and 50 flavors."""
    hosts = [f'host-{number:04}' for number in range(2000)]
    keys = [{f'trait:CUSTOM_T{n}': 'required'} for n in range(60)]
    return make_snapshot(
        [
            make_aggregate(f'agg-{n}', key, hosts[n * 30 : n * 30 + 30])
            for n, key in enumerate(keys)
        ],
        [
            make_compute_node(host, traits=[f'CUSTOM_T{number // 30}'])
            for number, host in enumerate(hosts)
        ],
        flavors=[
            make_flavor(f'flavor-{n:02}', keys[n] if n % 2 else {})
            for n in range(50)
        ],
    )


# Loading.


@pytest.mark.smoke
@pytest.mark.parametrize('example', ['campus', 'no-valid-host'])
def test_the_page_loads_without_errors_and_requests(open_report, example):
    report = open_report(example)
    report.verdict('win.large', 'win-2' if example != 'campus' else 'sec-1')
    for view in ('lock', 'aggregate', 'host', 'alike'):
        report.page.locator(f'input[value="{view}"]').check(force=True)
    report.page.locator('#grid td').first.click()
    assert report.messages == []
    assert report.requests == [report.page.url]


def test_what_is_packed_of_a_large_cloud_is_shown(open_report, monkeypatch):
    plain = open_report('campus')
    monkeypatch.setattr(report_page, '_LARGE', 0)
    packed = open_report('campus')
    packed.page.wait_for_selector('html.js')
    assert packed.page.locator('main').inner_text() == (
        plain.page.locator('main').inner_text()
    )
    assert packed.messages == []
    assert packed.requests == [packed.page.url]


@pytest.mark.smoke
def test_the_content_security_policy_forbids_loading_anything(open_report):
    report = open_report('campus')
    failed = report.page.evaluate(
        """async () => {
          try { await fetch('https://example.org/'); return 'loaded'; }
          catch (error) { return error.name; }
        }"""
    )
    assert failed == 'TypeError'
    assert any('Content Security Policy' in m for m in report.messages)


def test_the_page_of_an_empty_cloud_loads(open_report):
    report = open_report(make_snapshot())
    assert report.messages == []
    assert report.page.locator('#none').inner_text() == 'There are no flavors.'
    assert report.page.get_by_text('No aggregate is locked.').is_visible()


# What is wrong.


@pytest.mark.smoke
@pytest.mark.parametrize(('width', 'height'), [(1280, 900), (390, 844)])
def test_the_first_screen_says_what_is_wrong_and_how_to_repair_it(
    open_report, width, height
):
    for cloud in ('campus', big_cloud()):
        page = open_report(
            cloud, viewport={'width': width, 'height': height}
        ).page
        finding = page.locator('.finding').first
        repair = finding.locator('.repair').first.bounding_box()
        assert finding.bounding_box()['y'] < 350
        assert repair['y'] + repair['height'] < height
        below = page.locator('#matrix').bounding_box()['y']
        assert below > page.locator('#findings').bounding_box()['y']


def test_counters_lead_to_what_they_count(open_report):
    page = open_report('campus').page
    page.get_by_label('Search').fill('gpu')

    def follow(name):
        page.get_by_role('link', name=name, exact=True).click()
        return page.evaluate('location.hash')

    assert follow('Errors 1') == '#findings'
    assert page.locator('.finding:visible .badge').all_inner_texts() == [
        'error'
    ]
    assert page.get_by_label('Search').input_value() == ''
    assert follow('Infos 2') == '#findings'
    assert page.locator('.finding:visible').count() == 2
    assert follow('Hosts 19') == '#matrix'
    assert page.locator('input[value="host"]').is_checked()
    assert follow('Aggregates 8') == '#matrix'
    assert page.locator('input[value="aggregate"]').is_checked()
    assert follow('Flavors 12') == '#matrix'
    rows = page.locator('#grid tbody th .name').all_inner_texts()
    assert rows == ['fpga.small']
    assert follow('Locks 5') == '#locks'
    assert page.locator('.card:visible').count() == 5


def test_a_counter_of_nothing_leads_nowhere(open_report):
    page = open_report(make_snapshot()).page
    assert page.get_by_text('Errors 0').is_visible()
    links = page.locator('.figures a').all_inner_texts()
    assert 'Warnings 1' in links
    assert not [text for text in links if text.endswith(' 0')]


CLIPBOARD = {'permissions': ['clipboard-read', 'clipboard-write']}


def pasted(page):
    """Return what the clipboard has."""
    return page.evaluate('navigator.clipboard.readText()')


@pytest.mark.smoke
@pytest.mark.parametrize('clipboard', ['clipboard', 'selection', 'neither'])
def test_a_command_is_copied_with_the_keyboard_and_announced(
    open_report, clipboard
):
    """Without HTTPS, browsers only copy what is selected."""
    report = open_report('campus', **CLIPBOARD)
    page = report.page
    page.evaluate("navigator.clipboard.writeText('before')")
    if clipboard != 'clipboard':
        page.evaluate('void (navigator.clipboard.writeText = null)')
    if clipboard == 'neither':
        page.evaluate('void (document.execCommand = () => false)')
    button = page.get_by_role('button', name='Copy openstack flavor unset')
    assert button.inner_text() == 'Copy'
    button.press('Enter')
    command = 'openstack flavor unset --property trait:CUSTOM_FPGA fpga.small'
    told = page.locator('#copied')
    assert told.get_attribute('role') == 'status'
    if clipboard == 'neither':
        expect_text(told, 'Not copied. The command is selected; press Ctrl+C.')
        assert button.inner_text() == 'Press Ctrl+C'
        assert page.evaluate('String(getSelection())') == command
        assert pasted(page) == 'before'
    else:
        expect_text(told, f'Copied: {command}')
        assert button.inner_text() == 'Copied'
        assert pasted(page) == command
    assert report.messages == []
    assert report.requests == [page.url]


def expect_text(locator, text):
    locator.get_by_text(text).or_(locator.filter(has_text=text)).wait_for(
        state='attached'
    )
    assert locator.text_content() == text


def test_only_whole_commands_can_be_copied(open_report):
    page = open_report('campus').page
    page.get_by_role('button', name='Show all 5 findings').click()
    repairs = page.locator('.repair')
    assert repairs.count() == 6
    assert page.locator('.copy:visible').count() == 5
    # This one has a placeholder.
    placeholder = repairs.filter(has_text=re.compile('AGGREGATE'))
    assert placeholder.count() == 1
    assert placeholder.locator('.copy').count() == 0


def test_the_search_box_stays_where_it_is(open_report):
    """What it finds above the matrix differs in height."""
    for width in (1280, 390):
        page = open_report(
            'campus', viewport={'width': width, 'height': 844}
        ).page
        box = page.get_by_label('Search')
        before = box.bounding_box()
        for words in ('gpu', '<no such thing>', 'win-2 m1.tiny', ''):
            box.fill(words)
            assert box.bounding_box() == before
        assert page.evaluate('scrollY') == 0


# The matrix.


def test_clicking_a_cell_shows_its_reason(open_report):
    report = open_report('campus')
    cell = report.verdict('m1.small', 'sec-1')
    assert cell.get_attribute('aria-label') == 'no'
    text = open_cell(report, 'm1.small', 'sec-1')
    assert 'm1.small on sec-1' in text
    assert 'may not use it' in text
    assert 'locked by trait CUSTOM_CONFIDENTIAL' in text
    assert 'filter isolate_aggregates' in text
    report.page.get_by_role('button', name='Close').click()
    panel = report.page.locator('#reason h3').inner_text()
    assert panel == 'm1.tiny, debian-12, No project'


def test_a_reason_names_the_aggregates_of_the_hosts_of_its_column(open_report):
    racks = [
        make_aggregate(
            f'rack-{n}', {'trait:CUSTOM_X': 'required'}, [f'host-{n}']
        )
        for n in range(3)
    ]
    nodes = [make_compute_node(f'host-{n}') for n in range(3)]
    report = open_report(
        make_snapshot(racks, nodes, flavors=[make_flavor('plain')])
    )
    [head] = report.page.locator('#grid thead .name').all_inner_texts()
    assert 'aggregates rack-0, rack-1, rack-2: locked by' in open_cell(
        report, 'plain', head
    )
    for view, name in (('aggregate', 'rack-1'), ('host', 'host-1')):
        report.page.locator(f'input[value="{view}"]').check(force=True)
        text = open_cell(report, 'plain', name)
        assert 'aggregate rack-1: locked by' in text
        assert answers(report).keys() == {name.replace('rack', 'host')}


@pytest.mark.smoke
def test_a_cell_gives_its_reason_to_the_keyboard(open_report):
    report = open_report('campus')
    keyboard = report.page.keyboard
    report.page.locator('#grid [tabindex="0"]').focus()
    for key in ('ArrowDown', 'ArrowDown', 'End', 'ArrowLeft', 'Enter'):
        keyboard.press(key)
    panel = report.page.locator('#reason')
    assert 'm1.medium on win-1 and 2 more' in panel.inner_text()
    assert 'CUSTOM_LICENSED_WINDOWS' in panel.inner_text()
    assert report.focused()['row'] == 3
    keyboard.press('Escape')
    assert 'm1.medium' not in panel.inner_text()
    assert (report.focused()['row'], report.focused()['column']) == (3, 7)


def test_the_panel_follows_the_keys(open_report):
    report = open_report('campus')
    report.verdict('m1.small', 'sec-1').click()
    report.page.keyboard.press('ArrowDown')
    panel = report.page.locator('#reason')
    assert 'm1.medium on sec-1' in panel.inner_text()
    report.page.keyboard.press('ArrowLeft')
    assert 'm1.medium on lease-1, lease-2' in panel.inner_text()


def test_arrow_keys_reach_every_cell_and_header(open_report):
    report = open_report('campus')
    report.fit_all()
    everything = report.page.evaluate(
        "[...document.querySelectorAll('#grid [tabindex]')]"
        '.map((c) => `${c.parentNode.rowIndex},${c.cellIndex}`)'
    )
    rows = report.page.locator('#grid tbody tr').count()
    columns = report.page.locator('#grid thead th').count() - 1
    report.page.locator('#grid [tabindex="0"]').focus()
    reached = set()

    def press(key):
        report.page.keyboard.press(key)
        focused = report.focused()
        reached.add(f'{focused["row"]},{focused["column"]}')

    press('ArrowUp')
    for row in range(rows + 1):
        for _ in range(columns + 1):
            press('ArrowLeft' if row % 2 else 'ArrowRight')
        press('ArrowDown')
    for _ in range(columns + 1):
        press('ArrowLeft')
    for _ in range(rows + 1):
        press('ArrowUp')
    assert reached == set(everything)


def test_only_one_cell_is_a_stop_of_the_tabulator(open_report):
    report = open_report('campus')
    report.verdict('m1.large', 'sec-1').click()
    stops = report.page.locator('#grid [tabindex="0"]')
    assert stops.count() == 1
    assert stops.evaluate('(cell) => cell.parentNode.rowIndex') == 4


def test_a_column_of_hosts_can_be_expanded(open_report):
    report = open_report('campus')
    heads = report.page.locator('#grid thead .name')
    report.page.get_by_title('gpus, 3 hosts').click()
    assert 'gpu-1, gpu-2, gpu-3' in report.page.locator('#reason').inner_text()
    report.page.get_by_role('button', name='Show each of these hosts').click()
    assert heads.all_inner_texts() == ['gpu-1', 'gpu-2', 'gpu-3']
    before = heads.all_inner_texts()
    report.page.get_by_role('button', name='Show all', exact=True).click()
    assert heads.count() > len(before)


@pytest.mark.parametrize(
    ('view', 'column', 'verdict'),
    [
        ('lock', 'trait:CUSTOM_GPU', 'yes, room for 3 more'),
        ('lock', '(no lock)', 'some, room for 4 more'),
        ('aggregate', 'rack-a', 'some, room for 6 more'),
        ('aggregate', 'windows', 'no'),
        ('host', 'rack-a-4', 'yes, room for 4 more'),
    ],
)
def test_columns_can_be_aggregates_or_hosts(
    open_report, view, column, verdict
):
    report = open_report('campus')
    report.fit_all()
    report.page.locator(f'input[value="{view}"]').check(force=True)
    cell = report.verdict('gpu.large', column)
    assert cell.get_attribute('aria-label') == verdict


def test_columns_are_named_after_the_aggregate_of_their_hosts(open_report):
    one, two = (f'trait:CUSTOM_{n}' for n in 'AB')
    hosts = {n: [f'{n}-{i}' for i in range(3)] for n in 'abc'}
    report = open_report(
        make_snapshot(
            [
                make_aggregate('whole', {one: 'required'}, hosts['a']),
                make_aggregate('left', {two: 'required'}, hosts['b'][:2]),
                make_aggregate('right', {two: 'required'}, hosts['b'][2:]),
                make_aggregate('few', {'trait:CUSTOM_C': 'required'}, ['e']),
                # It has hosts that are not alike.
                make_aggregate('rack', {}, [*hosts['c'], 'a-0']),
            ],
            [
                *(
                    make_compute_node(n, traits=['CUSTOM_A'])
                    for n in hosts['a']
                ),
                *(
                    make_compute_node(n, traits=['CUSTOM_B'])
                    for n in hosts['b']
                ),
                *(make_compute_node(n) for n in hosts['c']),
                make_compute_node('e'),
            ],
            flavors=[
                make_flavor('plain'),
                make_flavor('one', {one: 'required'}),
                make_flavor('two', {two: 'required'}),
                make_flavor('three', {'trait:CUSTOM_C': 'required'}),
            ],
        )
    )
    heads = report.page.locator('#grid thead .name')
    assert heads.all_inner_texts() == [
        # The flavor that is chosen at first may use these.
        '(no lock), 3 hosts',
        'whole, 3 hosts',
        'trait:CUSTOM_B, 3 hosts',
        'e',
    ]


# Search and filters.


def test_search_keeps_rows_with_matching_names(open_report):
    report = open_report('campus')
    page = report.page
    page.get_by_label('Search').fill('GPU')
    rows = page.locator('#grid tbody th .name')
    assert rows.all_inner_texts() == ['gpu.large']
    assert page.locator('#grid thead .name').all_inner_texts() == [
        'gpus, 3 hosts'
    ]
    assert page.locator('.card:visible h3').all_inner_texts() == [
        'trait:CUSTOM_GPU'
    ]
    locator = page.locator('.finding:visible')
    assert 'rack-a-4' in locator.all_inner_texts()[0]
    assert locator.count() == 1
    assert page.locator('#found').inner_text() == (
        '1 row, 1 column, 1 lock, 1 finding'
    )
    page.get_by_label('Search').fill('')
    assert rows.count() == 12


def test_search_takes_words_of_a_row_and_a_host(open_report):
    report = open_report('campus')
    report.page.get_by_label('Search').fill('win-2 m1.tiny')
    rows = report.page.locator('#grid tbody th .name')
    assert rows.all_inner_texts() == ['m1.tiny']
    assert report.page.locator('#grid thead .name').count() == 1
    text = report.page.locator('#reason').inner_text()
    assert 'm1.tiny on win-1 and 2 more' in text
    assert 'CUSTOM_LICENSED_WINDOWS' in text


def test_search_finds_hosts_inside_ranges(open_report):
    report = open_report(big_cloud())
    report.page.get_by_label('Search').fill('host-0021')
    [finding, *_] = report.page.locator('.finding:visible').all_inner_texts()
    assert 'host-0021' not in finding
    assert 'host-[0000-0029]' in finding


def test_each_section_says_that_search_found_nothing(open_report):
    report = open_report('campus')
    report.page.get_by_label('Search').fill('<no such thing>')
    for text in (
        'No row or column matches.',
        'No lock matches.',
        'No finding matches.',
    ):
        assert report.page.get_by_text(text).is_visible()
    assert report.page.locator('#found').inner_text() == (
        '0 rows, 0 columns, 0 locks, 0 findings'
    )
    report.page.get_by_label('Search').fill('')
    assert report.page.locator('.none:visible').count() == 0
    assert report.messages == []


def test_rows_can_be_limited_to_flavors_without_a_host(open_report):
    report = open_report('campus')
    report.page.locator('#rows').select_option('nowhere')
    rows = report.page.locator('#grid tbody th .name')
    assert rows.all_inner_texts() == ['fpga.small']
    report.page.locator('#rows').select_option('keyed')
    assert rows.all_inner_texts() == [
        'win.medium', 'win.large', 'gpu.large', 'secret.small', 'lease.medium'
    ]  # fmt: skip


def test_findings_can_be_filtered_by_severity(open_report):
    report = open_report('campus')
    report.page.locator('#severity').select_option('error')
    locator = report.page.locator('.finding:visible')
    assert locator.locator('.badge').all_inner_texts() == ['error']


def test_a_finding_has_its_kind_and_all_its_repairs(open_report):
    fpga = make_flavor('fpga.small', {'trait:CUSTOM_FPGA': 'required'})
    report = open_report(
        make_snapshot([], [make_compute_node('host-1')], flavors=[fpga])
    )
    report.page.get_by_label('Search').fill('no-host')
    [finding] = report.page.locator('.finding:visible').all()
    assert finding.locator('h3').inner_text().split() == [
        'warning', 'flavor', 'fpga.small', 'no-host'
    ]  # fmt: skip
    first, second = finding.locator('.repair').all_inner_texts()
    assert 'openstack flavor unset --property trait:CUSTOM_FPGA ' in first
    assert '\nlets flavor fpga.small use ' in first
    assert second.startswith('or: isolate-aggregates lock create AGGREGATE ')


def test_findings_with_the_same_repair_stand_together(open_report):
    locked = {'trait:CUSTOM_X': 'required'}
    names = [f'host-{n}' for n in range(7)]
    page = open_report(
        make_snapshot(
            [make_aggregate(f'of-{n}', locked, [n]) for n in names],
            [make_compute_node(n) for n in names],
            flavors=[make_flavor('one', locked)],
        )
    ).page
    group = page.locator('.finding').filter(has_text='trait-missing')
    assert group.count() == 1
    count = group.locator('h3').count()
    assert count >= 7
    assert group.locator('h3:visible').count() == 2
    assert group.get_by_text(f'{count - 2} more').is_visible()
    assert group.locator('.repair').count() == 1


def test_a_lock_names_the_flavors_that_may_use_its_hosts(open_report):
    page = open_report('campus').page
    cards = page.locator('.card').all_inner_texts()
    assert any('flavor gpu.large' in card for card in cards)
    # Only its project may use them.
    [owned] = [card for card in cards if 'filter_tenant_id' in card]
    assert f' in project {BIOLOGY}' in owned
    assert 'nobody' not in owned


def test_the_projects_that_aggregates_name_can_be_tried(open_report):
    page = open_report('campus').page
    options = page.locator('#try-project option').all_inner_texts()
    assert options == ['No project', BIOLOGY]


def test_hosts_without_a_lock_do_not_have_several(open_report):
    """Of some columns only a part of the hosts is locked."""
    opened = open_report(
        make_snapshot(
            [
                make_aggregate(
                    'gpus',
                    {'trait:CUSTOM_GPU': 'required'},
                    ['gpu-1', 'gpu-2'],
                ),
                make_aggregate(
                    'win', {'trait:CUSTOM_WIN': 'required'}, ['win']
                ),
                make_aggregate('half', {}, ['gpu-1', 'open']),
                make_aggregate('all', {}, ['gpu-1', 'win', 'open']),
                make_aggregate('locked', {}, ['gpu-1', 'win']),
            ],
            [
                make_compute_node(name)
                for name in ('gpu-1', 'gpu-2', 'win', 'open')
            ],
            flavors=[make_flavor('plain')],
        )
    )
    opened.page.get_by_role('radio', name='Aggregates').check(force=True)
    opened.fit_all()
    heads = opened.page.locator('#grid thead th[title]')
    locks = {
        head.get_attribute('title'): head.locator('.lock').all_inner_texts()
        for head in heads.all()
    }
    lock, other = 'trait:CUSTOM_GPU', 'trait:CUSTOM_WIN'
    assert locks == {
        'gpus': [lock],
        'win': [other],
        'half': [f'{lock} on some'],
        'all': [f'{lock}, {other} on some'],
        'locked': [f'{lock}, {other}'],
    }


# The colours of a warning on a light page: text, and behind it.
AMBER = ['rgb(122, 76, 0)', 'rgb(252, 240, 212)']


def test_a_full_host_is_amber_and_has_0_free(open_report):
    opened = open_report(
        make_snapshot(
            [],
            [
                make_compute_node('full', usages={'VCPU': 16}),
                make_compute_node('free'),
            ],
            flavors=[make_flavor('plain')],
        )
    )
    opened.page.get_by_label('Each host').check(force=True)
    full, free = (
        opened.verdict('plain', 'full'),
        opened.verdict('plain', 'free'),
    )
    assert full.inner_text() == '0 free'
    assert full.get_attribute('aria-label') == 'yes, 0 free'
    assert free.inner_text().startswith('✓')

    def color(locator):
        return locator.evaluate(
            """(one) => [getComputedStyle(one).color,
              getComputedStyle(one).backgroundColor]"""
        )

    assert color(free) == ['rgb(27, 99, 55)', 'rgb(224, 241, 229)']
    assert color(full) == AMBER
    # The request that is tried at first names the host apart.
    answers_ = opened.page.locator('#reason .answers li')
    assert answers_.all_inner_texts() == [
        '✓ 1 host: may be used\n\nfree',
        '0 free on 1 host: may be used, no room now\n\nfull',
    ]
    assert color(answers_.last) == AMBER
    assert '0 free: may use it, no room now' in open_cell(
        opened, 'plain', 'full'
    )
    assert color(opened.page.locator('#reason .verdict')) == AMBER
    assert color(opened.page.locator('.legend .full')) == AMBER


def test_similar_hosts_stand_below_their_lock(open_report):
    opened = open_report('campus')
    head = opened.page.locator('#grid thead').get_by_title('gpus, 3 hosts')
    assert head.locator('.lock').inner_text() == 'trait:CUSTOM_GPU'


def test_search_finds_the_hosts_of_an_aggregate_and_a_lock(open_report):
    opened = open_report('campus')
    for word in ('confidential', 'trait:CUSTOM_CONF'):
        opened.page.get_by_label('Search').fill(word)
        heads = opened.page.locator('#grid thead .name')
        assert heads.all_inner_texts() == ['sec-1']


# Sorting.


def test_rows_and_columns_are_sorted(open_report):
    report = open_report('campus')
    page = report.page
    rows = page.locator('#grid tbody th .name')
    heads = page.locator('#grid thead .name')
    given = rows.all_inner_texts()
    page.get_by_label('Sort').select_option('fewest')
    assert rows.all_inner_texts()[:3] == [
        'fpga.small', 'secret.small', 'nvme.large'
    ]  # fmt: skip
    page.get_by_label('Sort').select_option('most')
    assert rows.all_inner_texts()[-1] == 'fpga.small'
    page.get_by_label('Sort').select_option('name')
    assert rows.all_inner_texts() == sorted(given)
    page.get_by_label('Sort').select_option('given')
    assert rows.all_inner_texts() == given
    page.locator('input[value="aggregate"]').check(force=True)
    page.get_by_label('Sort').select_option('most')
    assert heads.all_inner_texts()[:2] == ['rack-b', 'rack-a']
    page.get_by_label('Sort').select_option('name')
    assert heads.all_inner_texts()[0] == 'biology'
    # As listed, but what the chosen request may use comes first.
    page.get_by_label('Sort').select_option('given')
    assert heads.all_inner_texts()[:3] == ['fast-disks', 'rack-a', 'rack-b']
    # A cell describes the row and the column that are shown.
    page.get_by_label('Sort').select_option('most')
    assert 'gpu.large on gpus' in open_cell(report, 'gpu.large', 'gpus')


def test_names_are_sorted_by_their_numbers(open_report):
    flavors = [make_flavor(f'f{n}') for n in (10, 9, 100)]
    report = open_report(
        make_snapshot([], [make_compute_node('a')], flavors=flavors)
    )
    report.page.get_by_label('Sort').select_option('name')
    assert report.page.locator('#grid tbody th .name').all_inner_texts() == [
        'f9', 'f10', 'f100'
    ]  # fmt: skip


def test_locks_and_findings_are_sorted(open_report):
    report = open_report('campus')
    page = report.page
    locks = page.locator('.card h3')
    given = locks.all_inner_texts()
    page.get_by_label('Sort').select_option('most')
    assert locks.all_inner_texts()[0] == 'trait:CUSTOM_LICENSED_WINDOWS'
    page.get_by_label('Sort').select_option('used')
    assert locks.all_inner_texts()[0] == 'trait:CUSTOM_GPU'
    page.get_by_label('Sort').select_option('given')
    assert locks.all_inner_texts() == given
    findings = page.locator('.finding h3 bdi')
    page.get_by_label('Sort').select_option('name')
    names = findings.all_inner_texts()
    assert names == sorted(names)


# Folding and paging.


@pytest.mark.parametrize('width', [1280, 390])
def test_many_locks_and_findings_are_paged(open_report, width):
    report = open_report(big_cloud(), viewport={'width': width, 'height': 800})
    page = report.page
    assert page.locator('.card').count() == 60
    assert page.locator('.card:visible').count() == 20
    assert page.locator('.finding:visible').count() == 3
    page.get_by_role('button', name=re.compile('Show all')).click()
    assert page.locator('.finding:visible').count() == 20
    page.get_by_role('button', name='Show fewer findings').click()
    assert page.locator('.finding:visible').count() == 3
    assert page.locator('#finding-pages').is_hidden()
    height = page.locator('#locks').bounding_box()['height']
    assert height < (1200 if width == 1280 else 2400)


def test_locks_can_be_paged_through(open_report):
    report = open_report(big_cloud())
    page = report.page
    names = page.locator('.card:visible h3')
    locator = page.locator('#locks-shown')
    assert locator.inner_text() == 'locks 1 to 20 of 60'
    before = names.all_inner_texts()
    page.get_by_role('button', name='Locks after').click()
    assert locator.inner_text() == 'locks 21 to 40 of 60'
    assert not set(before) & set(names.all_inner_texts())
    page.get_by_label('Sort').select_option('name')
    assert names.first.inner_text() == 'trait:CUSTOM_T0'
    page.get_by_role('button', name='Locks after').press('Enter')
    assert names.first.inner_text() == 'trait:CUSTOM_T20'
    page.get_by_label('Search').fill('CUSTOM_T59')
    assert names.all_inner_texts() == ['trait:CUSTOM_T59']
    assert page.locator('#lock-pages').is_hidden()
    assert report.messages == []


def test_locks_are_folded_and_unfolded(open_report):
    report = open_report(big_cloud())
    page = report.page
    facts = page.locator('.card .facts:visible')
    assert facts.count() == 0
    assert page.locator('.card:visible .note').first.inner_text() == (
        '30 hosts, 0 % in use'
    )
    page.get_by_role('button', name='Unfold all').click()
    assert facts.count() == 20
    page.get_by_role('button', name='Fold all').click()
    assert facts.count() == 0
    page.locator('.card > summary').first.press('Enter')
    assert facts.count() == 1
    page.get_by_role('button', name='Fold all').wait_for()


def test_a_few_locks_are_not_folded(open_report):
    report = open_report('campus')
    assert report.page.locator('.card .facts:visible').count() == 5


def test_the_page_is_complete_without_javascript(open_report):
    report = open_report(big_cloud(), java_script_enabled=False)
    page = report.page
    assert page.locator('.card:visible').count() == 60
    page.locator('.card > summary').last.click()
    assert page.locator('.card .facts:visible').count() == 1
    assert page.locator('.script:visible').count() == 0


# Trying a request.

BIOLOGY = '5f1c2e0b7a9d4c6e8b3a1d2c4e6f8a0b'
WINDOWS = make_image(
    'windows-2022', {'trait:CUSTOM_LICENSED_WINDOWS': 'required'}
)


def answers(report):
    """Return the answer and the reasons of each host in the panel."""
    found = {}
    for line in report.page.locator('#reason .answers li').all():
        more = line.locator('details p')
        hosts = more if more.count() else line.locator('.names')
        answer = line.get_attribute('class')
        for host in hosts.text_content().split(', '):
            found[host] = answer, line.text_content()
    return found


@pytest.mark.smoke
@pytest.mark.parametrize(
    ('example', 'answer'),
    [
        (
            'campus',
            'm1.tiny, debian-12, No project: may use 7 of 19 hosts, '
            'room for 1,240 more.',
        ),
        (
            'windows-licensing',
            'm1.small, windows-2022, No project: may use 2 of 5 hosts, '
            'room for 28 more.',
        ),
        (
            'no-valid-host',
            'win.large, windows-2022, No project: may use 1 of 5 hosts, '
            'no room now.',
        ),
    ],
)
def test_a_request_of_the_cloud_is_tried_at_first(
    open_report, example, answer
):
    page = open_report(example).page
    assert page.locator('#answer').inner_text() == answer
    assert page.locator('#reason .answers').first.is_visible()


def test_the_image_acts_on_the_matrix(open_report):
    report = open_report('windows-licensing')
    page = report.page
    assert page.locator('#grid tbody th .name').all_inner_texts() == [
        'm1.small',
        'm1.large',
        'win.small',
    ]
    assert page.locator('#try-image option').all_inner_texts() == [
        'No image',
        'windows-2022',
        'debian-12',
    ]
    page.locator('#try-flavor').select_option('m1.small')
    page.get_by_label('Each host').check(force=True)
    report.fit_all()
    tried, shown = {}, {}
    for image in ('windows-2022', 'debian-12', 'No image'):
        page.locator('#try-image').select_option(image)
        tried[image] = sorted(allowed(report))
        shown[image] = may_use(report, 'm1.small')
    assert (
        tried
        == shown
        == {
            'windows-2022': ['win-1', 'win-2'],
            'debian-12': ['linux-1', 'linux-2'],
            'No image': ['linux-1', 'linux-2'],
        }
    )


def may_use(report, flavor):
    """Return the columns that a row of the matrix may use."""
    heads = report.page.locator('#grid thead .name').all_inner_texts()
    cells = (
        report.row(flavor)
        .locator('td')
        .evaluate_all('(all) => all.map((cell) => cell.classList[0])')
    )
    return sorted(
        name
        for name, verdict in zip(heads, cells, strict=True)
        if verdict != 'no'
    )


def test_the_project_acts_on_the_matrix(open_report):
    report = open_report('campus')
    report.fit_all()
    assert 'bio-1' not in may_use(report, 'm1.small')
    report.page.locator('#try-project').select_option(BIOLOGY)
    assert 'bio-1' in may_use(report, 'm1.small')
    assert 'bio-1' not in may_use(report, 'gpu.large')


def heads_of(report):
    """Return the names of the columns that are shown."""
    return report.page.locator('#grid thead .name').all_inner_texts()


@pytest.mark.parametrize('width', [1280, 390])
def test_columns_that_the_request_may_use_come_first(open_report, width):
    report = open_report('campus', viewport={'width': width, 'height': 900})
    page = report.page
    assert report.focused()['tag'] == 'BODY'
    assert heads_of(report)[:3] == [
        'rack-a-1 and 3 more', 'rack-a-4', 'rack-b-1, rack-b-2'
    ]  # fmt: skip
    page.locator('#try-flavor').select_option('secret.small')
    assert heads_of(report)[0] == 'sec-1'
    page.locator('#try-image').select_option('windows-2022')
    page.locator('#try-flavor').select_option('m1.large')
    assert heads_of(report)[0] == 'win-1 and 2 more'
    chosen = page.locator('#grid th[aria-current="true"] .name')
    assert chosen.all_inner_texts() == ['m1.large']
    # What no row may use is last.
    page.locator('#try-image').select_option('debian-12')
    while page.get_by_role('button', name='Columns after').is_enabled():
        page.get_by_role('button', name='Columns after').click()
    assert {'bio-1', 'rack-b-4', 'win-4'} >= {*heads_of(report)[-2:]}


@pytest.mark.smoke
def test_a_row_says_that_its_only_check_is_not_on_the_screen(open_report):
    report = open_report('campus', viewport={'width': 1280, 'height': 900})
    page = report.page
    row = report.row('win.large')
    checks = row.locator('td:not(.no)')
    assert checks.count() == 0
    note = row.locator('.elsewhere')
    assert note.inner_text() == 'may use win-1 and 2 more →'
    # Those with a check, and those that may use no host, say nothing.
    assert report.row('m1.tiny').locator('.elsewhere').count() == 0
    assert report.row('fpga.small').locator('.elsewhere').count() == 0
    page.get_by_role('button', name='Columns after').click()
    assert checks.count() == 1
    assert note.count() == 0
    assert report.row('m1.tiny').locator('.elsewhere').inner_text() == (
        '← may use 3 columns'
    )
    page.get_by_role('button', name='Columns before').click()
    page.get_by_label('Search').fill('sec-1')
    assert page.locator('.elsewhere').count() == 0


@pytest.mark.parametrize('key', ['click', 'Enter'])
def test_a_flavor_brings_its_columns_to_the_front(open_report, key):
    report = open_report('campus', viewport={'width': 1280, 'height': 900})
    page = report.page
    row = report.row('win.large')
    if key == 'click':
        row.locator('.elsewhere').click()
    else:
        report.verdict('win.large', 'rack-a-4').click()
        page.keyboard.press('Home')
        page.keyboard.press('Enter')
    assert heads_of(report)[0] == 'win-1 and 2 more'
    assert row.locator('td').first.inner_text().startswith('✓')
    assert page.locator('#try-flavor').input_value() == 'win.large'
    assert page.locator('#answer').inner_text().startswith('win.large, ')
    assert '3 hosts: may be used' in page.locator('#reason').inner_text()
    assert report.focused()['column'] == 0
    assert report.focused()['text'].startswith('win.large')
    assert page.locator('#grid [tabindex="0"]').count() == 1


def test_heads_name_the_lock_of_their_hosts(open_report):
    report = open_report('campus')
    report.fit_all()
    page = report.page
    locks = {
        head.get_attribute('title'): (
            head.locator('.lock').get_attribute('title')
        )
        for head in page.locator('#grid thead th[title]').all()
    }
    assert locks['bio-1'] == f'filter_tenant_id={BIOLOGY}'
    assert locks['rack-b-4'] == '(no lock)'
    assert locks['win-4'] == 'trait:CUSTOM_LICENSED_WINDOWS'
    assert len(locks) == 10
    # An id is long.
    head = page.locator('#grid thead').get_by_title('bio-1', exact=True)
    assert head.locator('.lock').inner_text() == 'filter_tenant_id=5f1c2e0b…'


def allowed(report):
    """Return the hosts that may be used, by the panel."""
    return {
        host
        for host, (answer, _) in answers(report).items()
        if answer == 'yes'
    }


def test_a_cloud_with_many_images_offers_those_that_were_named(open_report):
    cloud = dataclasses.replace(
        big_cloud(), images=tuple(make_image(f'image-{n}') for n in range(40))
    )
    page = open_report(cloud, images=cloud.images[7:9]).page
    assert page.locator('#try-image option').all_inner_texts() == [
        'image-7',
        'image-8',
    ]


@pytest.mark.smoke
def test_a_request_is_tried(open_report):
    report = open_report('campus', others={'biology': BIOLOGY})
    page = report.page

    def choose(what, label):
        page.locator(f'#try-{what}').select_option(label)

    def told():
        return page.locator('#answer').inner_text()

    choose('flavor', 'm1.small')
    assert told() == (
        'm1.small, debian-12, No project: may use 7 of 19 hosts, '
        'room for 540 more.'
    )
    assert len(answers(report)) == 19
    assert 'rack-a-1' in allowed(report)
    answer, why = answers(report)['win-1']
    assert answer == 'no'
    assert 'CUSTOM_LICENSED_WINDOWS' in why
    assert 'filter isolate_aggregates' in why
    assert answers(report)['bio-1'][0] == 'no'
    choose('project', 'biology')
    assert told() == (
        'm1.small, debian-12, biology: may use 8 of 19 hosts, '
        'room for 564 more.'
    )
    assert 'bio-1' in allowed(report)
    choose('image', 'windows-2022')
    assert allowed(report) == {'win-1', 'win-2', 'win-3'}
    choose('flavor', 'fpga.small')
    assert allowed(report) == set()
    assert report.messages == []
    assert report.requests == [page.url]


def test_a_tried_request_agrees_with_the_matrix(open_report):
    report = open_report('campus', images=[make_image('debian'), WINDOWS])
    page = report.page
    page.locator('input[value="host"]').check(force=True)
    report.fit_all()
    flavors = page.locator('#try-flavor option').all_inner_texts()
    heads = page.locator('#grid thead .name').all_inner_texts()
    assert len(heads) == 19
    for flavor in flavors:
        for image in ('debian', 'windows-2022'):
            page.locator('#try-flavor').select_option(flavor)
            page.locator('#try-image').select_option(image)
            row = report.row(flavor)
            heads = page.locator('#grid thead .name').all_inner_texts()
            assert {
                host: answer.split()[0]
                for host, (answer, _) in answers(report).items()
            } == dict(
                zip(
                    heads,
                    row.locator('td').evaluate_all(
                        '(all) => all.map((td) => td.classList[0])'
                    ),
                    strict=True,
                )
            )


def test_a_request_is_tried_by_keyboard(open_report):
    report = open_report('campus')
    page = report.page
    page.locator('#try-flavor').focus()
    page.keyboard.press('ArrowDown')
    assert page.locator('#answer').inner_text().startswith('m1.small, ')


def test_answers_for_many_hosts_are_short(open_report):
    report = open_report(big_cloud())
    page = report.page
    page.locator('#try-flavor').select_option('flavor-01')
    panel = page.locator('#reason')
    assert len(allowed(report)) == 30
    assert 'host-0037 and 22 more' in panel.inner_text()
    assert panel.get_by_text('53 more reasons').is_visible()


# A link to a cell.


@pytest.mark.parametrize('view', ['alike', 'lock', 'aggregate', 'host'])
def test_a_cell_has_a_link_that_opens_it(open_report, view):
    report = open_report('campus')
    page = report.page
    page.locator('#try-image').select_option('windows-2022')
    page.locator('#try-project').select_option(BIOLOGY)
    page.locator(f'input[value="{view}"]').check(force=True)
    page.locator('#grid td').nth(11).click()
    message = page.locator('#reason').inner_text()
    href = page.get_by_role('link', name='Link to this cell').get_attribute(
        'href'
    )
    page.goto('about:blank')
    page.goto(report.requests[0] + href)
    assert page.locator('#reason').inner_text() == message
    assert page.locator(f'input[value="{view}"]').is_checked()
    assert report.focused()['tag'] == 'TD'


def test_a_link_tells_images_of_one_name_apart(open_report):
    images = [
        dataclasses.replace(WINDOWS, id='a', properties={}),
        dataclasses.replace(WINDOWS, id='b'),
    ]
    report = open_report('campus', images=images)
    report.page.locator('#try-image').select_option('windows-2022 (b)')
    text = open_cell(report, 'm1.tiny', 'win-1 and 2 more')
    report.page.locator('#try-image').select_option('windows-2022 (a)')
    report.verdict('m1.tiny', 'win-1 and 2 more').click()
    assert report.page.locator('#reason').inner_text() != text
    report.page.locator('#try-image').select_option('windows-2022 (b)')
    report.verdict('m1.tiny', 'win-1 and 2 more').click()
    report.page.get_by_role('link', name='Link to this cell').click()
    assert report.page.locator('#reason').inner_text() == text
    assert 'may use all of them' in text


def test_a_link_opens_a_cell_that_is_on_another_page(open_report):
    report = open_report(big_cloud())
    report.page.get_by_label('Search').fill('<no such thing>')
    report.page.evaluate("location.hash = '#flavor=flavor-07&host=host-1234'")
    panel = report.page.locator('#reason')
    panel.get_by_text('flavor-07 on host-1234').wait_for()
    assert report.page.get_by_label('Search').input_value() == ''


def test_a_link_to_a_missing_cell_is_reported(open_report):
    report = open_report('campus')
    report.page.evaluate("location.hash = '#flavor=gone&host=<b>gpu-1'")
    panel = report.page.locator('#reason')
    panel.get_by_text('This cell is not in the report').wait_for()
    assert 'flavor gone, host <b>gpu-1' in panel.inner_text()
    assert report.messages == []


# Names that mean harm.


@pytest.mark.smoke
def test_hostile_names_are_shown_as_text(open_report):
    snapshot = make_snapshot(
        [make_aggregate(HOSTILE, {'trait:CUSTOM_X': 'required'}, [HOSTILE])],
        [make_compute_node(HOSTILE)],
        flavors=[make_flavor(HOSTILE, {HOSTILE: HOSTILE})],
    )
    report = open_report(snapshot, **CLIPBOARD)
    page = report.page
    for view in ('lock', 'aggregate', 'host', 'alike'):
        page.locator(f'input[value="{view}"]').check(force=True)
        page.locator('#grid td').first.click()
        assert HOSTILE in page.locator('#reason').inner_text()
    for repair in page.locator('.repair:has(.copy)').all():
        repair.locator('.copy').click()
        text = repair.locator('code').text_content()
        expect_text(page.locator('#copied'), f'Copied: {text}')
    assert HOSTILE in page.locator('#copied').text_content()
    assert page.locator('#grid tbody th .name').inner_text() == HOSTILE
    assert page.locator('.card bdi').nth(1).inner_text() == HOSTILE
    assert page.title() == 'Isolation report'
    assert page.locator('img, body script + script + script').count() == 0
    assert report.messages == []
    assert report.requests == [page.url]


# Everybody.


def test_the_keyboard_reaches_every_control_with_visible_focus(open_report):
    report = open_report('campus')
    stops = tab_stops(report)
    assert [stop for stop in stops if stop['outline'] == 'none'] == []
    reached = {s['id'] or s['name'] or s['text'] for s in stops}
    assert {
        'Matrix', 'Locks', 'Findings', 'theme', 'search', 'view', 'rows',
        'Close', 'severity', 'try-flavor',
    } <= reached  # fmt: skip
    assert any(stop['tag'] == 'TD' for stop in stops)
    focusable = report.page.evaluate(
        "[...document.querySelectorAll('a, button, input, select, summary')]"
        '.filter((one) => one.checkVisibility() && !one.disabled).length'
    )
    # Of the radio buttons one is a stop, and the arrows lead to the others;
    # the grid is one more.
    assert len(stops) == focusable - 3 + 1


@pytest.mark.parametrize('scheme', ['light', 'dark'])
@pytest.mark.parametrize('width', [1280, 390])
def test_every_text_has_enough_contrast(open_report, scheme, width):
    report = open_report(
        'campus',
        color_scheme=scheme,
        viewport={'width': width, 'height': 800},
    )
    report.page.locator('input[value="lock"]').check(force=True)
    report.page.locator('#grid td.some').first.click()
    assert report.page.evaluate(POOR_CONTRAST) == []


def test_the_color_scheme_follows_the_system_and_can_be_changed(open_report):
    report = open_report('campus', color_scheme='dark')

    def paper():
        return report.page.evaluate(
            'getComputedStyle(document.body).backgroundColor'
        )

    assert paper() == 'rgb(20, 23, 26)'
    report.page.get_by_role('button', name='Light colours').click()
    assert paper() == 'rgb(251, 251, 249)'
    report.page.get_by_role('button', name='Dark colours').click()
    assert paper() == 'rgb(20, 23, 26)'


@pytest.mark.parametrize(
    ('width', 'height'), [(1280, 900), (800, 1000), (390, 844), (360, 740)]
)
def test_the_page_fits(open_report, width, height):
    for cloud in ('campus', big_cloud()):
        page = open_report(
            cloud, viewport={'width': width, 'height': height}
        ).page
        row = page.locator('#grid tbody tr').first.bounding_box()
        assert row['x'] + row['width'] <= width
        # The matrix begins below the findings, on a phone after them.
        assert row['y'] + row['height'] < (height if width > 800 else 2000)
        overflows = page.evaluate(
            """() => [...document.querySelectorAll('*')].filter((one) =>
              one.clientWidth && one.scrollWidth > one.clientWidth + 1 &&
              getComputedStyle(one).overflowX !== 'visible').length"""
        )
        assert overflows == 0
        wide = page.evaluate('document.documentElement.scrollWidth')
        assert wide == width


def test_no_word_breaks_in_the_middle(open_report):
    page = open_report('campus', viewport={'width': 360, 'height': 740}).page
    broken = page.evaluate(
        r"""() => {
          const walk = document.createTreeWalker(
            document.querySelector('main'), NodeFilter.SHOW_TEXT);
          const words = [];
          while (walk.nextNode()) {
            const text = walk.currentNode;
            for (const word of text.data.matchAll(/[\p{L}\p{N}]+/gu)) {
              const range = document.createRange();
              range.setStart(text, word.index);
              range.setEnd(text, word.index + word[0].length);
              const tops = [...range.getClientRects()].map((one) => one.top);
              // The id of a project is longer than a line may be.
              const isId = /^[0-9a-f]{32}$/.test(word[0]);
              if (new Set(tops).size > 1 && !isId) words.push(word[0]);
            }
          }
          return words;
        }"""
    )
    assert broken == []


def test_a_phone_shows_the_reason_below_its_cell(open_report):
    report = open_report('campus', viewport={'width': 390, 'height': 800})
    report.page.get_by_label('Search').fill('sec-1')
    report.verdict('m1.small', 'sec-1').click()
    cell = report.verdict('m1.small', 'sec-1').bounding_box()
    panel = report.page.locator('#reason').bounding_box()
    assert cell['y'] + cell['height'] <= panel['y']


@pytest.mark.smoke
def test_print_has_the_matrix_and_no_controls(open_report):
    report = open_report('campus')
    report.page.emulate_media(media='print')
    assert report.page.locator('#grid').is_visible()
    for name in ('#search', '#theme', '#print', '#rows', 'nav'):
        assert report.page.locator(name).is_hidden()
    assert len(report.page.pdf()) > 1000


def test_print_names_the_selection_and_unfolds_everything(open_report):
    report = open_report(big_cloud())
    page = report.page
    page.get_by_label('Search').fill('CUSTOM_T')
    page.get_by_label('Sort').select_option('most')
    page.get_by_role('button', name='Locks after').click()
    folded = page.locator('details:not([open])').count()
    assert folded
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator('.card .facts:visible').count() == 60
    assert page.locator('details:not([open])').count() == 0
    page.emulate_media(media='print')
    assert page.locator('#printed').inner_text() == (
        'Search: CUSTOM_T. Sort: Most hosts first'
    )
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator('#locks-shown').text_content() == (
        'locks 21 to 40 of 60'
    )
    assert page.locator('details:not([open])').count() == folded


def test_print_names_hosts_as_ranges_and_only_once(open_report):
    report = open_report(big_cloud())
    page = report.page
    text = open_cell(report, 'flavor-00', 'agg-1, 30 hosts')
    assert '30 hosts' in text
    page.locator('#locks').scroll_into_view_if_needed()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media='print')
    reason = page.locator('#reason').inner_text()
    assert 'host-0037 and 22 more' in reason
    assert 'host-0038' not in reason
    card = page.locator('.card').filter(has_text='CUSTOM_T1').first
    assert 'host-[0030-0059]' in card.inner_text()
    printed = page.locator('body').inner_text()
    # Beside the ranges, a host has at most its own column or answer.
    assert printed.count('host-0038') == 0
    assert printed.count('host-[0030-0059]') == 1


def test_a_printed_card_of_a_lock_is_readable(open_report):
    report = open_report(big_cloud())
    page = report.page
    page.set_viewport_size({'width': 1000, 'height': 700})
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media='print')
    cards = page.locator('.card').evaluate_all(
        """(cards) => cards.map((card) => ({
          tall: card.offsetHeight, wide: card.scrollWidth > card.clientWidth,
        }))"""
    )
    assert len(cards) == 60
    assert not any(card['wide'] for card in cards)
    # Several cards fit on a page; none has a list of all hosts.
    assert max(card['tall'] for card in cards) < 350


def test_a_button_prints(open_report):
    report = open_report('campus')
    report.page.evaluate('void (window.print = () => console.log("printed"))')
    report.page.get_by_role('button', name='Print').click()
    assert report.messages == ['printed']


def test_the_page_explains_lock_and_key(open_report):
    report = open_report('campus')
    terms = report.page.locator('#matrix dfn')
    assert terms.all_inner_texts() == ['lock', 'key']


@pytest.mark.parametrize('scheme', ['light', 'dark'])
def test_axe_finds_nothing(open_report, scheme):
    source = os.environ.get('AXE_CORE')
    if not source:
        pytest.skip('AXE_CORE does not name an axe.min.js of axe-core')
    report = open_report('campus', color_scheme=scheme)
    report.page.locator('#grid td').first.click()
    report.page.evaluate(pathlib.Path(source).read_text('utf-8'))
    axe = report.page.evaluate('axe.run()')
    assert [
        (rule['id'], [node['html'] for node in rule['nodes']])
        for rule in axe['violations']
    ] == []


def test_axe_finds_nothing_where_sections_are_folded_or_empty(open_report):
    source = os.environ.get('AXE_CORE')
    if not source:
        pytest.skip('AXE_CORE does not name an axe.min.js of axe-core')
    report = open_report(big_cloud())
    report.page.evaluate(pathlib.Path(source).read_text('utf-8'))
    for word in ('', '<no such thing>'):
        report.page.get_by_label('Search').fill(word)
        axe = report.page.evaluate('axe.run()')
        assert [rule['id'] for rule in axe['violations']] == []


# The effect of a change.

RACK = pathlib.Path(__file__).parents[2] / 'examples/licensed-rack.yaml'
LICENSED = 'trait:CUSTOM_LICENSED'


def effect_of_a_lock():
    """Return the effect of a lock on the rack of the example."""
    before = cloud_file.load(RACK)
    [rack] = before.aggregates
    after = changes.values(rack, {LICENSED: 'required'})(before)
    conf = cfg.ConfigOpts()
    tools_options.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    conf.set_override(
        'enable_isolated_aggregate_filtering', True, ia_conf.SCHEDULER
    )
    return content(shown.document(effect(before, after, conf)))


def test_the_effect_of_a_change_is_shown(open_report):
    report = open_report('licensed-rack', effect=effect_of_a_lock())
    section = report.page.locator('#effect')
    rows = [
        row.locator('th, td').all_inner_texts()
        for row in section.locator('tbody tr').all()
    ]
    assert rows[0][:4] == ['oracle', 'finance', 'r7-1', 'db.licensed']
    assert rows[-1] == [
        *('db.licensed', '', '4 → 2', '13 → 8', '', 'r7-[1-2]')
    ]
    assert 'nothing-opens' not in section.inner_text()
    assert (
        'no flavor or image requires CUSTOM_LICENSED' in section.inner_text()
    )
    assert report.messages == []
    report.page.set_viewport_size({'width': 360, 'height': 800})
    assert report.page.evaluate(
        'document.documentElement.scrollWidth <= innerWidth'
    )


def test_a_page_without_an_effect_has_no_such_section(open_report):
    assert open_report('campus').page.locator('#effect').count() == 0


@pytest.mark.parametrize('scheme', ['light', 'dark'])
def test_axe_finds_nothing_in_an_effect(open_report, scheme):
    source = os.environ.get('AXE_CORE')
    if not source:
        pytest.skip('AXE_CORE does not name an axe.min.js of axe-core')
    report = open_report(
        'licensed-rack', effect=effect_of_a_lock(), color_scheme=scheme
    )
    report.page.evaluate(pathlib.Path(source).read_text('utf-8'))
    axe = report.page.evaluate('axe.run()')
    assert [rule['id'] for rule in axe['violations']] == []


# A plan of migrations.


def plan_for_a_host():
    """Return the plan of emptying a host of the example."""
    cloud = cloud_file.load(RACK.with_name('full-rack.yaml'))
    conf = cfg.ConfigOpts()
    tools_options.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    conf.set_override(
        'enable_isolated_aggregate_filtering', True, ia_conf.SCHEDULER
    )
    plan = Planner(cloud, conf).plan(Task(frozenset({'win-1'})))
    return {
        'plan': content(plan_document(plan)),
        'batches': [],
        'left': [],
        'results': {},
        'effect': None,
        'not_known': [],
    }


@pytest.mark.parametrize('scheme', ['light', 'dark'])
def test_a_plan_is_shown(open_report, scheme):
    report = open_report(
        'full-rack', plan=plan_for_a_host(), color_scheme=scheme
    )
    section = report.page.locator('#plan')
    rows = [
        row.locator('th, td').all_inner_texts()
        for row in section.locator('tbody tr').all()
    ]
    assert [(row[0], *row[4:]) for row in rows] == [
        ('sql', 'win-1', 'win-3', 'live'),
        ('ad', 'win-1', 'win-2', 'live'),
    ]
    assert '2 moves, least possible' in section.inner_text()
    assert report.messages == []
    source = os.environ.get('AXE_CORE')
    if source:
        report.page.evaluate(pathlib.Path(source).read_text('utf-8'))
        axe = report.page.evaluate('axe.run()')
        assert [rule['id'] for rule in axe['violations']] == []
    report.page.set_viewport_size({'width': 360, 'height': 800})
    assert report.page.evaluate(
        'document.documentElement.scrollWidth <= innerWidth'
    )


# Many hosts.


def test_a_large_cloud_keeps_the_page_small(open_report):
    report = open_report(big_cloud())
    page = report.page
    heads = page.locator('#grid thead .name')
    most = report.nodes()
    for view in ('lock', 'aggregate', 'host'):
        page.locator(f'input[value="{view}"]').check(force=True)
        most = max(most, report.nodes())
    assert most < 8000
    page.get_by_label('Sort').select_option('name')
    at_once = heads.count()
    assert page.locator('#columns-shown').inner_text() == (
        f'columns 1 to {at_once} of 2,000'
    )
    page.get_by_role('button', name='Columns after').click()
    assert heads.first.inner_text() == f'host-{at_once:04}'
    page.get_by_label('Search').fill('host-1999')
    assert heads.all_inner_texts() == ['host-1999']
    assert 'flavor-00 on host-1999' in open_cell(
        report, 'flavor-00', 'host-1999'
    )
    assert report.messages == []


def test_arrow_keys_move_on_to_the_next_columns(open_report):
    report = open_report(big_cloud())
    page = report.page
    page.locator('input[value="host"]').check(force=True)
    page.get_by_label('Sort').select_option('name')
    count = page.locator('#grid thead .name').count()
    page.locator('#grid tbody td').nth(count - 1).click()
    page.keyboard.press('ArrowRight')
    panel = page.locator('#reason')
    assert f'flavor-00 on host-{count:04}' in panel.inner_text()
    page.keyboard.press('ArrowLeft')
    assert report.focused()['text'].startswith('flavor-00')
    page.keyboard.press('ArrowLeft')
    assert f'flavor-00 on host-{count - 1:04}' in panel.inner_text()
