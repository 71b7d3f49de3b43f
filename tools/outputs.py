# SPDX-License-Identifier: Apache-2.0
"""Writes what every command says on every example.

    python tools/outputs.py DIRECTORY [PATTERN]

Run it in two checkouts and compare the directories with ``diff -r``. There is
a file for each invocation whose name matches the regular expression, with its
exit status, output and errors. Times are masked.
"""

from collections.abc import Iterator
import contextlib
import io
import itertools
import pathlib
import re
import sys
import tempfile
from typing import Any
import warnings

import yaml

PROJECT = pathlib.Path(__file__).parent.parent
EXAMPLES = PROJECT / 'examples'
CHANGES = PROJECT / 'isolate-aggregates-tools/tests/unit/changes'
MASKS = (
    (re.compile(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+Z.0-9:]*'), '<time>'),
    (re.compile(r'\d\d? \w+ \d{4}, \d\d:\d\d'), '<time>'),
    (
        re.compile(
            r'^(isolate_aggregates_\w*(seconds|timestamp\w*)) .*$', re.M
        ),
        r'\1 <number>',
    ),
    (re.compile(r"sha256-[A-Za-z0-9+/=]+'"), "<hash>'"),
)


def run(argv: list[str], directory: str) -> str:
    """Return the exit status, output and errors of a command."""
    from isolate_aggregates_tools.cli import app

    out, err = io.StringIO(), io.StringIO()
    code: Any
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        warnings.simplefilter('ignore')
        try:
            code = app.main(argv)
        except SystemExit as exc:
            code = exc.code
    text = f'{code}\n--- out\n{out.getvalue()}\n--- err\n{err.getvalue()}'
    if argv[0] == 'exporter':
        file = pathlib.Path(argv[argv.index('--output') + 1])
        text += file.read_text() if file.exists() else 'no file'
    return masked(text, directory)


def masked(text: str, directory: str) -> str:
    """Return a text without times, and without places of files."""
    text = text.replace(str(PROJECT), 'PROJECT').replace(directory, 'TMP')
    for pattern, to in MASKS:
        text = pattern.sub(to, text)
    return text


def hosts_of(tree: dict[str, Any]) -> list[str]:
    """Return the hosts of a cloud file."""
    return [
        p.get('host', p['name'])
        for p in tree.get('providers', [])
        if 'MISC_SHARES_VIA_AGGREGATE' not in p.get('traits', [])
    ]


def invocations(directory: str) -> Iterator[list[str]]:
    """Yield the arguments of all commands, with files in a directory."""
    for path in sorted(EXAMPLES.glob('*.yaml')):
        cloud = yaml.safe_load(path.read_text())
        name, at = path.stem, ['--snapshot', str(path)]
        flavors = [f['name'] for f in cloud.get('flavors', [])][:4]
        images = [i['name'] for i in cloud.get('images', [])][:2]
        groups = cloud.get('aggregates', [])[:3]
        hosts = hosts_of(cloud)
        for f in flavors:
            for image in (None, *images):
                asked = ['--flavor', f, *(['--image', image] if image else [])]
                for cmd in (['explain'], ['capacity', 'list']):
                    yield [*cmd, *asked, *at]
                    yield [*cmd, *asked, *at, '-f', 'json']
                yield ['candidate', 'list', '--query', *asked, *at]
            yield ['explain', '--flavor', f, '--hosts', '--long', *at]
            yield ['explain', '--flavor', f, *at, '-f', 'csv']
            yield [
                'explain',
                '--flavor',
                f,
                '--project',
                'p1',
                '--availability-zone',
                f'nova:{hosts[0]}',
                *at,
            ]
        for f in flavors[:1]:
            yield ['candidate', 'list', '--flavor', f, *at]
            yield ['candidate', 'list', '--flavor', f, *at, '-f', 'json']
        for fmt in ('table', 'json', 'csv'):
            for by in ('host', 'aggregate', 'lock'):
                yield ['matrix', 'list', '--by', by, *at, '-f', fmt]
            yield ['lock', 'list', *at, '-f', fmt]
            yield ['audit', *at, '-f', fmt]
            yield ['sync', *at, '-f', fmt]
            yield ['filter', 'list', *at, '-f', fmt]
            for cmd in (
                ['audit', '--servers'],
                ['survival', 'list'],
                ['survival', 'list', '--failures', '2'],
                ['relocation', 'create', '--host', hosts[0]],
                ['relocation', 'create', '--out-of-place'],
                [
                    'relocation',
                    'create',
                    '--rolling',
                    *itertools.chain(*(['--host', h] for h in hosts[:3])),
                ],
                ['relocation', 'create', '--room-for', (flavors or ['x'])[0]],
            ):
                yield [*cmd, *at, '-f', fmt]
        for out in ('commands', 'watcher'):
            yield [
                'relocation',
                'create',
                '--host',
                hosts[0],
                '--as',
                out,
                *at,
            ]
        yield ['audit', '--dry-run', '--fix', *at]
        for g in groups:
            yield ['lock', 'show', g['name'], *at]
            yield ['lock', 'show', g['name'], *at, '-f', 'json']
            for key in list(g.get('metadata', {}))[:2]:
                yield ['lock', 'show', key, *at, '-f', 'json']
        traits = {
            key.removeprefix('trait:')
            for g in groups
            for key in g.get('metadata', {})
            if key.startswith('trait:')
        }
        for fmt in ('table', 'json'):
            for g in groups[:1]:
                new = ['--trait', 'CUSTOM_NEW']
                yield ['lock', 'create', g['name'], *new, *at, '-f', fmt]
                yield ['lock', 'delete', g['name'], *at, '-f', fmt]
                node = [hosts[0], '--trait', 'CUSTOM_NEW']
                yield ['provider', 'set', *node, *at, '-f', fmt]
                yield ['provider', 'unset', *node, *at, '-f', fmt]
            for trait in sorted(traits)[:1]:
                for f in flavors[:2]:
                    key = ['--flavor', f, '--trait', trait]
                    yield ['key', 'add', *key, *at, '-f', fmt]
                    yield ['key', 'remove', *key, *at, '-f', fmt]
        for f in flavors[:1]:
            for fmt in ('table', 'json'):
                asked = ['--flavor', f, '--host', hosts[0]]
                yield ['check', *asked, *at, '-f', fmt]
        for h in hosts[:2]:
            yield ['lock', 'show', h, *at, '-f', 'json']
        yield ['lock', 'show', 'nothing', *at]
        changes = []
        for g in groups:
            changes += [
                ['--set', g['name'], 'trait:CUSTOM_NEW=required'],
                ['--set', g['name'], 'filter_tenant_id=p1,p2'],
                ['--set', g['name'], 'availability_zone=az9'],
                ['--add-host', g['name'], hosts[-1]],
                *(
                    ['--remove-host', g['name'], h]
                    for h in g.get('hosts', [])[:1]
                ),
                *(['--unset', g['name'], k] for k in g.get('metadata', {})),
            ]
        for f in flavors[:2]:
            changes.append(['--flavor-set', f, 'trait:CUSTOM_NEW=required'])
        for f in cloud.get('flavors', [])[:4]:
            changes += [
                ['--flavor-unset', f['name'], k]
                for k in f.get('extra_specs', {})
            ]
        for i in cloud.get('images', [])[:2]:
            changes.append(
                ['--image-set', i['name'], 'trait:CUSTOM_A=required']
            )
            changes += [
                ['--image-unset', i['name'], k]
                for k in i.get('properties', {})
            ]
        changes += [
            ['--sync'],
            ['--terraform-plan', str(CHANGES / 'plan.json')],
        ]
        for c in changes:
            for fmt in ('table', 'json'):
                yield ['effect', 'show', *c, *at, '-f', fmt]
        yield ['effect', 'show', *itertools.chain(*changes[:5]), '--sync', *at]
        yield [
            'effect',
            'show',
            *itertools.chain(*changes[:8]),
            *at,
            '-f',
            'json',
        ]
        file = f'{directory}/{name}.expect.yaml'
        yield ['test', '--init', '--output', file, *at]
        yield ['test', file, '--mutate', *at]
        yield ['test', file, *at, '-f', 'json']
        for c in changes[:3]:
            yield ['test', file, *c, *at]
        yield ['report', 'save', *at]
        yield ['report', 'save', '--servers', *at]
        yield ['exporter', '--output', f'{directory}/{name}.prom', *at]
    rack = [str(EXAMPLES / f'licensed-rack{e}.yaml') for e in ('', '-moved')]
    for fmt in ('table', 'json', 'csv'):
        yield [
            *('effect', 'show', '--snapshot', rack[0], '--to', rack[1]),
            *('-f', fmt),
        ]
        yield [
            'test',
            str(EXAMPLES / 'expectations/hosting.yaml'),
            '--snapshot',
            str(EXAMPLES / 'hosting.yaml'),
            '-f',
            fmt,
        ]
        for more in (['--stays'], []):
            for what in (
                ['--lock', 'trait:CUSTOM_LICENSED_WINDOWS'],
                ['--aggregate', 'windows'],
                ['--project', 'p1'],
            ):
                yield [
                    'ledger',
                    *what,
                    '--since',
                    '2026-03-01',
                    '--until',
                    '2026-03-08',
                    '--no-cloud',
                    '--file',
                    str(EXAMPLES / 'ledger.jsonl'),
                    *more,
                    '-f',
                    fmt,
                ]
        decisions = EXAMPLES / 'decisions'
        for more in ([], ['--shadow'], ['--long']):
            for name in ('nova-scheduler.log', 'shadow.log'):
                log = str(decisions / name)
                yield ['decision', 'list', log, *more, '-f', fmt]
    yield ['--help']
    yield ['help']
    for cmd in (
        'audit',
        'candidate list',
        'capacity list',
        'decision list',
        'effect show',
        'explain',
        'exporter',
        'filter list',
        'key add',
        'ledger',
        'lock list',
        'lock create',
        'matrix list',
        'relocation create',
        'key remove',
        'lock show',
        'provider set',
        'provider unset',
        'report save',
        'snapshot save',
        'survival list',
        'sync',
        'test',
        'lock delete',
        'reservation',
        'reservation list',
        'reservation create',
        'lsit',
        'snapshot',
    ):
        yield ['help', *cmd.split()]


def main(target: pathlib.Path, only: str = '') -> None:
    """Write the outputs."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        for number, argv in enumerate(invocations(directory)):
            words = masked(' '.join(argv), directory)
            label = re.sub(r'[^\w.=:-]+', '_', words)
            if re.search(only, label):
                path = target / f'{number:04}_{label[:120]}.txt'
                path.write_text(f'{words}\n{run(argv, directory)}')


if __name__ == '__main__':
    main(pathlib.Path(sys.argv[1]), *sys.argv[2:])
