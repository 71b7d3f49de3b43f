# SPDX-License-Identifier: Apache-2.0
"""The uuids of what is known by its name alone: in tests and cloud files."""

import uuid

# Constant, so that equal names result in equal uuids.
_NAMESPACE = uuid.UUID('5f0d7c5a-6f0e-4f5b-9d0c-3f3a7b0e9c11')


def derived_uuid(kind: str, name: str) -> str:
    """Return the uuid of an object that is known by its name alone.

    :param kind: ``aggregate``, ``provider``, ``flavor`` or ``image``.
    """
    return str(uuid.uuid5(_NAMESPACE, f'{kind}:{name}'))
