# SPDX-License-Identifier: Apache-2.0
"""``provider set`` and ``provider unset`` on a real Placement."""

import json
import pathlib

from cases import cases
from live_example import ISOLATE
import pytest

from isolate_aggregates_tools import marks
from isolate_aggregates_tools.placement import edits, generations

TRAIT = 'CUSTOM_RACK'
ROOT = pathlib.Path(__file__).parents[3]
GROUP = '5e5fd1a8-3a21-4d6f-b0fd-6a9c7f25b1d4'
OTHERS = {'COMPUTE_VOLUME_ATTACH', 'CUSTOM_OF_OTHERS'}
OTHER_GROUP = '0b6b3e5e-7d3c-4f0e-8b8e-0f1f3f1b5a77'


@pytest.fixture
def does(run, live, config, in_environment):
    def does(*arguments):
        return run('--config-file', config(ISOLATE), *arguments, '--yes')

    return does


@pytest.fixture
def node(live):
    """A provider that others have given traits and a membership."""
    provider = live.placement.resource_providers()[0]
    for trait in (*OTHERS, TRAIT, marks.of_trait(TRAIT)):
        if trait.startswith('CUSTOM_'):
            edits.create_trait(live.placement, trait)
    edits.change_traits(live.placement, provider['uuid'], OTHERS.union)
    edits.change_aggregates(
        live.placement, provider['uuid'], {OTHER_GROUP}.union
    )
    return provider


def state(live, node):
    uuid = node['uuid']
    return tuple(
        edits.providers.read(live.placement, uuid, what)[0]
        for what in ('traits', 'aggregates')
    )


@cases('key', {'name': 'name', 'uuid': 'uuid'})
def test_a_trait_is_added_and_removed_alone(does, live, node, key):
    before = state(live, node)
    for _ in range(2):
        assert does('provider', 'set', node[key], '--trait', TRAIT).code == 0
    assert state(live, node) == (before[0] | {TRAIT}, before[1])
    for _ in range(2):
        assert does('provider', 'unset', node[key], '--trait', TRAIT).code == 0
    assert state(live, node) == before


def test_a_membership_is_added_and_removed_alone(does, live, node):
    before = state(live, node)
    words = (node['uuid'], '--aggregate', GROUP)
    assert does('provider', 'set', *words).code == 0
    assert state(live, node) == (before[0], before[1] | {GROUP})
    assert does('provider', 'unset', *words).code == 0
    assert state(live, node) == before


def test_a_missing_trait_is_created(does, live, node):
    before = state(live, node)
    assert (
        does('provider', 'set', node['name'], '--trait', 'CUSTOM_NEW_ONE').code
        == 0
    )
    assert state(live, node) == (before[0] | {'CUSTOM_NEW_ONE'}, before[1])


def test_the_mark_of_a_trait_goes_with_it(does, live, node):
    before = state(live, node)
    marked = {TRAIT, marks.of_trait(TRAIT)}
    edits.change_traits(live.placement, node['uuid'], marked.union)
    does('provider', 'unset', node['name'], '--trait', TRAIT)
    assert state(live, node) == before


@cases('part', {'traits': 'traits', 'aggregates': 'aggregates'})
def test_what_others_change_meanwhile_stays(
    does, live, node, part, monkeypatch
):
    """Another client writes between our reading and our writing."""
    traits, aggregates = state(live, node)
    edits.change_traits(live.placement, node['uuid'], {TRAIT}.union)
    edits.change_aggregates(live.placement, node['uuid'], {GROUP}.union)
    edits.create_trait(live.placement, 'CUSTOM_LATE')
    late = {
        'traits': 'CUSTOM_LATE',
        'aggregates': '7a3c4a3e-51a0-4a3b-b6a0-0d4f5a0c9f10',
    }[part]
    replace, has_written = generations.replace, []

    def interrupted(placement, provider, what, value, generation):
        if not has_written:
            has_written.append(what)
            change = (
                edits.change_traits
                if part == 'traits'
                else edits.change_aggregates
            )
            change(live.placement, provider, {late}.union)
        return replace(placement, provider, what, value, generation)

    monkeypatch.setattr(generations, 'replace', interrupted)
    option, name = (
        ('--trait', TRAIT) if part == 'traits' else ('--aggregate', GROUP)
    )
    assert does('provider', 'unset', node['uuid'], option, name).code == 0
    assert has_written == [part]
    now = dict(zip(('traits', 'aggregates'), state(live, node), strict=True))
    kept = traits if part == 'traits' else aggregates
    assert now[part] == kept | {late}


