# SPDX-License-Identifier: Apache-2.0
"""Cyborg's API: the request groups of device profiles.

See the `Accelerator API reference
<https://docs.openstack.org/api-ref/accelerator/>`_.
"""

from collections.abc import Mapping
from typing import Any
from urllib import parse

from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates_tools import api_client, errors
from isolate_aggregates_tools.request import ResourceGroup
from isolate_aggregates_tools.request.resources import requested_amount


class CyborgClient(api_client.ApiClient):
    """Cyborg's API."""

    NAME = 'Cyborg'
    TYPE = 'accelerator'

    def groups(self, profile: str, owner: str = '') -> list[ResourceGroup]:
        """Return the request groups of a device profile."""
        query = parse.urlencode({'name': profile})
        root = api_client.root(self._service, 'v2')
        path = f'{root}/device_profiles?{query}'
        groups = self._service.parsed(
            path,
            lambda document: [
                dict(group)
                for each in document['device_profiles']
                if each['name'] == profile
                for group in each['groups']
            ],
            self._service.get(path),
        )
        if not groups:
            raise errors.NotFound(
                'device profile',
                profile,
                f'Cyborg at {self._service.endpoint}',
            )
        return [
            _group(f'device_profile_{number}{owner}', group)
            for number, group in enumerate(groups)
        ]


def _group(suffix: str, group: Mapping[str, Any]) -> ResourceGroup:
    specs = list(xs.parse({key: _text(value) for key, value in group.items()}))

    def traits(value: str) -> frozenset[str]:
        return frozenset(
            spec.name
            for spec in specs
            if (spec.kind, spec.value) == ('trait', value)
        )

    return ResourceGroup(
        suffix,
        {
            spec.name: amount
            for spec in specs
            if (amount := requested_amount(spec)) is not None
        },
        traits(xs.REQUIRED),
        traits(xs.FORBIDDEN),
    )


def _text(value: Any) -> str:
    """Return a value of a group as an extra spec has it.

    Cyborg accepts any JSON, and Nova calls ``int``, which cuts off fractions.
    """
    return str(int(value) if isinstance(value, (bool, float)) else value)
