# SPDX-License-Identifier: Apache-2.0
"""Lets Nova's API check the extra specs that our filters read.

Nova loads the modules under the entry point ``nova.api.extra_spec_validators``
and, from compute microversion 2.86 on, refuses flavor extra specs that look
like a known one but are not (`Flavor extra spec validators
<https://docs.openstack.org/nova/latest/configuration/extra-specs.html>`_).
"""

from nova.api.validation.extra_specs import base

EXTRA_SPEC_VALIDATORS = [
    base.ExtraSpecValidator(
        name='reservation:{reservation}',
        description=(
            'Place servers on the hosts of this reservation: those of the '
            'aggregates whose metadata has the same key. The value is not '
            'looked at.'
        ),
        value={'type': str},
        parameters=[
            {
                'name': 'reservation',
                # An id or a name.
                'pattern': r'[a-zA-Z0-9_.-]{1,243}',
            },
        ],
    ),
]


def register() -> list[base.ExtraSpecValidator]:
    """Return the validators, as Nova asks for them."""
    return EXTRA_SPEC_VALIDATORS
