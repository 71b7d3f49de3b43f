# SPDX-License-Identifier: Apache-2.0
"""The report page: contents, escaping and writing."""

import base64
import dataclasses
import datetime
import hashlib
from html.parser import HTMLParser
import json
import os
import pathlib
import re

from cases import cases
from page_cells import lines_of
import pytest

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.text import escaped
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools.answers.deciding import question
from isolate_aggregates_tools.answers.offers import Offers, room
from isolate_aggregates_tools.audit import AuditedCloud
from isolate_aggregates_tools.cloud.file import cloud_file
from isolate_aggregates_tools.commands import clouds
from isolate_aggregates_tools.report import content as report_content
from isolate_aggregates_tools.report import page, rooms
from isolate_aggregates_tools.report.content import Bar, Content
from isolate_aggregates_tools.testing import (
    make_aggregate,
    make_compute_node,
    make_flavor,
    make_image,
    make_snapshot,
)

NOW = datetime.datetime(2026, 11, 21, 13, 30, tzinfo=datetime.UTC)
EXAMPLES = pathlib.Path(__file__).parents[3] / 'examples'
WINDOWS = {'trait:CUSTOM_WINDOWS': 'required'}

HOSTILE = [
    '<script>alert(1)</script>',
    '</script><img src=x onerror=alert(1)>',
    '" onmouseover="alert(1)',
    "' autofocus onfocus='alert(1)",
    'javascript:alert(1)',
    '<!--',
    ']]>',
    '{{ 7 * 7 }}',
    '&lt;b&gt;',
    'a\u2028b\u2029c',
    'a\nb\x1b[31mc\x9bd',
    '\u202eturned round',
    'null \x00 byte',
]


class Page(HTMLParser):
    """What a browser makes of a page: elements, texts, data, policy."""

    def __init__(self, text):
        super().__init__()
        self.elements = []
        self.texts = []
        self.text = ''
        self._inside = ['']
        self.scripts = []
        self.style = ''
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in ('script', 'style'):
            self._inside.append(tag)
        if tag == 'script':
            self.scripts.append((dict(attrs).get('type'), ''))

    def handle_endtag(self, tag):
        if tag in ('script', 'style'):
            self._inside.pop()

    def handle_data(self, data):
        if self._inside[-1] == 'script':
            kind, text = self.scripts[-1]
            self.scripts[-1] = kind, text + data
        elif self._inside[-1] == 'style':
            self.style += data
        else:
            self.text += data
            self.texts.append(data.strip())

    @property
    def cells(self):
        [text] = [t for kind, t in self.scripts if kind]
        return json.loads(text)

    @property
    def lines(self):
        return lines_of(self.cells)

    @property
    def policy(self):
        [policy] = [
            attrs['content']
            for _, attrs in self.elements
            if attrs.get('http-equiv') == 'Content-Security-Policy'
        ]
        return policy


@pytest.fixture
def conf(conf):
    """A configuration with isolation switched on."""
    conf.set_override('enable_isolated_aggregate_filtering', True, 'scheduler')
    return conf


@pytest.fixture
def content(conf):
    """A cloud with a locked host, an open one and a finding."""
    snapshot = make_snapshot(
        [make_aggregate('windows', WINDOWS, ['win'])],
        [
            make_compute_node(
                'win', traits=['CUSTOM_WINDOWS'], usages={'VCPU': 12}
            ),
            make_compute_node('open'),
        ],
        flavors=[
            make_flavor('plain'),
            make_flavor('keyed', WINDOWS),
            make_flavor('lost', {'trait:CUSTOM_LOST': 'required'}),
        ],
        images=[make_image('windows', WINDOWS)],
    )
    return Content.of(AuditedCloud.of(snapshot, conf), (), None, NOW)


def hostile_content(conf, name):
    """Return a cloud in which everything is called by that name."""
    snapshot = make_snapshot(
        [
            make_aggregate(
                name, {'trait:CUSTOM_X': 'required', name: name}, [name]
            ),
            make_aggregate(f'tagged {name}', {f'trait:{name}': 'required'}),
        ],
        [make_compute_node(name)],
        flavors=[make_flavor(name, {f'trait:{name}': 'required', name: name})],
        images=[make_image(name, {name: name})],
        origin=name,
    )
    audited_cloud = AuditedCloud.of(snapshot, conf)
    return Content.of(audited_cloud, snapshot.images, name, NOW)


# Contents


