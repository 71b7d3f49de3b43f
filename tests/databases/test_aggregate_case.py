# SPDX-License-Identifier: Apache-2.0
"""Aggregates whose uuid somebody wrote in upper case, in Placement.

As the page "Known Placement bugs" says, it depends on the database whether it
is the aggregate that Nova knows.
"""

import placement_service
import pytest
import sqlalchemy as sa

OURS = '5dde4b13-764a-5a81-93fd-8ecdac212f2f'
FIRST = 'a3d0b8c1-6e52-4f7b-9c1d-2e8f7a6b5c4d'


@pytest.mark.slow
def test_upper_case_is_another_aggregate_on_some_databases(server, folder):
    place = folder / f'case-{server.NAME}'
    place.mkdir()
    with placement_service.running(server, place) as placement:
        hosts = {}

        def join(host, aggregate):
            uuid = placement.provider({'VCPU': 4})
            hosts[uuid] = host
            write(uuid, [aggregate])

        def write(uuid, aggregates):
            path = f'/resource_providers/{uuid}'
            generation = placement.call('GET', path).json()['generation']
            answer = placement.call(
                'PUT',
                f'{path}/aggregates',
                {
                    'aggregates': aggregates,
                    'resource_provider_generation': generation,
                },
            )
            assert answer.status_code == 200

        def members(query):
            answer = placement.call(
                'GET', f'/allocation_candidates?resources=VCPU:1&{query}'
            )
            found = answer.json()['provider_summaries']
            return {hosts[uuid] for uuid in found}

        join('lower', OURS)
        join('upper', OURS.upper())
        join('upper first', FIRST.upper())
        join('lower afterwards', FIRST)
        here, other = {
            'MariaDB': ({'lower', 'upper'}, set()),
            'PostgreSQL': ({'lower'}, {'upper'}),
        }[server.NAME]
        assert members(f'member_of={OURS}') == here
        assert members(f'member_of={OURS.upper()}') == other
        # The one that comes first decides how MariaDB writes it.
        here, other = {
            'MariaDB': (set(), {'upper first', 'lower afterwards'}),
            'PostgreSQL': ({'lower afterwards'}, {'upper first'}),
        }[server.NAME]
        assert members(f'member_of={FIRST}') == here
        assert members(f'member_of={FIRST.upper()}') == other
        assert here.isdisjoint(members(f'member_of=!{FIRST}'))
        if server.NAME == 'PostgreSQL':
            return
        # Neither leaving nor joining again mends it.
        for uuid in hosts:
            write(uuid, [])
            write(uuid, [FIRST])
        assert members(f'member_of={FIRST}') == set()
        engine = sa.create_engine(placement.database)
        with engine.begin() as connection:
            connection.exec_driver_sql(
                'UPDATE placement_aggregates SET uuid = LOWER(uuid)'
            )
        engine.dispose()
        assert members(f'member_of={FIRST}') == {*hosts.values()}
