# SPDX-License-Identifier: Apache-2.0
"""What openstacksdk does with Placement, as the page "Other tools" says."""

from openstack import connection, exceptions
from openstack.config import cloud_region
import pytest

TRAIT = 'CUSTOM_A'
VERSION = {'OpenStack-API-Version': 'placement 1.39'}


@pytest.fixture
def sdk(embedded):
    """Placement with the hosts h1, which has the trait, and h2."""
    embedded.put(f'/traits/{TRAIT}', headers=VERSION)
    for name, traits in (('h1', [TRAIT]), ('h2', [])):
        made = embedded.post(
            '/resource_providers', json={'name': name}, headers=VERSION
        ).json()
        for part, value in (
            ('inventories', {'VCPU': {'total': 4}}),
            ('traits', traits),
        ):
            path = f'/resource_providers/{made["uuid"]}'
            now = embedded.get(path, headers=VERSION).json()['generation']
            body = {part: value, 'resource_provider_generation': now}
            embedded.put(f'{path}/{part}', json=body, headers=VERSION)
    region = cloud_region.from_session(
        embedded.session,
        placement_api_version='1',
        placement_endpoint_override=embedded.get_endpoint(),
    )
    connected = connection.Connection(config=region)
    yield connected.placement
    connected.close()


def test_a_misspelt_filter_of_providers_returns_all(sdk):
    listed = sdk.resource_providers(requird=TRAIT)
    assert {provider.name for provider in listed} == {'h1', 'h2'}


def test_a_filter_of_candidates_is_refused_for_providers(sdk):
    """Each kind of object is asked for with another microversion."""
    asked = {'resources': 'VCPU:1', 'required': f'!{TRAIT}'}
    assert len([*sdk.allocation_candidates(**asked)]) == 1
    with pytest.raises(exceptions.BadRequestException):
        [*sdk.resource_providers(**asked)]