def test_the_figures_count_the_cloud(content):
    counted = {f.label: f.value for f in report_content.figures(content)}
    assert counted.pop('Warnings') > 0
    assert counted == {
        'Hosts': 2,
        'Locks': 1,
        'Aggregates': 1,
        'Flavors': 3,
        'Errors': 0,
        'Infos': 0,
    }
    notes = [f.note for f in report_content.figures(content)]
    assert '1 behind a lock' in notes
    assert 'on 1 aggregate' in notes
    assert '1 may use no host' in notes


def test_locks_and_findings_are_in_the_html(content):
    texts = Page(page.render(content)).texts
    assert 'trait:CUSTOM_WINDOWS' in texts
    assert 'Memory' in texts
    used = [' '.join(text.split()) for text in texts]
    assert '12 of 16 used (75 %)' in used
    assert 'flavor lost' in texts
    assert 'warning' in texts


def test_each_repair_says_whom_it_lets_in(content):
    texts = Page(page.render(content)).texts
    [unset] = [t for t in texts if t.startswith('openstack flavor unset ')]
    after = [text for text in texts[texts.index(unset) + 1 :] if text]
    assert after[:2] == [
        'Copy',
        'lets flavor lost use open, and win with image windows',
    ]


def test_the_matrix_is_data(content):
    found = Page(page.render(content))
    cells = found.cells
    assert [group['hosts'] for group in cells['groups']] == [['open'], ['win']]
    # Each flavor without an image, and with the one of the cloud.
    assert [row['image'] for row in cells['rows'][:2]] == [None, 'windows']
    [plain, keyed, lost] = cells['rows'][:: cells['images']]
    assert found.lines[plain['cells']][0] == []
    assert found.lines[keyed['cells']][1] == []
    assert all(found.lines[lost['cells']])
    [reason] = found.lines[plain['cells']][1]
    assert reason['filter'] == 'isolate_aggregates'
    assert reason['cause'] == [
        'locked by trait CUSTOM_WINDOWS, which ',
        ' does not require',
    ]
    assert reason['aggregates'] == [0]
    [windows] = cells['columns']['aggregate']
    assert windows == {'name': 'windows', 'hosts': [1, 1]}
    assert [c['name'] for c in cells['columns']['lock']] == [
        'trait:CUSTOM_WINDOWS',
        '(no lock)',
    ]
    assert keyed['keys'] == [['flavor', 'trait:CUSTOM_WINDOWS=required']]


def test_similar_hosts_are_behind_the_same_lock(conf):
    """No request may use any of these hosts."""
    snapshot = make_snapshot(
        [
            make_aggregate(
                'one', {'trait:CUSTOM_A': 'required'}, ['a-1', 'a-2']
            ),
            make_aggregate('two', {'trait:CUSTOM_B': 'required'}, ['b']),
        ],
        [
            *(make_compute_node(name) for name in ('a-1', 'a-2', 'b')),
            make_compute_node('off', traits=['COMPUTE_STATUS_DISABLED']),
        ],
        flavors=[make_flavor('plain')],
    )
    content = Content.of(AuditedCloud.of(snapshot, conf), (), None, NOW)
    cells = Page(page.render(content)).cells
    assert [column['name'] for column in cells['columns']['alike']] == [
        'a-1, a-2',
        'b',
        'off',
    ]


def test_similar_hosts_are_similar_for_each_image_and_project(conf):
    """The page shows each of them in the same columns."""
    conf.set_override(
        'request_filters',
        ['isolate_aggregates', 'isolate_tenants'],
        ia_conf.GROUP,
    )
    snapshot = make_snapshot(
        [
            make_aggregate(
                'own', {'filter_tenant_id': 'p-1,p-2'}, ['one', 'two']
            )
        ],
        [
            make_compute_node('one', traits=['CUSTOM_WINDOWS']),
            make_compute_node('two'),
        ],
        flavors=[make_flavor('plain')],
        images=[make_image('windows', WINDOWS)],
    )
    content = Content.of(AuditedCloud.of(snapshot, conf), (), None, NOW)
    cells = Page(page.render(content)).cells
    assert [column['name'] for column in cells['columns']['alike']] == [
        'one',
        'two',
    ]


def test_filters_that_do_not_run_are_reported(conf):
    conf.set_override(
        'enable_isolated_aggregate_filtering', False, 'scheduler'
    )
    content = Content.of(
        AuditedCloud.of(make_snapshot(), conf), (), 'p-1', NOW
    )
    text = ' '.join(' '.join(Page(page.render(content)).texts).split())
    assert 'Switched off: isolate_aggregates .' in text
    assert 'project p-1 .' in text
    assert 'No aggregate is locked.' in text


