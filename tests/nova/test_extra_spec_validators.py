# SPDX-License-Identifier: Apache-2.0
"""Nova's API accepts reservation extra specs, and refuses misspelt ones."""

from nova import exception
from nova.api.validation.extra_specs import validators
import pytest


@pytest.mark.parametrize(
    'name',
    [
        'reservation:4d17d41a-830d-47b2-91c7-4f9fc0ae611e',
        'reservation:team_A.2026',
    ],
)
def test_a_reservation_by_id_or_name_is_accepted(name):
    validators.validate(name, 'true')


@pytest.mark.parametrize('name', ['reservation:', 'reservation:a b'])
def test_a_reservation_without_a_proper_name_is_refused(name):
    with pytest.raises(exception.ValidationError):
        validators.validate(name, 'true')
