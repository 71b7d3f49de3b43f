# SPDX-License-Identifier: Apache-2.0
"""Only extra specs with traits or reservations are parsed as such."""

import pytest

from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates.request import trait_requirements


@pytest.mark.parametrize(
    ('key', 'value', 'traits'),
    [
        ('trait:CUSTOM_A', 'required', {'CUSTOM_A'}),
        ('trait_NET:CUSTOM_A', 'required', {'CUSTOM_A'}),
        ('trait:CUSTOM_A', 'Required', set()),
        ('resources:CUSTOM_A', 'required', set()),
        ('os:secure_boot', 'required', set()),
    ],
)
def test_a_flavor_requires_traits_with_the_key_of_a_trait(key, value, traits):
    assert trait_requirements.required_traits({key: value}) == traits


@pytest.mark.parametrize(
    ('key', 'value', 'traits'),
    [
        ('trait:CUSTOM_A', 'required', {'CUSTOM_A'}),
        ('trait:CUSTOM_A', 'Required', set()),
        # Images cannot have suffixes.
        ('trait_NET:CUSTOM_A', 'required', set()),
        ('os_secure_boot', 'required', set()),
    ],
)
def test_an_image_requires_traits_with_the_key_of_a_trait(key, value, traits):
    assert trait_requirements.image_required_traits({key: value}) == traits


@pytest.mark.parametrize(
    ('key', 'value', 'classes'),
    [
        ('resources:CUSTOM_RESERVATION_1', '1', {'CUSTOM_RESERVATION_1'}),
        ('resources_R:CUSTOM_RESERVATION_1', '2', {'CUSTOM_RESERVATION_1'}),
        ('resources:CUSTOM_RESERVATION_1', '0', set()),
        ('resources:CUSTOM_RESERVATION_1', '00', set()),
        ('resources:CUSTOM_RESERVATION_1', 'one', set()),
        ('resources:CUSTOM_RESERVATION_1', '-1', set()),
        ('resources:CUSTOM_RESERVATION_1', '+1', {'CUSTOM_RESERVATION_1'}),
        ('resources:CUSTOM_RESERVATION_1', ' 1', {'CUSTOM_RESERVATION_1'}),
        ('resources:CUSTOM_RESERVATION_1', '1_0', {'CUSTOM_RESERVATION_1'}),
        ('resources:CUSTOM_OTHER', '1', set()),
        ('trait:CUSTOM_RESERVATION_1', '1', set()),
    ],
)
def test_the_class_of_an_instance_reservation_is_a_resource(
    key, value, classes
):
    assert xs.reservation_classes({key: value}) == classes
