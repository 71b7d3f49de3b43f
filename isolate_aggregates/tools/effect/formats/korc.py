# SPDX-License-Identifier: Apache-2.0
"""Reads manifests of the Kubernetes operator ORC.

`ORC <https://k-orc.cloud>`_, the openstack-resource-controller, has the kinds
``Flavor`` and ``Image`` (``api/v1alpha1/flavor_types.go`` and
``image_types.go``). No release has a kind for host aggregates. ORC changes
only the extra specs of a flavor and the visibility of an image; Kubernetes
refuses all other changes. An image can have only the properties that
``_PROPERTIES`` lists, none of which is a trait.
"""

from collections.abc import Iterator, Mapping
import functools
from types import MappingProxyType

from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.text import listed, quoted
from isolate_aggregates.tools.advice import commands
from isolate_aggregates.tools.cloud.snapshot import Snapshot
from isolate_aggregates.tools.effect.formats import planned
from isolate_aggregates.tools.effect.formats.documents import Part
from isolate_aggregates.tools.effect.formats.planned import Item, Step, Unread

_GROUP = 'openstack.k-orc.cloud/'

# Kinds of Kubernetes that change nothing in a cloud.
_BESIDE = ('Namespace', 'Secret')

# The properties in Glance, by their path in a manifest.
_PROPERTIES: Mapping[tuple[str, ...], str] = MappingProxyType(
    {
        ('architecture',): 'architecture',
        ('hypervisorType',): 'hypervisor_type',
        ('hardware', 'cpuSockets'): 'hw_cpu_sockets',
        ('hardware', 'cpuCores'): 'hw_cpu_cores',
        ('hardware', 'cpuThreads'): 'hw_cpu_threads',
        ('hardware', 'cpuPolicy'): 'hw_cpu_policy',
        ('hardware', 'cpuThreadPolicy'): 'hw_cpu_thread_policy',
        ('hardware', 'cdromBus'): 'hw_cdrom_bus',
        ('hardware', 'diskBus'): 'hw_disk_bus',
        ('hardware', 'scsiModel'): 'hw_scsi_model',
        ('hardware', 'vifModel'): 'hw_vif_model',
        ('hardware', 'rngModel'): 'hw_rng_model',
        ('hardware', 'qemuGuestAgent'): 'hw_qemu_guest_agent',
        ('operatingSystem', 'distro'): 'os_distro',
        ('operatingSystem', 'version'): 'os_version',
    }
)
_SIZES = ('vcpus', 'ram', 'disk', 'ephemeral', 'swap')


def items(documents: Part, _region: str | None) -> Iterator[Item]:
    """Yield the manifests; those of other kinds are not read.

    :raises ChangesFileError: if there is none of ORC's kinds.
    """
    is_found = False
    for manifest in _manifests(documents):
        kind = manifest.member('kind').text
        name = manifest.member('metadata').member('name').text
        subject = f'{kind} {quoted(name)}' if kind else manifest.place
        version = manifest.member('apiVersion').text
        if version == 'v1' and kind in _BESIDE:
            continue
        if not version.startswith(_GROUP):
            yield planned.unread(f'{subject} is no manifest of ORC.')
        elif kind == 'HostAggregate':
            is_found = True
            yield planned.unread(
                f'{subject} is left out, because no release of ORC has this '
                'kind.'
            )
        elif kind in ('Flavor', 'Image'):
            is_found = True
            yield functools.partial(_managed, kind, manifest)
        else:
            yield planned.unread(f'{subject} is not of a kind that is read.')
    if not is_found:
        documents.fail(
            f'has no Flavor and no Image of {_GROUP[:-1]}; give manifests of '
            'ORC'
        )


def _manifests(part: Part) -> Iterator[Part]:
    for manifest in part.items:
        if manifest and manifest.member('kind').text == 'List':
            yield from _manifests(manifest.member('items'))
        elif manifest:
            yield manifest


def _managed(kind: str, manifest: Part, snapshot: Snapshot) -> Iterator[Step]:
    spec = manifest.member('spec')
    if spec.member('managementPolicy').text == 'unmanaged':
        # ORC only reads it.
        return
    resource = spec.member('resource')
    if not resource:
        resource.fail('is missing')
    name = (
        resource.member('name').text
        or manifest.member('metadata').member('name').required_text
    )
    if kind == 'Flavor':
        yield from _flavor(name, resource, snapshot)
    else:
        yield from _image(name, resource, snapshot)


def _flavor(name: str, resource: Part, snapshot: Snapshot) -> Iterator[Step]:
    subject = f'Flavor {quoted(name)}'
    sizes = {size: resource.member(size).integer for size in _SIZES}
    specs = {
        item.member('name').required_text: item.member('value').text
        for item in resource.member('extraSpecs').items
    }
    flavor = planned.existing(snapshot.flavors, None, name)
    if flavor is None:
        specs, problems = planned.expressible(f'{subject}: extra spec', specs)
        yield from problems
        vcpus, ram, disk, ephemeral, swap = (sizes[size] for size in _SIZES)
        yield from commands.create_flavor(
            Flavor(
                name,
                *('', vcpus, ram, disk, ephemeral, swap, specs),
                is_public=resource.member('isPublic').value is not False,
            )
        )
        return
    others = [s for s in _SIZES if getattr(flavor, s) != sizes[s]]
    if others:
        yield Unread(
            f'{subject} is left out, because {listed(others)} differs in '
            f'{snapshot.origin}, and Nova cannot change the size of a flavor.'
        )
        return
    yield from planned.changed(
        subject, flavor, {**dict.fromkeys(flavor.extra_specs), **specs}
    )


def _image(name: str, resource: Part, snapshot: Snapshot) -> Iterator[Step]:
    visibility = resource.member('visibility')
    if visibility.text and visibility.text not in commands.VISIBILITIES:
        visibility.fail(
            f'must be one of {", ".join(commands.VISIBILITIES)}, not '
            f'{visibility.text!r}'
        )
    image = planned.existing(snapshot.images, None, name)
    if image:
        if visibility.text and visibility.text != image.visibility:
            yield commands.set_visibility(image, visibility.text)
        return
    properties = resource.member('properties')
    content = resource.member('content')
    yield commands.create_image(
        Image(
            name,
            properties=_properties(properties),
            visibility=visibility.text or None,
            disk_format=content.member('diskFormat').text or None,
            min_ram=properties.member('minMemoryMB').integer,
            min_disk=properties.member('minDiskGB').integer,
        )
    )


def _properties(part: Part) -> dict[str, str]:
    properties = {}
    for place, key in _PROPERTIES.items():
        value = part
        for name in place:
            value = value.member(name)
        if isinstance(value.value, bool):
            properties[key] = str(value.value).lower()
        elif isinstance(value.value, int):
            properties[key] = str(value.value)
        elif value:
            properties[key] = value.text
    return properties
