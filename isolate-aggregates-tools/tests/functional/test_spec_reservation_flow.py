# SPDX-License-Identifier: Apache-2.0
"""The reservation flow of the forbidden aggregates spec, step by step.

It is in the section "Developer impact" of "Support filtering by forbidden
aggregate membership".
https://docs.openstack.org/placement/latest/specs/train/implemented/2005297-negative-aggregate-membership.html
"""

from urllib import parse

from cases import cases
import pytest

from isolate_aggregates import exception
from isolate_aggregates.decision import decide
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates_tools.mirrored import chain
from isolate_aggregates_tools.request import Request

EXAMPLE = 'reservations'

# The example has the free pool of step 1 and the reservation of step 2.
POOL = 'reservation:2e1dfa7c'
LEASE = 'reservation:4d17d41a'

TWO_PREFIXES = """
settings:
  scheduler:
    placement_req_required_member_prefix: ['reservation:', 'rack:']
    placement_req_default_forbidden_member_prefix: ['reservation:', 'rack:']
aggregates:
- {name: lease-1, metadata: {'reservation:1': 'true'}, hosts: [a1, b1]}
- {name: lease-2, metadata: {'reservation:2': 'true'}, hosts: [a2]}
- {name: rack-a, metadata: {'rack:a': 'true'}, hosts: [a1, a2, a3]}
- {name: rack-b, metadata: {'rack:b': 'true'}, hosts: [b1]}
- {name: untagged, metadata: {rack: a}, hosts: [c1]}
providers:
- {name: a1, inventories: {VCPU: 8}}
- {name: a2, inventories: {VCPU: 8}}
- {name: a3, inventories: {VCPU: 8}}
- {name: b1, inventories: {VCPU: 8}}
- {name: c1, inventories: {VCPU: 8}}
- {name: c2, inventories: {VCPU: 8}}
"""


@pytest.fixture
def racks(cloud_from):
    return cloud_from(TWO_PREFIXES)


def flavor(*keys):
    return Flavor('f', vcpus=1, extra_specs=dict.fromkeys(keys, 'true'))


def hosts(outcome):
    return [host.name for host in outcome.hosts]


def member_of(outcome):
    """Return the values of member_of in the query that was sent."""
    query = parse.parse_qs(outcome.query.to_querystring())
    return query.get('member_of', [])


def test_step_0_without_prefixes_the_metadata_means_nothing(cloud, conf):
    """Both options are empty unless the operator sets them."""
    assert conf.scheduler.placement_req_required_member_prefix == []
    assert conf.scheduler.placement_req_default_forbidden_member_prefix == []
    destination = decide(
        Request(flavor(LEASE)), cloud.index, chain.as_in_nova(conf)
    ).destination
    assert destination.required_aggregates == []
    assert destination.forbidden_aggregates == set()


@cases(
    ('size', 'image', 'project'),
    {
        'in the flavor': ('reserved.small', None, None),
        'in the image': ('m1.small', 'reserved-debian-12', 'demo'),
        'in both': ('reserved.small', 'reserved-debian-12', None),
        'in the flavor, not the image': (
            'reserved.small',
            'debian-12',
            'other',
        ),
    },
)
def test_step_3_a_named_reservation_is_required_and_nothing_forbidden(
    cloud, find, size, image, project
):
    """An operator writes flavors; an image counts in its owner's project."""
    outcome = find(
        cloud,
        cloud.flavor(size),
        cloud.image(image) if image else None,
        project,
    )
    lease = cloud.uuid('lease-4d17d41a')
    assert outcome.decision.destination.required_aggregates == [
        frozenset([lease])
    ]
    assert outcome.decision.destination.forbidden_aggregates == set()
    assert member_of(outcome) == [f'in:{lease}']
    assert hosts(outcome) == ['reserved-1']


@pytest.mark.parametrize('image', [None, 'debian-12'])
def test_step_4_without_a_reservation_all_are_forbidden_and_none_required(
    cloud, find, image
):
    outcome = find(
        cloud, cloud.flavor('m1.small'), cloud.image(image) if image else None
    )
    kept = sorted(cloud.uuids('free-pool', 'lease-4d17d41a'))
    assert outcome.decision.destination.required_aggregates == []
    assert outcome.decision.destination.forbidden_aggregates == set(kept)
    assert member_of(outcome) == [f'!in:{",".join(kept)}']
    assert hosts(outcome) == ['open-1', 'open-2']


def test_a_reservation_that_does_not_exist_is_refused_by_its_key(cloud, find):
    """The spec would send it unconstrained: no aggregate has that key.

    It finds no aggregate to require and, as the flavor does name the prefix,
    none to forbid; the server could land on any reserved host.
    """
    with pytest.raises(exception.RequestRefused) as caught:
        find(cloud, cloud.flavor('ended.small'))
    assert str(caught.value) == (
        'Request refused: no aggregate has the metadata key '
        'reservation:0badcafe, which the request names.'
    )


def test_a_reservation_of_another_project_is_refused_to_an_image(cloud, find):
    """The specification would admit every tenant with the key on an image."""
    size = cloud.flavor('m1.small')
    image = cloud.image('reserved-debian-12')
    with pytest.raises(exception.RequestRefused) as caught:
        find(cloud, size, image, 'other')
    assert str(caught.value) == (
        'Request refused: reservation:4d17d41a is named by the image or a '
        'hint, but project other does not own it.'
    )
    with pytest.raises(exception.RequestRefused):
        find(cloud, size, image, None)


@pytest.mark.parametrize(
    ('size', 'image'),
    [
        pytest.param(flavor(LEASE), {'reservation:0badcafe': 'true'}),
        pytest.param(flavor('reservation:0badcafe'), {LEASE: 'true'}),
    ],
    ids=['unknown in the image', 'unknown in the flavor'],
)
def test_one_unknown_reservation_among_known_ones_is_refused(
    cloud, find, size, image
):
    with pytest.raises(exception.RequestRefused, match='0badcafe'):
        find(cloud, size, Image('i', properties=image), 'demo')


def test_several_reservations_of_one_prefix_are_alternatives(cloud, find):
    image = Image('i', properties={LEASE: 'true'})
    outcome = find(cloud, flavor(POOL), image, 'demo')
    either = sorted(cloud.uuids('free-pool', 'lease-4d17d41a'))
    assert member_of(outcome) == [f'in:{",".join(either)}']
    assert hosts(outcome) == ['free-1', 'reserved-1']


@cases(
    ('keys', 'names'),
    {
        'no key stays out of everything': ([], ['c1', 'c2']),
        'in the lease and the rack': (['reservation:1', 'rack:a'], ['a1']),
        'in either lease, and in the rack': (
            ['reservation:1', 'reservation:2', 'rack:a'],
            ['a1', 'a2'],
        ),
        'no host is in both': (['reservation:2', 'rack:b'], []),
        'in the rack, but in no lease of another': (['rack:a'], ['a3']),
        'in the lease, but in no rack unasked': (['reservation:1'], []),
    },
)
def test_each_prefix_must_be_satisfied(racks, find, keys, names):
    assert hosts(find(racks, flavor(*keys))) == names


def test_the_value_of_a_key_is_ignored(racks, find):
    """Only the key is compared, so the value may be false."""
    named = Flavor(
        'f', vcpus=1, extra_specs={'reservation:2': '', 'rack:a': 'false'}
    )
    assert hosts(find(racks, named)) == ['a2']