@cases(
    ('bar', 'percent', 'width', 'free'),
    {
        'nothing there': (Bar('VCPU', 0, 0), 0, 0, 0),
        'used all the same': (Bar('VCPU', 2, 0), 100, 100, -2),
        'too much used': (Bar('VCPU', 30, 20), 150, 100, -10),
        'some used': (Bar('VCPU', 1, 3), 33, 33, 2),
    },
)
def test_a_bar_never_exceeds_its_track(bar, percent, width, free):
    assert (bar.percent, bar.width, bar.free) == (percent, width, free)


def test_cpu_memory_and_disk_come_first(conf):
    inventories = {'DISK_GB': 1, 'CUSTOM_A': 1, 'VCPU': 1, 'MEMORY_MB': 1}
    snapshot = make_snapshot(
        [make_aggregate('windows', WINDOWS, ['win'])],
        [make_compute_node('win', inventories=inventories)],
    )
    content = Content.of(AuditedCloud.of(snapshot, conf), (), None, NOW)
    shown = [
        bar.resource_class for bar in report_content.bars(content.locks[0])
    ]
    assert shown == ['VCPU', 'MEMORY_MB', 'DISK_GB', 'CUSTOM_A']


@pytest.mark.parametrize(
    ('resource_class', 'value', 'amount'),
    [
        ('VCPU', 1200, '1,200'),
        ('MEMORY_MB', 2048 * 1024, '2,048'),
        ('MEMORY_MB', 1536, '1.5'),
        ('DISK_GB', 4000, '4,000'),
    ],
)
def test_memory_is_shown_in_gib(resource_class, value, amount):
    assert Bar(resource_class, 0, value).amount(value) == amount


def test_flavors_with_the_same_answers_are_told_once(conf):
    snapshot = make_snapshot(
        [make_aggregate('windows', WINDOWS, ['win'])],
        [make_compute_node('win', traits=['CUSTOM_WINDOWS'])],
        flavors=[make_flavor(f'flavor-{n}') for n in range(50)],
    )
    content = Content.of(AuditedCloud.of(snapshot, conf), (), None, NOW)
    cells = Page(page.render(content)).cells
    assert len(cells['rows']) == 50
    assert len(cells['lines']) == len(cells['reasons']) == 1


# That it is well closed.


@pytest.mark.parametrize('name', HOSTILE)
def test_no_name_adds_anything_to_the_markup(conf, name):
    found = Page(page.render(hostile_content(conf, name)))
    shown = escaped(name)
    assert {row['flavor'] for row in found.cells['rows']} == {shown}
    assert shown in found.text
    known = Page(page.render(hostile_content(conf, 'harmless')))
    assert shapes(found) <= shapes(known)
    assert [kind for kind, _ in found.scripts] == ['application/json', None]
    assert found.scripts[1] == known.scripts[1]


def shapes(page):
    """Return which elements there are, with which attributes."""
    return {(tag, frozenset(attrs)) for tag, attrs in page.elements}


def test_a_page_with_a_lone_surrogate_can_be_written(conf, tmp_path):
    half = 'half \ud800 of a pair'
    snapshot = dataclasses.replace(make_snapshot(), origin=half)
    content = Content.of(AuditedCloud.of(snapshot, conf), (), half, NOW)
    page.write(content, tmp_path / 'page.html')
    texts = Page((tmp_path / 'page.html').read_text('utf-8')).texts
    assert r'half \ud800 of a pair' in texts


def test_the_page_has_no_external_addresses(content):
    found = Page(page.render(content))
    addresses = [
        value
        for _, attributes in found.elements
        for name, value in attributes.items()
        if name in ('src', 'href', 'action', 'srcset', 'data')
    ]
    assert [a for a in addresses if not a.startswith('#')] == ['data:,']
    assert not re.search(r'url\(|@import', found.style)


def test_the_policy_allows_only_its_own_script_and_style(content):
    found = Page(page.render(content))

    def source(text):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest())
        return f"'sha256-{digest.decode()}'"

    [script] = [text for kind, text in found.scripts if kind is None]
    assert found.policy.split('; ') == [
        "default-src 'none'",
        'img-src data:',
        f'style-src {source(found.style)}',
        f'script-src {source(script)}',
        "base-uri 'none'",
        "form-action 'none'",
    ]


