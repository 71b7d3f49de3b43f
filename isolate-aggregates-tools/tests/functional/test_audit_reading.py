# SPDX-License-Identifier: Apache-2.0
"""What an audit reads from a live cloud: all of it, or it fails."""

import dataclasses
import json
import re

from http_fakes import GLANCE, NOVA, TOKEN, FakeGlance, connection
from live_example import ISOLATE
import pytest
import requests

from isolate_aggregates import exception
from isolate_aggregates_tools.compute import servers as cloud_servers
from isolate_aggregates_tools.compute.client import NovaClient
from isolate_aggregates_tools.testing import make_image

WINDOWS = {'trait:CUSTOM_LICENSED_WINDOWS': 'required'}


def detail(name, host='linux-1', image='', extra_specs=None, **more):
    """Return a server as Nova shows it to administrators."""
    return {
        'id': f'id-{name}',
        'name': name,
        'tenant_id': 'demo',
        'status': 'ACTIVE',
        'OS-EXT-SRV-ATTR:host': host,
        'image': {'id': image} if image else '',
        'flavor': {
            'original_name': 'm1.small',
            'vcpus': 1,
            'ram': 64,
            'disk': 1,
            'ephemeral': 0,
            'swap': 0,
            'extra_specs': extra_specs or {},
        },
        **more,
    }


class Servers:
    """The servers in a fake Nova.

    :param http: The HTTP mock.
    :param found: The servers.
    :param down: The ids of servers in cells that are down.
    :param page: The maximum page size.
    """

    def __init__(self, http, details, down=(), page=1000):
        self._found = details
        self._down = down
        self._page = page
        self.versions = set()
        http.get(f'{NOVA}/servers', json=self._names)
        http.get(f'{NOVA}/servers/detail', json=self._details)

    def _names(self, request, context):
        assert request.qs['all_tenants'] == ['1']
        # With either, Nova does not tell of cells that are down.
        assert not {'limit', 'marker'} & request.qs.keys()
        found = [
            {'id': one, 'status': 'UNKNOWN', 'links': []} for one in self._down
        ]
        found += [{'id': s['id'], 'name': s['name']} for s in self._found]
        return {'servers': found[: self._page]}

    def _details(self, request, context):
        assert request.qs['all_tenants'] == ['1']
        self.versions.add(request.headers['OpenStack-API-Version'])
        ids = [server['id'] for server in self._found]
        [marker] = request.qs.get('marker', [None])
        start = ids.index(marker) + 1 if marker else 0
        return {'servers': self._found[start : start + self._page]}


def unplanned(result):
    """Return the findings but that of the host that is in maintenance."""
    return [
        finding
        for finding in json.loads(result.out)['findings']
        if finding['kind'] != 'service-disabled'
    ]


@pytest.fixture
def audit(run, config, live, in_environment):
    """Audit the servers of the example as a live cloud; return the report."""
    path = config(ISOLATE)

    def run_audit():
        result = run(
            *('--config-file', path, 'audit', '--servers', '-f', 'json')
        )
        assert result.err == ''
        return unplanned(result)

    return run_audit


@pytest.mark.parametrize('page', [1, 2, 1000])
def test_all_pages_are_read(audit, http, page):
    Servers(
        http,
        [
            detail('a', 'win-1'),
            detail('b', 'win-1', extra_specs=WINDOWS),
            detail('c', 'linux-1'),
            detail('d', 'win-2'),
        ],
        page=page,
    )
    judged = [f for f in audit() if f['kind'] == 'server-not-evaluated']
    assert [f['subject'] for f in judged] == [
        'server a (id-a)',
        'server d (id-d)',
    ]


def test_a_repeated_page_is_a_failure(http, live, in_environment):
    http.get(f'{NOVA}/servers', json={'servers': []})
    http.get(f'{NOVA}/servers/detail', json={'servers': [detail('a')]})
    with pytest.raises(exception.ServiceError, match='id-a again'):
        list(NovaClient(connection()).servers())


def test_servers_that_cannot_be_read_are_reported(audit, http):
    Servers(http, [detail('a')], down=['x', 'y'])
    found = {f['kind']: f['subject'] for f in audit()}
    assert found['servers-out-of-reach'] == 'servers: 2'


