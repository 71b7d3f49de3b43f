# SPDX-License-Identifier: Apache-2.0
"""Traits that Nova requires or forbids on the compute node.

nova-compute sets them on the root provider to report its capabilities, or that
it is disabled. See `os-traits
<https://docs.openstack.org/os-traits/latest/>`_ and the request filters in
:data:`MIRRORS`, which are those of ``nova.scheduler.request_filter``.
"""

from collections.abc import Iterator

import os_traits

from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.filters.constraints import Cause
from isolate_aggregates.text import quoted
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.mirrored import nova_image
from isolate_aggregates_tools.mirrored.mirror import Mirror, Remark, Settings
from isolate_aggregates_tools.request import Request, implied
from isolate_aggregates_tools.request.constraints import (
    ForbidRootTrait,
    RequireRootTrait,
)

_IMAGE_TYPES = ('scheduler', 'query_placement_for_image_type_support')
_IMAGE_METADATA = ('scheduler', 'image_metadata_prefilter')


def _require(trait: str, reason: str) -> RequireRootTrait:
    return RequireRootTrait(
        trait,
        Cause(
            'required-capability',
            f'{reason}, which requires trait {trait} on the host',
        ),
    )


def _unknown_trait(trait: str, reason: str) -> Remark:
    return Remark(
        Cause(
            'unknown-trait',
            f'{reason}, but there is no trait {trait}, so Nova requires none '
            'of the traits of this filter',
        )
    )