def test_no_element_has_its_own_handler_or_style(content):
    for _, attributes in Page(page.render(content)).elements:
        assert not [n for n in attributes if n[:2] == 'on' or n == 'style']


# How it is written.


def test_replacing_a_page_leaves_no_other_files(content, tmp_path):
    path = tmp_path / 'page.html'
    page.write(content, path)
    path.chmod(0o644)
    page.write(content, path)
    assert '<title>Isolation report</title>' in path.read_text('utf-8')
    assert os.listdir(tmp_path) == ['page.html']
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_new_page_is_readable_only_by_its_owner(content, tmp_path):
    page.write(content, tmp_path / 'page.html')
    assert (tmp_path / 'page.html').stat().st_mode & 0o777 == 0o600


def test_a_symbolic_link_is_kept(content, tmp_path):
    (tmp_path / 'link.html').symlink_to('page.html')
    page.write(content, tmp_path / 'link.html')
    assert (tmp_path / 'link.html').is_symlink()
    assert (tmp_path / 'page.html').read_text('utf-8')


@pytest.mark.parametrize(
    ('path', 'problem'),
    [
        ('missing/page.html', 'No such file or directory'),
        ('.', 'Is a directory'),
        ('/dev/null', 'Not a regular file'),
        # The name of the temporary file beside it is longer.
        (f'{"p" * 245}.html', 'File name too long'),
    ],
)
def test_a_page_that_cannot_be_written_is_an_error(
    content, tmp_path, monkeypatch, path, problem
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(tools_errors.ReportError) as caught:
        page.write(content, path)
    assert str(caught.value) == (
        f'The report cannot be written to {path}: {problem}.'
    )
    assert os.listdir(tmp_path) == []


def test_an_unwritable_directory_is_reported_first(tmp_path, monkeypatch):
    # The superuser may write anywhere.
    monkeypatch.setattr(os, 'access', lambda path, mode: False)
    with pytest.raises(tools_errors.ReportError, match=r'Permission denied\.'):
        page.check(tmp_path / 'page.html')


def test_who_may_use_the_hosts_of_many_projects_is_not_nobody(conf):
    """Not all projects that aggregates name are tried."""
    conf.set_override('request_filters', ['isolate_tenants'], ia_conf.GROUP)
    projects = [f'p{number:02}' for number in range(23)]
    snapshot = make_snapshot(
        [make_aggregate('own', {'filter_tenant_id': ','.join(projects)}, 'h')],
        [make_compute_node('h')],
        flavors=[make_flavor('plain')],
    )
    content = Content.of(AuditedCloud.of(snapshot, conf), (), None, NOW)
    [own] = report_content.opened(content).values()
    assert own.groups == (
        report_content.OpenTo(('plain',), tuple(projects[:20])),
    )
    assert own.untried == 3
    texts = ' '.join(' '.join(Page(page.render(content)).texts).split())
    assert 'flavor plain in projects p00, p01, ' in texts
    assert 'and maybe others in 3 more projects' in texts
    assert 'nobody' not in texts


# The command.


def test_the_command_writes_the_page(run, tmp_path):
    path = tmp_path / 'page.html'
    result = run(
        'report', 'save',
        '--snapshot', 'examples/windows-licensing.yaml',
        '--image', 'windows-2022', '--image', 'debian-12',
        '--output', str(path),
    )  # fmt: skip
    assert (result.code, result.out) == (0, f'Wrote {path}.\n')
    cells = Page(path.read_text('utf-8')).cells
    assert cells['images'] == 3
    assert [(row['flavor'], row['image']) for row in cells['rows'][:4]] == [
        ('m1.small', 'windows-2022'),
        ('m1.small', 'debian-12'),
        ('m1.small', None),
        ('m1.large', 'windows-2022'),
    ]


def test_the_command_offers_more_projects_to_try(run):
    biology, other = '5f1c2e0b7a9d4c6e8b3a1d2c4e6f8a0b', 'p-2'
    campus = ('report', 'save', '--snapshot', 'examples/campus.yaml')

    def answers(page, line):
        """Return the reasons of each group, by its first host."""
        first = [group['hosts'][0] for group in page.cells['groups']]
        return dict(zip(first, page.lines[line], strict=True))

    page = Page(
        run(*campus, '--try-project', biology, '--try-project', other).out
    )
    assert {biology, other} <= set(page.texts)
    for project, tried in zip(
        (biology, other), page.cells['tries'], strict=True
    ):
        known = Page(run(*campus, '--project', project).out)
        for line, expected in zip(tried, known.cells['rows'], strict=True):
            assert answers(page, line) == answers(known, expected['cells'])


def test_the_command_writes_to_a_pipe(run, tmp_path, monkeypatch):
    example = pathlib.Path('examples/windows-licensing.yaml').absolute()
    monkeypatch.chdir(tmp_path)
    result = run('report', 'save', '--snapshot', str(example))
    assert (result.code, result.err) == (0, '')
    cells = Page(result.out).cells
    assert (cells['images'], len(cells['rows'])) == (3, 9)
    assert list(tmp_path.iterdir()) == []


def test_the_command_checks_the_output_before_it_reads_the_cloud(run):
    result = run(
        *('report', 'save', '--snapshot', 'missing.yaml'),
        *('--output', 'missing/page.html'),
    )
    assert result.err.startswith('The report cannot be written to ')


@cases(
    ('arguments', 'code', 'message'),
    {
        'servers of a file': (
            ['--output', 'page.html', '--servers'],
            1,
            'examples/windows-licensing.yaml has no servers; save it again '
            'without --no-servers.\n',
        ),
        'reservations of a file': (
            ['--output', 'page.html', '--calendar', '30'],
            2,
            '--calendar needs a live cloud: leave out --calendar or '
            '--snapshot',
        ),
        'no directory': (
            ['--output', 'missing/page.html'],
            1,
            'The report cannot be written to missing/page.html: No such '
            'file or directory.\n',
        ),
    },
)
def test_the_command_refuses_invalid_arguments(run, arguments, code, message):
    result = run(
        'report',
        'save',
        '--snapshot',
        'examples/windows-licensing.yaml',
        *arguments,
    )
    assert result.code == code
    assert message in result.err


@pytest.fixture
def of_example(conf):
    """Return the content of an example, of which each host may be in use."""

    def content_of(name, usages=None):
        cloud = cloud_file.load(EXAMPLES / f'{name}.yaml')
        clouds.apply_settings(conf, cloud)
        if usages is not None:
            providers = tuple(
                dataclasses.replace(each, usages=usages if each.host else {})
                for each in cloud.providers
            )
            cloud = dataclasses.replace(cloud, providers=providers)
        return Content.of(AuditedCloud.of(cloud, conf), (), None, NOW)

    return content_of


@pytest.mark.parametrize(
    ('example', 'usages'),
    [
        ('campus', None),
        ('hosting', None),
        ('no-valid-host', None),
        # With nested providers.
        ('gpu-hosts', {'VCPU': 2}),
    ],
)
def test_a_cell_counts_the_servers_that_capacity_counts(
    of_example, example, usages
):
    content = of_example(example, usages)
    snapshot = content.cloud.snapshot
    groups = content.matrix.groups
    kinds = iter(content.room.kinds)
    kinds_of = [[next(kinds) for _ in group.hosts] for group in groups]
    shown = [
        sum(
            content.room.lines[line][kind]
            for place, some in enumerate(kinds_of)
            if place not in row.closed
            for kind in some
        )
        for row, line in zip(
            content.matrix.rows, content.room.rows, strict=True
        )
    ]
    assert shown == [
        room(
            snapshot,
            question(row.request, content.cloud.index, content.cloud.pipeline),
            Offers(snapshot),
        )
        for row in content.matrix.rows
    ]
    assert any(shown)


@cases(
    ('example', 'usages'),
    {
        'nothing is known to be in use': ('campus', {}),
        'hosts share storage': ('shared-storage', {'VCPU': 1}),
    },
)
def test_what_is_not_known_of_each_host_has_no_number(
    of_example, example, usages
):
    assert of_example(example, usages).room is None


def test_a_large_cloud_has_no_numbers(of_example, monkeypatch):
    monkeypatch.setattr(rooms, 'MOST', 12 * 19 - 1)
    assert of_example('campus').room is None


def test_a_flavor_that_placement_rejects_has_no_number(content, conf):
    rejected = make_flavor('odd', {'trait:CUSTOM_LOST': 'forbidden'})
    snapshot = dataclasses.replace(
        content.cloud.snapshot, flavors=(make_flavor('plain'), rejected)
    )
    odd = Content.of(AuditedCloud.of(snapshot, conf), (), None, NOW)
    # Each with the image, and without one.
    assert odd.room.rows == [0, 1, None, None]
