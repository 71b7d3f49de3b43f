# SPDX-License-Identifier: Apache-2.0
"""What a cloud has, as the APIs of its services show it."""

import json

# Of images, what is there without anybody having set it.
_OF_IMAGES = frozenset({
    *('checksum', 'container_format', 'created_at', 'direct_url', 'file'),
    *('locations', 'name', 'os_hash_algo', 'os_hash_value', 'os_hidden'),
    *('owner', 'protected', 'schema', 'self', 'status', 'stores', 'tags'),
    *('updated_at', 'virtual_size'),
})  # fmt: skip
_OF_CLIENT = 'owner_specified.'
_SIZES = ('vcpus', 'ram', 'disk')
_POOL = 'aggregate freepool'
_RESERVATION = 'flavor reservation:'
_SLOTS = 'CUSTOM_RESERVATION_'
_ON_HOST = 'provider blazar_'


class CloudState:
    """Reads a cloud with the newest versions of its APIs.

    :param sdk: A connection of its administrator.
    """

    def __init__(self, sdk):
        self._sdk = sdk

    def read(self):
        """Return the attributes of each object, by its kind and name."""
        aggregates = self.nova('/os-aggregates')['aggregates']
        names = {one['uuid']: one['name'] for one in aggregates}
        found = {
            f'aggregate {one["name"]}': {
                'zone': one['availability_zone'],
                'hosts': sorted(one['hosts']),
                'metadata': one['metadata'],
            }
            for one in aggregates
        }
        flavors = self.nova('/flavors/detail?is_public=None')['flavors']
        for one in flavors:
            found[f'flavor {one["name"]}'] = self._flavor(one)
        for one in self._sdk.image.get('/images?limit=999').json()['images']:
            # Nova makes one of a server that is shelved.
            if one.get('image_type') == 'snapshot':
                continue
            found[f'image {one["name"]}'] = {
                key: value
                for key, value in one.items()
                if key not in _OF_IMAGES and not key.startswith(_OF_CLIENT)
            }
        for one in self.nova('/os-services?binary=nova-compute')['services']:
            found[f'service {one["host"]}'] = {
                'status': one['status'],
                'is_down': one['forced_down'],
            }
        servers = self.nova('/servers/detail?all_tenants=1')['servers']
        for one in servers:
            found[f'server {one["name"]}'] = {
                'host': one['OS-EXT-SRV-ATTR:host'],
                'status': one['status'],
            }
        for one in self.nova('/os-migrations')['migrations']:
            names[one['uuid']] = 'migration'
        listed = self.placement('/resource_providers')['resource_providers']
        for one in listed:
            found[f'provider {one["name"]}'] = self._provider(one, names)
        for trait in self.placement('/traits?name=startswith:CUSTOM_')[
            'traits'
        ]:
            found[f'trait {trait}'] = {}
        for one in self.placement('/resource_classes')['resource_classes']:
            found[f'class {one["name"]}'] = {}
        return _with_reservations(found)

    def nova(self, path):
        return self._sdk.compute.get(path, microversion='2.96').json()

    def placement(self, path):
        return self._sdk.placement.get(path, microversion='1.39').json()

    def _flavor(self, one):
        id_ = one['id']
        projects = (
            []
            if one['os-flavor-access:is_public']
            else [
                entry['tenant_id']
                for entry in self.nova(f'/flavors/{id_}/os-flavor-access')[
                    'flavor_access'
                ]
            ]
        )
        description = one['description']
        return {
            **{size: one[size] for size in _SIZES},
            'ephemeral': one['OS-FLV-EXT-DATA:ephemeral'],
            'swap': int(one['swap'] or 0),
            'description': description,
            'extra_specs': one['extra_specs'],
            'projects': sorted(projects),
            'is_public': one['os-flavor-access:is_public'],
        }

    def _provider(self, one, names):
        path = f'/resource_providers/{one["uuid"]}'
        aggregates = self.placement(f'{path}/aggregates')['aggregates']
        inventories = self.placement(f'{path}/inventories')['inventories']
        return {
            'traits': sorted(self.placement(f'{path}/traits')['traits']),
            'aggregates': sorted(names.get(uuid, uuid) for uuid in aggregates),
            'inventories': {
                name: found['total'] for name, found in inventories.items()
            },
            'consumers': sorted(
                names.get(uuid, uuid)
                for uuid in self.placement(f'{path}/allocations')[
                    'allocations'
                ]
            ),
        }


def _with_reservations(found):
    """Return the objects, with a reservation in place of its parts."""
    state = {
        thing: attributes
        for thing, attributes in found.items()
        if thing != _POOL
        and not thing.startswith((_RESERVATION, _ON_HOST))
        and _SLOTS not in thing
    }
    pool = found.get(_POOL)
    if pool:
        state['pool'] = {'hosts': pool['hosts']}
        for host in pool['hosts']:
            member = found[f'provider {host}']
            lists = ('aggregates', 'traits')
            state[f'provider {host}'] = {
                **member,
                **{
                    key: [
                        name
                        for name in member[key]
                        if name != 'freepool' and _SLOTS not in name
                    ]
                    for key in lists
                },
            }
    records = {
        thing.removeprefix(_RESERVATION): json.loads(one['description'])
        for thing, one in sorted(found.items())
        if thing.startswith(_RESERVATION) and one['description']
    }
    for id_ in {name[:36] for name in records if 'history' not in name}:
        flavor = found.get(_RESERVATION + id_)
        if flavor:
            own = {n: doc for n, doc in records.items() if n[:36] == id_}
            slots = _SLOTS + id_.upper().replace('-', '_')
            state[f'reservation {id_}'] = {
                'slots': {
                    thing.removeprefix(_ON_HOST): one['inventories'][slots]
                    for thing, one in found.items()
                    if thing.startswith(_ON_HOST)
                    and slots in one['inventories']
                },
                'projects': flavor['projects'],
                'end': own[max(own)]['end'],
            }
    return state


def differences(before, after):
    """Return what has changed: new attributes, or None for what is gone."""
    changed = {}
    for thing in before.keys() | after.keys():
        old, new = before.get(thing), after.get(thing)
        if old is None or new is None:
            changed[thing] = new
        elif old != new:
            changed[thing] = {
                key: new.get(key)
                for key in old.keys() | new.keys()
                if old.get(key) != new.get(key)
            }
    return changed
