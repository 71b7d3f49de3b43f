# SPDX-License-Identifier: Apache-2.0
"""Validates the extra specs that our filters read, in Nova's API.

Nova loads the modules under the entry point ``nova.api.extra_spec_validators``
and, from compute microversion 2.86 on, rejects flavor extra specs that are
invalid or misspelled (`Flavor extra spec validators
<https://docs.openstack.org/nova/latest/configuration/extra-specs.html>`_).
"""

from nova.api.validation.extra_specs import base

EXTRA_SPEC_VALIDATORS = [
    base.ExtraSpecValidator(
        name='reservation:{reservation}',
        description=(
            'Place servers on the hosts of this reservation: those of the '
            'aggregates whose metadata has the same key. The value is ignored.'
        ),
        value={'type': str},
        parameters=[
            {
                'name': 'reservation',
                # The id or name of a reservation.
                'pattern': r'[a-zA-Z0-9_.-]{1,243}',
            },
        ],
    ),
]


def register() -> list[base.ExtraSpecValidator]:
    """Return the validators; called by Nova."""
    return EXTRA_SPEC_VALIDATORS
