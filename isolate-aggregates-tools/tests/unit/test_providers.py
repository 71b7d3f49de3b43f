# SPDX-License-Identifier: Apache-2.0
"""Changes to a provider are retried after conflicts."""

from http_fakes import PLACEMENT, client
import pytest
import requests

from isolate_aggregates import exception
from isolate_aggregates_tools.placement import edits, providers
from isolate_aggregates_tools.placement.client import PlacementClient

UUID = '00000000-0000-4000-8000-000000000001'
CHANGES = {
    'traits': edits.change_traits,
    'aggregates': edits.change_aggregates,
}


@pytest.fixture
def placement(monkeypatch):
    """A client that does not wait between attempts."""
    monkeypatch.setattr('tenacity.nap.time.sleep', lambda _: None)
    return PlacementClient(client(PLACEMENT))


class Provider:
    """A resource provider as Placement has it, by its rules.

    :param http: Where it answers.
    :param what: ``traits`` or ``aggregates``.
    """

    def __init__(self, http, what):
        self.what = what
        self.values = {'b'}
        self.generation = 7
        # How often somebody else writes between our reading and writing, and
        # how many answers to writing get lost.
        self.meddlers = 0
        # The status for a client that writes just after another one.
        self.conflict = 409
        self.lost = 0
        # How many writes the database aborts because of a deadlock, and how
        # many it commits although it reports one.
        self.deadlocks = 0
        self.untold = 0
        self.writes = 0
        url = f'{PLACEMENT}/resource_providers/{UUID}/{what}'
        http.get(url, json=lambda *_: self._document())
        http.put(url, json=self._put)

    def _document(self):
        return {
            self.what: sorted(self.values),
            'resource_provider_generation': self.generation,
        }

    def _put(self, request, context):
        self.writes += 1
        body = request.json()
        is_second = body['resource_provider_generation'] != self.generation
        if is_second:
            context.status_code = 409
        elif self.meddlers:
            self.values.add(f'other-{self.meddlers}')
            self.meddlers -= 1
            self.generation += 1
            context.status_code = self.conflict
            is_second = True
        if is_second:
            return {'errors': [{'detail': 'Another thread was faster.'}]}
        if self.deadlocks:
            self.deadlocks -= 1
            context.status_code = 500
            return {'errors': [{'detail': 'Deadlock found.'}]}
        self.values = set(body[self.what])
        self.generation += 1
        if self.lost:
            self.lost -= 1
            raise requests.ConnectionError('Connection reset by peer')
        if self.untold:
            self.untold -= 1
            context.status_code = 500
            return {'errors': [{'detail': 'The connection was lost.'}]}
        return self._document()


@pytest.fixture(params=['traits', 'aggregates'])
def provider(request, http):
    """A provider, once for its traits and once for its aggregates."""
    return Provider(http, request.param)


def change(placement, provider, by):
    """Change the provider."""
    return CHANGES[provider.what](placement, UUID, by)


def add_a(before):
    """Return the values with one more."""
    return before | {'a'}


def test_the_result_of_a_change_replaces_the_old_values(placement, provider):
    assert change(placement, provider, add_a) == ({'b'}, {'a', 'b'})
    assert provider.values == {'a', 'b'}
    assert change(placement, provider, lambda _: frozenset()) == (
        {'a', 'b'},
        frozenset(),
    )
    assert provider.values == set()


def test_an_unchanged_provider_is_not_written(placement, provider):
    assert change(placement, provider, lambda b: b) == ({'b'}, {'b'})
    assert provider.writes == 0


@pytest.mark.parametrize('conflict', [409, 500])
def test_a_second_writer_reads_again(placement, provider, conflict):
    provider.conflict = conflict
    provider.meddlers = 3
    before, after = change(placement, provider, add_a)
    others = {'other-1', 'other-2', 'other-3'}
    assert before == {'b', *others}
    assert provider.values == after == {'a', 'b', *others}


@pytest.mark.parametrize('conflict', [409, 500])
def test_a_writer_gives_up_after_ten_conflicts(placement, provider, conflict):
    provider.conflict = conflict
    provider.meddlers = 10
    with pytest.raises(
        exception.ServiceConflict,
        match='with 409: Another thread was faster',
    ):
        change(placement, provider, add_a)
    # After a 500 it is tried again with the old generation, too.
    assert provider.writes == {409: 10, 500: 20}[conflict]
    assert 'a' not in provider.values


def test_a_write_with_a_lost_answer_is_recognized(placement, provider):
    provider.lost = 1
    change(placement, provider, add_a)
    assert provider.values == {'a', 'b'}
    # Sent again with the old generation, which is rejected.
    assert provider.writes == 2


def test_a_write_that_succeeded_despite_a_500_is_recognized(
    placement, provider
):
    provider.untold = 1
    change(placement, provider, add_a)
    assert provider.values == {'a', 'b'}
    assert (provider.writes, provider.generation) == (2, 8)


def test_a_write_that_fails_with_a_deadlock_is_retried(placement, provider):
    provider.deadlocks = 4
    assert change(placement, provider, add_a) == ({'b'}, {'a', 'b'})
    assert provider.values == {'a', 'b'}
    assert provider.writes == 5


def test_a_missing_provider_is_reported(placement, http):
    for what in CHANGES:
        url = f'{PLACEMENT}/resource_providers/{UUID}/{what}'
        http.get(url, status_code=404, json={})
        with pytest.raises(exception.ServiceNotFound):
            CHANGES[what](placement, UUID, add_a)
    with pytest.raises(exception.ServiceNotFound):
        providers.traits(placement, UUID)
    with pytest.raises(exception.ServiceNotFound):
        placement.aggregates(UUID)


def test_a_failure_that_stays_is_tried_five_times(placement, http, provider):
    url = f'{PLACEMENT}/resource_providers/{UUID}/{provider.what}'
    put = http.put(url, status_code=500, text='no')
    with pytest.raises(exception.ServiceError, match='with 500'):
        change(placement, provider, add_a)
    assert put.call_count == 5


def test_a_refusal_is_not_retried(placement, http, provider):
    url = f'{PLACEMENT}/resource_providers/{UUID}/{provider.what}'
    put = http.put(url, status_code=403, text='no')
    with pytest.raises(exception.ServiceError, match='403'):
        change(placement, provider, add_a)
    assert put.call_count == 1


def test_an_answer_without_generation_is_no_answer(placement, http):
    url = f'{PLACEMENT}/resource_providers/{UUID}/traits'
    http.get(url, json={'traits': ['b']})
    with pytest.raises(exception.ServiceError, match='lacks expected data'):
        edits.change_traits(placement, UUID, add_a)


@pytest.mark.parametrize('status', [201, 204])
def test_creating_an_existing_trait_succeeds(placement, http, status):
    put = http.put(f'{PLACEMENT}/traits/CUSTOM_A', status_code=status)
    edits.create_trait(placement, 'CUSTOM_A')
    assert put.call_count == 1
