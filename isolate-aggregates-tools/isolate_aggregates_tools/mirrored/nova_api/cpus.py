# SPDX-License-Identifier: Apache-2.0
"""Refusals for pinned CPUs, their threads and the topology of CPUs."""

from collections.abc import Callable
import re

from isolate_aggregates_tools import errors
from isolate_aggregates_tools.mirrored.nova_api.combination import (
    Combination,
    Refusal,
    of_either,
    of_flavor,
    of_image,
    property_of,
)
from isolate_aggregates_tools.request import implied

_POLICY = 'hw:cpu_policy'
_THREADS = 'hw:cpu_thread_policy'
_EMULATOR = 'hw:emulator_threads_policy'
_MASK = 'hw:cpu_dedicated_mask'
_REALTIME = 'hw:cpu_realtime'
_HYPERTHREADING = 'HW_CPU_HYPERTHREADING'
_TRAIT = re.compile(f'trait([1-9][0-9]*)?:{_HYPERTHREADING}')

_PIN = f'set {_POLICY}=dedicated in the flavor, or remove the setting'


def policies(combination: Combination) -> None:
    """Refuse unknown policies in the flavor, also where they have no use."""
    for name, allowed in (
        (_POLICY, ('shared', 'dedicated', 'mixed')),
        (_THREADS, ('prefer', 'isolate', 'require')),
        (_EMULATOR, ('isolate', 'share')),
    ):
        text = combination.specs.get(name)
        if text and text not in allowed:
            raise of_flavor(
                f'{name} is {text!r}, but must be one of {", ".join(allowed)}'
            )


def thread_policies(combination: Combination) -> None:
    """Refuse an image that changes the thread policy of the flavor."""
    flavor = combination.specs.get(_THREADS)
    image = combination.properties.get(property_of(_THREADS))
    if flavor not in (None, 'prefer') and image and image != flavor:
        raise of_either(
            f'the image has {property_of(_THREADS)}={image!r}, but the flavor '
            f'has {_THREADS}={flavor}; set both to the same value'
        )


def amounts(combination: Combination) -> None:
    """Refuse amounts of VCPU or PCPU that contradict other settings."""
    amounts = combination.amounts
    if not any(amounts.values()):
        return
    flavor, image = combination.both(_POLICY)
    if flavor or image:
        refusal = of_flavor if flavor else of_either
        raise refusal(
            'resources:VCPU and resources:PCPU cannot be combined with '
            f'{_POLICY} or {property_of(_POLICY)}; use one or the other'
        )
    if all(amounts.values()):
        raise of_flavor(
            'resources:VCPU and resources:PCPU cannot be combined; use one or '
            'the other'
        )
    isolates = combination.specs.get(_EMULATOR) == 'isolate'
    vcpus = combination.flavor.vcpus + isolates
    if amounts['PCPU'] and amounts['PCPU'] != vcpus:
        raise of_flavor(
            f'resources:PCPU is {amounts["PCPU"]}, but must be {vcpus}: the '
            'number of VCPUs of the flavor'
            + f', and one more for {_EMULATOR}=isolate'
            * isolates
        )


def hyperthreading(combination: Combination) -> None:
    """Refuse a thread policy together with the trait for it."""
    flavor, image = combination.both(_THREADS)
    in_flavor = bool(_flavor_trait(combination))
    if not (flavor or image) or not _hyperthreading(combination):
        return
    if flavor and in_flavor:
        refusal = of_flavor
    else:
        refusal = of_either if flavor or in_flavor else of_image
    raise refusal(
        f'trait {_HYPERTHREADING} cannot be combined with {_THREADS} or '
        f'{property_of(_THREADS)}; use one or the other'
    )


def shared(combination: Combination) -> None:
    """Refuse settings for pinned CPUs if no CPUs are pinned."""
    if combination.cpu_policy not in (None, 'shared'):
        return
    # An image can pin the CPUs of a flavor that has no policy.
    refusal = of_flavor if combination.flavor_shares_cpus else of_either
    thread_policy = combination.specs.get(_THREADS)
    flavor_trait = _flavor_trait(combination)
    if thread_policy or flavor_trait in _POLICY_OF_TRAIT:
        setting = (
            f'{_THREADS}={thread_policy}'
            if thread_policy
            else f'trait:{_HYPERTHREADING}={flavor_trait}'
        )
        raise refusal(f'{setting} requires pinned CPUs; {_PIN}')
    if combination.specs.get(_EMULATOR) == 'isolate':
        raise refusal(f'{_EMULATOR}=isolate requires pinned CPUs; {_PIN}')
    if combination.specs.get(_MASK):
        raise refusal(
            f'{_MASK} requires {_POLICY}=mixed; set both in the flavor'
        )
    if combination.properties.get(property_of(_THREADS)) or trait(combination):
        raise of_either(
            f'{property_of(_THREADS)} and trait:{_HYPERTHREADING} of an image '
            f'require pinned CPUs; set {_POLICY}=dedicated in the flavor, or '
            'remove the property'
        )


_POLICY_OF_TRAIT = ('required', 'forbidden')


