# SPDX-License-Identifier: Apache-2.0
"""Refusals for page sizes, locked memory and encrypted memory."""

from isolate_aggregates_tools.mirrored.nova_api.combination import (
    Combination,
    of_either,
    of_flavor,
    of_image,
    property_of,
)

_PAGES = 'hw:mem_page_size'
_LOCKED = 'hw:locked_memory'
_ENCRYPTION = 'hw:mem_encryption'
_MODEL = 'hw:mem_encryption_model'

# The sizes that Nova chooses; for the first two, the image can choose.
_CHOSEN = ('any', 'large', 'small')
_CHOOSABLE = ('any', 'large')

# Models that need firmware without state, and since when Nova checks it.
_STATELESS = ('amd-sev-snp', 'intel-tdx')
_MODELS_SINCE = 32
_STATELESS_SINCE = 34


def page_size(combination: Combination) -> str | None:
    """Return the page size; None for the default."""
    flavor, image = combination.both(_PAGES)
    size = image if image and flavor in _CHOOSABLE else flavor
    return size if size and size.strip('0') else None


def pages(combination: Combination) -> None:
    """Refuse page sizes that are unknown or that the flavor does not allow."""
    flavor, image = combination.both(_PAGES)
    if flavor and not _is_size(flavor):
        raise of_flavor(f'{_PAGES} is {flavor!r}, which is not a size')
    if not image:
        return
    if not _is_size(image):
        raise of_image(
            f'{property_of(_PAGES)} is {image!r}, which is not a size'
        )
    if flavor not in _CHOOSABLE:
        allowed = f'with {_PAGES}={flavor}' if flavor else f'without {_PAGES}'
        raise of_either(
            f'the image has {property_of(_PAGES)}={image!r}, which a flavor '
            f'{allowed} does not allow; set {_PAGES}=any in the flavor, or '
            'remove the property'
        )


def _is_size(text: str) -> bool:
    # Imported late: the import is slow, and few requests need it.
    from oslo_utils import strutils

    if text in _CHOSEN or text.isdigit():
        return True
    try:
        strutils.string_to_bytes(text, return_int=True)
    except ValueError:
        return False
    return True


def locked(combination: Combination) -> None:
    """Refuse locked memory without a page size."""
    flavor, image = combination.flags(_LOCKED)
    if (flavor or image) and not any(combination.both(_PAGES)):
        refusal = of_flavor if flavor else of_either
        raise refusal(
            f'{_LOCKED} requires {_PAGES}; set both in the flavor, or remove '
            'the setting'
        )


def encrypted(combination: Combination) -> None:
    """Refuse encrypted memory with an image that does not support it."""
    flavor, image = combination.flags(_ENCRYPTION)
    if not flavor and not image:
        return
    refusal = of_image if image else of_either
    properties = combination.properties
    if properties.get('hw_firmware_type') != 'uefi':
        raise refusal(
            f'{_ENCRYPTION} requires an image with hw_firmware_type=uefi'
        )
    machine = properties.get('hw_machine_type')
    if machine is not None and 'q35' not in machine:
        raise refusal(
            f'{_ENCRYPTION} requires an image with hw_machine_type=q35, not '
            f'{machine!r}'
        )
    if combination.release < _STATELESS_SINCE:
        return
    model = next(filter(None, combination.both(_MODEL)), None)
    if model not in _STATELESS:
        return
    if not combination.flags('hw:firmware_stateless')[1]:
        raise of_either(
            f'{_MODEL}={model} requires an image with '
            'hw_firmware_stateless=true'
        )
    if model == 'intel-tdx' and properties.get('hw_video_model') != 'none':
        raise of_either(
            f'{_MODEL}={model} requires an image with hw_video_model=none'
        )


def models(combination: Combination) -> None:
    """Refuse models of encryption that contradict, also if one is empty."""
    if (
        not any(combination.flags(_ENCRYPTION))
        or combination.release < _MODELS_SINCE
    ):
        return
    flavor = combination.specs.get(_MODEL)
    image = combination.properties.get(property_of(_MODEL))
    if flavor is not None and image is not None and flavor != image:
        raise of_either(
            f'the flavor has {_MODEL}={flavor} but the image has '
            f'{property_of(_MODEL)}={image!r}; set both to the same value'
        )
    known = _MODELS if combination.release >= _STATELESS_SINCE else _MODELS[:2]
    if flavor and flavor not in known:
        raise of_flavor(
            f'{_MODEL} is {flavor!r}, but must be one of {", ".join(known)}'
        )


_MODELS = ('amd-sev', 'amd-sev-es', *_STATELESS)


def stateless(combination: Combination) -> None:
    """Refuse firmware without state that is not UEFI, before release 34."""
    if (
        combination.release < _STATELESS_SINCE
        and combination.flags('hw:firmware_stateless')[1]
        and combination.properties.get('hw_firmware_type') != 'uefi'
    ):
        raise of_image(
            'hw_firmware_stateless requires hw_firmware_type=uefi; set both '
            'in the image'
        )


RULES = (pages, locked, encrypted, models, stateless)
