# SPDX-License-Identifier: Apache-2.0
"""The bodies of requests that Nova accepts, as JSON schemas.

As ``nova.api.openstack.compute.schemas``, with texts checked by what
``mirrored.nova_api`` knows of them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
import functools
from typing import Any

import jsonschema

from isolate_aggregates_tools.mirrored.nova_api import changes as rules
from isolate_aggregates_tools.rehearse.exchange import Document, Refused

_MAX_INT = 0x7FFFFFFF
_MAX_FLOAT = 3.40282e38

_FORMATS = jsonschema.FormatChecker(())


def _check(found: Iterable[str]) -> bool:
    """Fail with the first reason, if there is one."""
    for reason in found:
        raise ValueError(reason)
    return True


def _checked_values(value: object, kind: str) -> bool:
    texts = {
        key: '' if each is None else str(each)
        for key, each in (value if isinstance(value, dict) else {}).items()
    }
    return _check(rules.wrong_values({}, texts, kind))


def _text(check: Callable[[str], Iterable[str]]) -> Callable[[object], bool]:
    """Return a check of texts; other types are no matter of a format."""
    return lambda value: not isinstance(value, str) or _check(check(value))


for _name, _of in {
    'name': _text(rules.wrong_name),
    'renamed': _text(functools.partial(rules.wrong_name, is_new=False)),
    'zone': _text(rules.wrong_zone),
    'metadata': functools.partial(_checked_values, kind='metadata'),
    'extra specs': functools.partial(_checked_values, kind='extra spec'),
}.items():
    _FORMATS.checks(_name, raises=ValueError)(_of)


def _number(value: object) -> float | None:
    try:
        return float(str(value)) if isinstance(value, str | int) else None
    except ValueError:
        return None


def _least(_: Any, least: float, value: object, __: Any) -> Iterator[Any]:
    """Compare numbers in texts, too."""
    number = value if isinstance(value, float) else _number(value)
    if number is not None and number < least:
        yield jsonschema.ValidationError(f'{value!r} is less than {least}')


def _most(_: Any, most: float, value: object, __: Any) -> Iterator[Any]:
    number = value if isinstance(value, float) else _number(value)
    if number is not None and number > most:
        yield jsonschema.ValidationError(f'{value!r} is more than {most}')


_Validator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator, {'minimum': _least, 'maximum': _most}
)


def check(body: Document, schema: Mapping[str, Any]) -> None:
    """Check the body of a request.

    :raises Refused: if Nova refuses it.
    """
    for error in _Validator(schema, format_checker=_FORMATS).iter_errors(body):
        place = '.'.join(map(str, error.absolute_path))
        reason = error.cause or error.message
        raise Refused(400, f'{place}: {reason}' if place else str(reason))


def _body(
    name: str,
    properties: Mapping[str, Any],
    required: Iterable[str],
    **more: Any,
) -> dict[str, Any]:
    return _object({name: _object(properties, required, **more)}, [name])


def _object(
    properties: Mapping[str, Any], required: Iterable[str], **more: Any
) -> dict[str, Any]:
    return {
        'type': 'object',
        'properties': properties,
        'required': list(required),
        'additionalProperties': False,
        **more,
    }


def _integer(least: int) -> dict[str, Any]:
    return {
        'type': ['integer', 'string'],
        'pattern': '^[0-9]*$',
        'minLength': 1,
        'minimum': least,
        'maximum': _MAX_INT,
    }


_TEXT = {'type': 'string', 'minLength': 1, 'maxLength': 255}
_HOST = {**_TEXT, 'pattern': '^[a-zA-Z0-9-._]*$'}
_ZONE = {'type': ['string', 'null'], 'format': 'zone'}
_DESCRIPTION = {'type': ['string', 'null'], 'maxLength': 65535}
_BOOLEAN = {
    'enum': [
        *(True, 'True', 'TRUE', 'true', '1', 'ON', 'On', 'on'),
        *('YES', 'Yes', 'yes'),
        *(False, 'False', 'FALSE', 'false', '0', 'OFF', 'Off', 'off'),
        *('NO', 'No', 'no'),
    ],
    'type': ['boolean', 'string'],
}  # fmt: skip

AGGREGATE = _body(
    'aggregate',
    {
        'name': {'type': 'string', 'format': 'name'},
        'availability_zone': _ZONE,
    },
    ['name'],
)
AGGREGATE_UPDATE = _body(
    'aggregate',
    {
        'name': {'type': 'string', 'format': 'renamed'},
        'availability_zone': _ZONE,
    },
    (),
    minProperties=1,
)
AGGREGATE_ACTIONS = {
    'set_metadata': _body(
        'set_metadata',
        {
            'metadata': {
                'type': 'object',
                'additionalProperties': {'type': ['string', 'null']},
                'format': 'metadata',
            }
        },
        ['metadata'],
    ),
    'add_host': _body('add_host', {'host': _HOST}, ['host']),
    'remove_host': _body('remove_host', {'host': _HOST}, ['host']),
}

_FLAVOR = {
    'name': {'type': 'string', 'format': 'name'},
    'id': {
        'type': ['string', 'number', 'null'],
        'pattern': r'^(?! )[a-zA-Z0-9. _-]+(?<! )$',
        'minLength': 1,
        'maxLength': 255,
    },
    'ram': _integer(1),
    'vcpus': _integer(1),
    'disk': _integer(0),
    'OS-FLV-EXT-DATA:ephemeral': _integer(0),
    'swap': _integer(0),
    'os-flavor-access:is_public': _BOOLEAN,
}
_FACTOR = {
    'type': ['number', 'string'],
    'pattern': r'^[0-9]+(\.[0-9]+)?$',
    'exclusiveMinimum': 0,
    'maximum': _MAX_FLOAT,
}


def flavor(minor: int) -> dict[str, Any]:
    """Return the schema for a new flavor."""
    properties = dict(_FLAVOR)
    if minor >= 55:
        properties['description'] = _DESCRIPTION
    if minor < 102:
        properties['rxtx_factor'] = _FACTOR
    return _body('flavor', properties, ['name', 'ram', 'vcpus', 'disk'])


FLAVOR_UPDATE = _body('flavor', {'description': _DESCRIPTION}, ['description'])
_SPECS = {
    'type': 'object',
    'additionalProperties': {'type': ['string', 'number']},
    'format': 'extra specs',
}
EXTRA_SPECS = _object({'extra_specs': _SPECS}, ['extra_specs'])
EXTRA_SPEC = {**_SPECS, 'minProperties': 1, 'maxProperties': 1}
FLAVOR_ACTIONS = {
    action: _body(action, {'tenant': _TEXT}, ['tenant'])
    for action in ('addTenantAccess', 'removeTenantAccess')
}

_SERVICE = {'host': _HOST, 'binary': _TEXT, 'disabled_reason': _TEXT}
SERVICE_UPDATE = _object(
    {
        'status': {'type': 'string', 'enum': ['enabled', 'disabled']},
        'disabled_reason': _TEXT,
        'forced_down': _BOOLEAN,
    },
    (),
)


def service_action(minor: int) -> dict[str, Any]:
    """Return the schema for changes of services before 2.53."""
    more = {'forced_down': _BOOLEAN} if minor >= 11 else {}
    return _object({**_SERVICE, **more}, ['host', 'binary'])