def test_unlisted_images_are_looked_up_once(audit, http, live):
    hidden = make_image('hidden', WINDOWS)
    FakeGlance(images=[hidden]).answer(http)
    http.get(f'{GLANCE}/v2/images', json={'images': []})
    asked = http.get(
        f'{GLANCE}/v2/images/{hidden.id}',
        json={'id': hidden.id, 'name': 'hidden', **hidden.properties},
    )
    Servers(
        http, [detail(name, 'win-1', hidden.id) for name in ('a', 'b', 'c')]
    )
    assert audit() == []
    assert asked.call_count == 1


def test_a_deleted_image_is_unknown(audit, http):
    gone = make_image('gone').id
    Servers(http, [detail('a', 'win-1', gone)])
    kinds = {f['kind'] for f in audit()}
    assert kinds == {'server-not-evaluated', 'servers-image-unknown'}


@pytest.mark.parametrize(
    ('newest', 'version'),
    [
        ('2.69', '2.69'),
        ('2.96', '2.96'),
        ('2.100', '2.100'),
        ('2.105', '2.100'),
    ],
)
def test_the_microversion_that_nova_supports_is_used(
    audit, http, live, newest, version
):
    live.nova.newest = newest
    told = Servers(http, [detail('a')])
    audit()
    assert told.versions == {f'compute {version}'}


def test_a_nova_that_omits_cells_silently_is_too_old(
    run, config, http, live, in_environment
):
    live.nova.newest = '2.68'
    result = run('--config-file', config(ISOLATE), 'audit', '--servers')
    assert (result.code, result.out) == (1, '')
    assert '2.69 (Stein)' in result.err


def test_servers_without_hosts_are_a_failure(
    run, config, http, live, in_environment
):
    server = detail('a')
    del server['OS-EXT-SRV-ATTR:host']
    Servers(http, [server])
    result = run('--config-file', config(ISOLATE), 'audit', '--servers')
    assert (result.code, result.out) == (1, '')
    assert 'OS-EXT-SRV-ATTR:host' in result.err


@pytest.mark.parametrize(
    ('hint_lists', 'hints'),
    [
        (None, {}),
        ({'group': 'a'}, {'group': ('a',)}),
        ({'reservation': ['a', 'b']}, {'reservation': ('a', 'b')}),
    ],
)
def test_hints_can_have_several_values(hint_lists, hints):
    found = cloud_servers.hints_from('server', hint_lists)
    assert found.get('scheduler_hints', {}) == hints


# Repairing.


@pytest.fixture
def broken(run, config, http, live, in_environment):
    """Audit and fix the example, one of whose hosts lacks the trait."""
    path = config(ISOLATE)
    [node] = [n for n in live.nova.nodes if n.name == 'linux-1']
    [aggregate] = [a for a in live.nova.aggregates if a.name == 'win-hosts']
    live.nova.aggregates[:] = [
        dataclasses.replace(aggregate, hosts=aggregate.hosts | {'linux-1'})
    ]
    url = f'{live.placement_url}/resource_providers/{node.uuid}/traits'

    def fix(*arguments):
        result = run(
            *('--config-file', path, 'audit', '-f', 'json', '--fix'),
            *arguments,
        )
        traits = requests.get(
            url,
            headers={
                'X-Auth-Token': TOKEN,
                'OpenStack-API-Version': 'placement 1.6',
            },
            timeout=9,
        ).json()['traits']
        return result, 'CUSTOM_LICENSED_WINDOWS' in traits

    return fix


def test_audit_and_its_repairs_use_one_token(broken, http):
    broken('--yes')
    tokens = [r for r in http.request_history if r.path == '/v3/auth/tokens']
    assert len(tokens) == 1


def test_fix_makes_safe_repairs_and_audits_again(broken):
    result, has_trait = broken('--yes')
    assert (result.code, has_trait) == (0, True)
    # The text of the repair is not part of the document.
    assert unplanned(result) == []


def test_a_failed_repair_is_reported(broken, http, live):
    http.put(re.compile(f'{live.placement_url}/.*/traits'), status_code=500)
    result, has_trait = broken('--yes')
    assert (result.code, has_trait) == (4, False)
    assert 'sync ended with status 1.' in result.err
    assert json.loads(result.out)['summary']['error'] == 1


def test_no_prompt_without_repairs(run, config, live, in_environment):
    result = run('--config-file', config(ISOLATE), 'audit', '--fix')
    assert (result.code, result.err) == (0, '')