def shared_realtime(combination: Combination) -> None:
    """Refuse realtime CPUs if no CPUs are pinned."""
    if combination.cpu_policy in (None, 'shared') and _realtime(combination):
        refusal = of_flavor if combination.flavor_shares_cpus else of_either
        raise refusal(f'{_REALTIME} requires pinned CPUs; {_PIN}')


def dedicated_mask(combination: Combination) -> None:
    """Refuse a mask of dedicated CPUs that does not divide the CPUs."""
    mask = combination.specs.get(_MASK)
    if not mask:
        return
    everything = set(range(combination.flavor.vcpus))
    cpus = _masked(combination, mask, of_flavor)
    if not cpus or not everything - cpus or not cpus <= everything:
        raise of_flavor(
            f'{_MASK} must name some, but not all, of the '
            f'{len(everything)} CPUs of the flavor'
        )


def masks(combination: Combination) -> None:
    """Refuse CPU masks that the policy does not allow."""
    policy = combination.cpu_policy
    flavor, _ = combination.both(_POLICY)
    mask = bool(combination.specs.get(_MASK))
    if policy == 'dedicated' and mask:
        refusal = (
            of_flavor
            if flavor == 'dedicated' or combination.amounts['PCPU']
            else of_either
        )
        raise refusal(
            f'{_MASK} requires {_POLICY}=mixed; set both in the flavor'
        )
    if policy != 'mixed':
        return
    realtime = _is_realtime(combination)
    if mask == realtime:
        refusal = of_flavor if flavor == 'mixed' else of_either
        raise refusal(
            f'{_POLICY}=mixed requires either {_MASK} or {_REALTIME} with a '
            'mask, and not both; set one of them in the flavor'
        )


def realtime(combination: Combination) -> None:
    """Refuse masks of realtime CPUs that are not valid."""
    _realtime(combination)


def topology(combination: Combination) -> None:
    """Refuse a topology of CPUs in the image that exceeds the limits."""
    limits = {}
    for part in ('sockets', 'cores', 'threads'):
        limit = _flavor_number(combination, f'hw:cpu_max_{part}')
        own = combination.image_number(f'hw_cpu_max_{part}')
        if limit and own > limit:
            raise of_either(
                f'the image has hw_cpu_max_{part}={own}, but the flavor '
                f'allows {limit} with hw:cpu_max_{part}'
            )
        limits[part] = (own or limit or 65536, bool(limit and not own))
    for part, (limit, by_flavor) in limits.items():
        _flavor_number(combination, f'hw:cpu_{part}')
        number = combination.image_number(f'hw_cpu_{part}')
        if number > limit:
            refusal = of_either if by_flavor else of_image
            raise refusal(
                f'the image has hw_cpu_{part}={number}, but at most {limit} '
                'are allowed'
            )


def _flavor_number(combination: Combination, name: str) -> int:
    text = combination.specs.get(name, '0')
    try:
        return int(text)
    except ValueError:
        raise of_flavor(
            f'{name} is {text!r}, but must be a whole number'
        ) from None


def _flavor_trait(combination: Combination) -> str | None:
    """Return the first value of the hyperthreading trait in the flavor."""
    for key, text in combination.specs.items():
        if _TRAIT.match(key):
            return text
    return None


def _hyperthreading(combination: Combination) -> str | None:
    """Return the value of the hyperthreading trait."""
    in_flavor = _flavor_trait(combination)
    if in_flavor is not None:
        return in_flavor
    required = combination.raw.get(f'trait:{_HYPERTHREADING}') == 'required'
    return 'required' if required else None


def trait(combination: Combination) -> bool:
    """Return whether the hyperthreading trait is a thread policy."""
    return _hyperthreading(combination) in _POLICY_OF_TRAIT


def _is_realtime(combination: Combination) -> bool:
    return implied.is_true(combination.specs.get(_REALTIME))


def _realtime(combination: Combination) -> set[int]:
    """Return the realtime CPUs."""
    if not _is_realtime(combination):
        return set()
    flavor, image = combination.both(f'{_REALTIME}_mask')
    mask = image or flavor
    everything = set(range(combination.flavor.vcpus))
    cpus = _masked(combination, mask, of_either) if mask else everything
    if (
        not cpus
        or not cpus <= everything
        or (cpus == everything and not combination.specs.get(_EMULATOR))
    ):
        raise of_either(
            f'{_REALTIME} requires {_REALTIME}_mask in the flavor or '
            f'{property_of(_REALTIME)}_mask in the image; the mask must name '
            f'some, but not all, of the {len(everything)} CPUs of the flavor'
        )
    return cpus


def _masked(
    combination: Combination, mask: str, refusal: Callable[[str], Refusal]
) -> set[int]:
    try:
        return implied.masked_cpus(mask, combination.flavor.vcpus) or set()
    except errors.InvalidRequest as exc:
        raise refusal(str(exc).rstrip('.')) from None


RULES = (
    policies,
    thread_policies,
    amounts,
    hyperthreading,
    shared,
    shared_realtime,
    dedicated_mask,
    masks,
    realtime,
    topology,
)
