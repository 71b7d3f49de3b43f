# SPDX-License-Identifier: Apache-2.0
"""The commands that repair findings, safe to paste into a shell.

Things are named by their ids where these are known: names are neither unique
nor always told from ids by the ``openstack`` client.
"""

from collections.abc import Iterable
import shlex

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.placement.provider import Provider
from isolate_aggregates.request import Flavor, Image

PROGRAM = 'isolate-aggregates'

# Traits on hosts, memberships in Placement, and rollups, all at once.
SYNC = f'{PROGRAM} sync --apply'

# Later ones want the generation, which changes between audit and repair.
_MEMBERSHIP = '1.18'
_TRAITS = '1.6'
_CLASSES = '1.2'


def remove_host(aggregate: Aggregate, host: str) -> str:
    """Return the command that takes a host out of a host aggregate."""
    return _openstack('aggregate remove host', _id(aggregate), host)


def add_host(aggregate: Aggregate, host: str) -> str:
    """Return the command that puts a host into a host aggregate."""
    return _openstack('aggregate add host', _id(aggregate), host)


def unset_tag(aggregate: Aggregate, key: str) -> str:
    """Return the command that takes metadata off an aggregate."""
    return _openstack(f'aggregate unset {_property(key)}', _id(aggregate))


def replace_tag(aggregate: Aggregate, key: str, to: str, value: str) -> str:
    """Return the command that puts metadata in the place of other metadata."""
    put = _openstack(
        f'aggregate set {_property(f"{to}={value}")}', _id(aggregate)
    )
    return put if key == to else f'{unset_tag(aggregate, key)} && {put}'


def unset_spec(flavor: Flavor, key: str) -> str:
    """Return the command that takes an extra spec off a flavor."""
    return _openstack(
        f'flavor unset {_property(key)}', flavor.id or flavor.name
    )


def replace_spec(flavor: Flavor, key: str, to: str, value: str) -> str:
    """Return the command that puts an extra spec in another's place."""
    put = _openstack(
        f'flavor set {_property(f"{to}={value}")}', flavor.id or flavor.name
    )
    return put if key == to else f'{unset_spec(flavor, key)} && {put}'


def delete_flavor(flavor: Flavor) -> str:
    """Return the command that deletes a flavor."""
    return _openstack('flavor delete', flavor.id or flavor.name)


def unset_property(image: Image, key: str) -> str:
    """Return the command that takes a property off an image."""
    return _openstack(f'image unset {_property(key)}', image.id or image.name)


def set_members(provider: Provider, without: str) -> str:
    """Return the command that takes a provider out of a Placement aggregate.

    :param without: The uuid of the aggregate.
    """
    rest = sorted(provider.aggregates - {without})
    options = ''.join(f' --aggregate {shlex.quote(one)}' for one in rest)
    return _placement(
        _MEMBERSHIP, f'provider aggregate set{options}', provider.uuid
    )


def set_traits(provider: Provider, without: str) -> str:
    """Return the command that takes a trait off a provider."""
    rest = sorted(provider.traits - {without})
    options = ''.join(f' --trait {shlex.quote(one)}' for one in rest)
    return _placement(_TRAITS, f'provider trait set{options}', provider.uuid)


def enable_reservations(hosts: Iterable[str]) -> str:
    """Return the command that makes hosts ones for reservations."""
    names = sorted(hosts)
    # A name may look like an option.
    guard = ' --' if any(name.startswith('-') for name in names) else ''
    return f'{PROGRAM} reservation host enable{guard} {shlex.join(names)}'


def delete_class(resource_class: str) -> str:
    """Return the command that deletes a resource class."""
    return _placement(_CLASSES, 'class delete', resource_class)


def delete_provider(provider: Provider) -> str:
    """Return the command that deletes a resource provider."""
    return _placement('1.0', 'provider delete', provider.uuid)


def migrate(server_id: str, live: bool) -> str:
    """Return the command that lets the scheduler choose another host.

    :param live: Whether it is running.
    """
    if live:
        return _openstack('server migrate --live-migration --wait', server_id)
    cold = _openstack('server migrate --wait', server_id)
    return f'{cold} && {_openstack("server migrate confirm", server_id)}'


def _openstack(command: str, *names: str) -> str:
    # A name may look like an option.
    guard = ' --' if any(name.startswith('-') for name in names) else ''
    return f'openstack {command}{guard} {shlex.join(names)}'


def _placement(microversion: str, command: str, name: str) -> str:
    option = f'--os-placement-api-version {microversion}'
    return _openstack(f'{option} resource {command}', name)


def _property(text: str) -> str:
    # With "=" it may look like an option.
    if text.startswith('-'):
        return f'--property={shlex.quote(text)}'
    return f'--property {shlex.quote(text)}'


def _id(aggregate: Aggregate) -> str:
    return aggregate.name if aggregate.id is None else str(aggregate.id)
