# SPDX-License-Identifier: Apache-2.0
"""The audit finds tags that differ from the domains."""

import dataclasses

from cases import cases
from oslo_config import cfg
import pytest

from isolate_aggregates import options as tools_options
from isolate_aggregates.aggregates import Aggregate, domains
from isolate_aggregates_tools import audit
from isolate_aggregates_tools import domains as tools_domains
from isolate_aggregates_tools.cloud.file import document, serialize
from isolate_aggregates_tools.cloud.file.contradictions import Contradictions
from isolate_aggregates_tools.cloud.snapshot import Snapshot

OWN = domains.tag('acme')


def findings(metadata, known):
    """Return kind, problem, and whether --fix repairs it, of each finding."""
    conf = cfg.ConfigOpts()
    tools_options.register_opts(conf)
    conf([], default_config_files=[])
    group = Aggregate('uuid', 'acme-hosts', metadata, id=1)
    snapshot = Snapshot('test', (group,), domains=known)
    return [
        (finding.kind, finding.problem, finding.safe)
        for finding in audit.audit(audit.AuditedCloud.of(snapshot, conf))
        if finding.kind.startswith('domain-')
    ]


@cases(
    ('metadata', 'known', 'expected'),
    {
        'as it should be': (
            OWN | tools_domains.tags('acme', 'ab'),
            {'acme': frozenset('ab')},
            [],
        ),
        'a file that says nothing': (OWN, {}, []),
        'a new project': (
            OWN | tools_domains.tags('acme', 'a'),
            {'acme': frozenset('ab')},
            [
                (
                    'domain-project-missing',
                    'is reserved for domain acme, but has no tag for b',
                    False,
                )
            ],
        ),
        'a deleted project': (
            OWN | tools_domains.tags('acme', 'ab'),
            {'acme': frozenset('a')},
            [
                (
                    'domain-project-left',
                    'lets in projects as those of domain acme, which the '
                    'domain does not have: b',
                    True,
                )
            ],
        ),
        'no such domain': (
            OWN,
            {'acme': None},
            [
                (
                    'domain-unknown',
                    'is reserved for domain acme, which does not exist',
                    False,
                )
            ],
        ),
        'a tag removed by hand': (
            tools_domains.tags('acme', 'a'),
            {'acme': frozenset('a')},
            [
                (
                    'domain-tag-missing',
                    'has tags of projects of a domain without a tag: '
                    'filter_tenant_id:domain:acme:a',
                    False,
                )
            ],
        ),
    },
)
def test_what_differs_from_a_domain_is_found(metadata, known, expected):
    assert findings(metadata, known) == expected


def test_a_cloud_file_has_the_domains():
    known = {'acme': frozenset('ab'), 'gone': None, 'new': frozenset()}
    snapshot = Snapshot('file', domains=known)
    saved = serialize.document(snapshot)
    assert saved['domains'] == [
        {'id': 'acme', 'projects': ['a', 'b']},
        {'id': 'gone', 'projects': None},
        {'id': 'new', 'projects': []},
    ]
    again = document.to_snapshot(saved, 'file')
    assert dataclasses.replace(again, settings={}) == snapshot


def test_a_cloud_file_has_the_names_in_keystone():
    project = tools_domains.Project('a', 'web', 'acme')
    known = tools_domains.Keystone({'acme': 'Acme'}, (project,))
    snapshot = Snapshot('file', keystone=known)
    saved = serialize.document(snapshot)
    assert saved['keystone'] == {
        'domains': [{'id': 'acme', 'name': 'Acme'}],
        'projects': [{'id': 'a', 'name': 'web', 'domain': 'acme'}],
    }
    again = document.to_snapshot(saved, 'file')
    assert dataclasses.replace(again, settings={}) == snapshot


def test_names_in_keystone_are_checked():
    saved = serialize.document(Snapshot('file'))
    web = {'id': 'a', 'name': 'web', 'domain': 'acne'}
    saved['keystone'] = {
        'domains': [{'id': 'acme', 'name': 'Acme'}],
        'projects': [web, web],
    }
    with pytest.raises(Contradictions) as caught:
        document.to_snapshot(saved, 'file')
    assert "also has the id 'a'" in str(caught.value)
    assert "'acne', which is no domain of this file" in str(caught.value)