def test_a_trait_of_nova_compute_is_refused(does, live, node):
    before = state(live, node)
    result = does('provider', 'set', node['name'], '--trait', 'COMPUTE_NODE')
    assert result.code == 1
    assert result.err.startswith('Trait COMPUTE_NODE cannot be added to a ')
    assert state(live, node) == before


def test_no_trait_is_added_beside_its_opposite(does, live, node, monkeypatch):
    attested = 'CUSTOM_TRUSTED_FALSE'
    trusted = ('provider', 'set', node['name'], '--trait')
    edits.create_trait(live.placement, attested)
    change = edits.change_traits

    def late(placement, uuid, edit):
        """Add the opposite after it was read that there is none."""
        change(placement, uuid, {attested}.union)
        change(placement, uuid, edit)

    with monkeypatch.context() as patch:
        patch.setattr(edits, 'change_traits', late)
        result = does(*trusted, 'CUSTOM_TRUSTED_TRUE')
    before = state(live, node)
    assert attested in before[0]
    assert 'CUSTOM_TRUSTED_TRUE' not in before[0]
    assert (result.code, result.err) == (
        1,
        'Trait CUSTOM_TRUSTED_TRUE cannot be added to provider '
        f'{node["name"]}: another program keeps CUSTOM_TRUSTED_FALSE, which '
        'contradicts it; remove that one first if it is wrong.\n',
    )
    assert does(*trusted, 'CUSTOM_TRUSTED_TRUE').code == 1
    assert state(live, node) == before
    # Once it is removed, nothing contradicts.
    does('provider', 'unset', node['name'], '--trait', attested)
    assert does(*trusted, 'CUSTOM_TRUSTED_TRUE').code == 0


@cases(
    'words, code, problem',
    {
        'a provider': (('nowhere', '--trait', TRAIT), 1, 'nowhere'),
        'an aggregate': (('', '--aggregate', 'nowhere'), 1, 'nowhere'),
        'what is no trait': (('', '--trait', 'no trait'), 2, "'no trait'"),
    },
)
def test_an_unknown_name_is_refused(does, node, words, code, problem):
    provider, *more = words
    result = does('provider', 'unset', provider or node['name'], *more)
    assert result.code == code
    assert problem in result.err


def test_without_consent_nothing_changes(
    run, live, node, config, in_environment
):
    before = state(live, node)
    result = run(
        '--config-file', config(ISOLATE),
        *('provider', 'set', node['name'], '--trait', TRAIT),
        *('--dry-run', '-f', 'json'),
    )  # fmt: skip
    assert result.code == 3
    assert [c['change'] for c in json.loads(result.out)['changes']] == [
        f'add trait {TRAIT} to provider {node["name"]}'
    ]
    assert state(live, node) == before


@cases('action', {'set': 'set', 'unset': 'unset'})
def test_a_cloud_file_shows_what_would_change(run, action):
    trait = {'set': 'CUSTOM_NEW', 'unset': 'CUSTOM_LICENSED_WINDOWS'}[action]
    result = run(
        *('provider', action, 'win-1', '--trait', trait, '--snapshot'),
        *(str(ROOT / 'examples/windows-licensing.yaml'), '-f', 'json'),
    )
    assert (result.code, result.err) == (3, '')
    assert trait in json.loads(result.out)['changes'][-1]['change']