def compute_status(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[ForbidRootTrait]:
    """Exclude hosts whose compute service is disabled."""
    yield ForbidRootTrait(
        os_traits.COMPUTE_STATUS_DISABLED,
        Cause(
            'disabled-service',
            'hosts with a disabled compute service take no servers',
        ),
    )


def image_type_support(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[RequireRootTrait | Remark]:
    """Require hosts that can boot from the disk format of the image."""
    if request.boot_from_volume:
        return
    disk_format = request.image.disk_format if request.image else None
    if disk_format is None:
        yield Remark(
            Cause(
                'unknown-disk-format',
                'Nova requires a trait for the disk format of the image, '
                'which is not known',
            )
        )
        return
    trait = f'COMPUTE_IMAGE_TYPE_{disk_format.upper()}'
    reason = f'the disk format of the image is {quoted(disk_format)}'
    if hasattr(os_traits, trait):
        yield _require(trait, reason)
    else:
        yield _unknown_trait(trait, reason)


# The prefixes of the traits for device models.
_MODELS = {
    'hw_cdrom_bus': 'COMPUTE_STORAGE_BUS',
    'hw_disk_bus': 'COMPUTE_STORAGE_BUS',
    'hw_video_model': 'COMPUTE_GRAPHICS_MODEL',
    'hw_vif_model': 'COMPUTE_NET_VIF_MODEL',
    'hw_architecture': 'HW_ARCH',
    'hw_emulation_architecture': 'COMPUTE_ARCH',
    'hw_viommu_model': 'COMPUTE_VIOMMU',
}


def image_metadata(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[RequireRootTrait | Remark]:
    """Require hosts that support the devices that the image names."""
    constraints = []
    for name, prefix in _MODELS.items():
        model = nova_image.kept(
            request.image_properties, name, request.nova_release
        )
        if model is None:
            continue
        trait = f'{prefix}_{model.replace("-", "_").upper()}'
        reason = f'the image has {name}={quoted(model)}'
        if not hasattr(os_traits, trait):
            yield _unknown_trait(trait, reason)
            return
        constraints.append(_require(trait, reason))
    yield from constraints


def accelerators(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[RequireRootTrait]:
    """Require hosts that support accelerators."""
    profile = request.flavor.extra_specs.get('accel:device_profile')
    if profile:
        yield _require(
            os_traits.COMPUTE_ACCELERATORS,
            f'the flavor has accel:device_profile={profile}',
        )


def _settings(request: Request) -> implied.Settings:
    return implied.Settings(
        request.flavor.extra_specs, request.image_properties
    )


def _is_enabled(request: Request, name: str) -> bool:
    """Return whether flavor or image enable a feature; they must agree."""
    settings = _settings(request)
    values = {
        implied.is_true(value)
        for value in (settings.flavor(name), settings.image(name))
        if value is not None
    }
    if len(values) > 1:
        raise errors.InvalidRequest(
            f'The flavor has {name}={settings.flavor(name)} but the image has '
            f'{name.replace(":", "_")}={quoted(str(settings.image(name)))}; '
            'set both to the same value.'
        )
    return any(values)


def packed_virtqueue(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[RequireRootTrait]:
    """Require hosts that support packed virtqueues."""
    if _is_enabled(request, 'hw:virtio_packed_ring'):
        yield _require(
            os_traits.COMPUTE_NET_VIRTIO_PACKED,
            'hw:virtio_packed_ring is true',
        )


def remote_managed_ports(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[RequireRootTrait]:
    """Require hosts that support ports managed by another device."""
    for network in request.networks:
        if network.remote_managed:
            yield _require(
                os_traits.COMPUTE_REMOTE_MANAGED_PORTS,
                f'{network.name} is remote-managed',
            )
            return


def ephemeral_encryption(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[RequireRootTrait]:
    """Require hosts that encrypt ephemeral disks."""
    if not _is_enabled(request, 'hw:ephemeral_encryption'):
        return
    yield _require(
        os_traits.COMPUTE_EPHEMERAL_ENCRYPTION,
        'hw:ephemeral_encryption is true',
    )
    name = 'hw:ephemeral_encryption_format'
    format_ = _settings(request).either(name, ('plain', 'luks', 'luksv2'))
    if format_:
        yield _require(
            f'COMPUTE_EPHEMERAL_ENCRYPTION_{format_.upper()}',
            f'{name} is {format_}',
        )


_SOUND_MODELS = (
    'sb16', 'es1370', 'pcspk', 'ac97', 'ich6', 'ich9', 'usb', 'virtio'
)  # fmt: skip


def virtio_sound(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[RequireRootTrait]:
    """Require hosts that support virtio sound devices."""
    model = _settings(request).either('hw:sound_model', _SOUND_MODELS)
    if model == 'virtio':
        # Older os-traits lack the constant.
        yield _require(
            'COMPUTE_SOUND_MODEL_VIRTIO', 'hw:sound_model is virtio'
        )


def tpm_secret_security(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[RequireRootTrait]:
    """Require hosts that support the requested TPM secret security mode."""
    if not implied.tpm(_settings(request)):
        return
    name = 'hw:tpm_secret_security'
    # Only flavors can set it.
    kinds = ('user', 'host', 'deployment')
    security = request.flavor.extra_specs.get(name) or 'user'
    if security not in kinds:
        raise errors.InvalidRequest(
            f'{name} is {security!r} in the flavor; it must be one of '
            f'{", ".join(kinds)}.'
        )
    yield _require(
        f'COMPUTE_SECURITY_TPM_SECRET_SECURITY_{security.upper()}',
        f'hw:tpm_version is set and {name} is {security}',
    )


def owner_nova(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[RequireRootTrait]:
    """Require the trait OWNER_NOVA once all compute nodes have it."""
    if request.owner_nova:
        yield _require(
            'OWNER_NOVA', 'all compute nodes are marked as owned by Nova'
        )


MIRRORS = (
    Mirror('compute_status', 'compute_status_filter', compute_status),
    Mirror(
        'image_type_support',
        'require_image_type_support',
        image_type_support,
        switch=_IMAGE_TYPES,
    ),
    Mirror(
        'image_metadata',
        'transform_image_metadata',
        image_metadata,
        switch=_IMAGE_METADATA,
    ),
    Mirror('accelerators', 'accelerators_filter', accelerators),
    Mirror('packed_virtqueue', 'packed_virtqueue_filter', packed_virtqueue),
    Mirror(
        'remote_managed_ports',
        'remote_managed_ports_filter',
        remote_managed_ports,
    ),
    Mirror(
        'ephemeral_encryption',
        'ephemeral_encryption_filter',
        ephemeral_encryption,
    ),
    Mirror('virtio_sound', 'virtio_sound_filter', virtio_sound, since=32),
    Mirror(
        'tpm_secret_security',
        'tpm_secret_security_filter',
        tpm_secret_security,
        since=33,
    ),
    Mirror('owner_nova', 'owner_nova_filter', owner_nova, since=34),
)
