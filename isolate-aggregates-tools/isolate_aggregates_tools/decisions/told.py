# SPDX-License-Identifier: Apache-2.0
"""Says what a record tells, and what is different now."""

from collections.abc import Iterator, Mapping
import json
from typing import Any

from isolate_aggregates_tools.decisions.sums import names_of

#: Why a request got no host, by cause.
SENTENCES = {
    'query_too_long': 'its query to Placement would have been too long',
    'refused': 'a request filter refused it',
    'filter_failed': 'a request filter failed',
    'source_failed': 'the aggregates, or what else decides, could not be read',
    'not_recorded': 'what it is placed with could not be recorded',
    'error': 'nova-scheduler failed',
    'nova_refused': 'Nova refused it before it asked Placement',
    'placement_down': 'Placement did not answer, or failed',
    'placement_rejected': 'Placement rejected its query',
    'full': 'the hosts that it might use had too little room',
    'locked': 'request filters closed all hosts that would have served it',
    'zone': 'the hosts were in other availability zones',
    'project': 'Nova kept its project from the hosts',
    'aggregates': 'another request filter of Nova kept it from the hosts',
    'host': 'the host that it was for could not serve it',
    'disabled': 'the compute services of the hosts were disabled',
    'traits': 'no host had all required traits',
    'unknown_hosts': 'Placement offered hosts that Nova did not know',
    'host_filter': 'a host filter of Nova dropped the last host',
    'claims': 'other requests took the hosts meanwhile',
    'no_candidates': 'Placement returned no candidate; why is not known',
}
#: What filters in shadow would have changed, by effect.
EFFECTS = {
    'refused': 'it would have been refused',
    'other_host': 'it would have got another host',
    'no_host': 'it would have got no host',
    'not_known': 'whether it would have got a host is not known',
    'failed': 'they could not decide',
}

# A record has so many extra specs, and so many characters of each value.
_MOST_SPECS, _LONGEST = 20, 255
# What a record may have of the decision of filters.
_CONCLUSIONS = (('locks', 'forbidden'), ('requires', 'required'))


def then(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield what was decided."""
    flavor, image = record['flavor'], record.get('image')
    yield (
        f'{record["at"]}: {record["operation"]} of server {record["server"]}, '
        f'project {record["project"]}, flavor '
        f'{flavor.get("name", flavor["id"])}'
        + (f', image {image.get("name", image["id"])}' if image else '')
    )
    if servers := record.get('servers'):
        yield f'  {servers["number"]} servers were requested together.'
    for name, value in record.get('keys', {}).items():
        if value and name != 'extra_specs':
            yield f'  {name.replace("_", " ")}: {_short(value)}'
    if record['result'] == 'placed':
        yield f'  It was placed on {", ".join(record.get("hosts", ()))}.'
    else:
        cause = record.get('cause')
        sentence = SENTENCES.get(cause or '', 'the cause is unknown here')
        yield f'  It got no host: {sentence} ({cause}).'
    if examined := record.get('examined'):
        yield f'  examined: {examined}'
    yield from _details(record.get('detail', {}))
    if shadow := record.get('shadow'):
        effect = shadow.get('effect')
        yield f'  With the filters in shadow, {EFFECTS.get(effect, effect)}.'
        yield from _hosts(shadow.get('would_exclude', {}))


def _details(detail: Mapping[str, Any]) -> Iterator[str]:
    for name, value in detail.items():
        if name != 'hosts' and value not in ([], None):
            yield f'  {name.replace("_", " ")}: {_short(value)}'
    yield from _hosts(detail.get('hosts', {}))


def _hosts(hosts: Mapping[str, Any]) -> Iterator[str]:
    for host, entries in sorted(hosts.items()):
        for entry in entries:
            where = entry.get('name')
            place = f' on aggregate {where}' if entry.get('locks') else ''
            yield (
                f'  {host}: closed by {", ".join(names_of(entry))}{place} '
                f'({entry["filter"]})'
            )


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return 'yes' if value else 'no'
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, list):
        return ', '.join(map(_short, value))
    if isinstance(value, dict):
        return ', '.join(f'{k}={_short(v)}' for k, v in value.items())
    return json.dumps(value)


def differences(
    record: Mapping[str, Any],
    now: Mapping[str, Any],
    extra_specs: Mapping[str, str],
) -> Iterator[str]:
    """Yield what is different now, as sentences without full stops.

    :param now: What the filters decide now, as in a record.
    :param extra_specs: The extra specs that the flavor has now.
    """
    left_out = record.get('left_out', ())
    before = {**record, **record.get('shadow', {})}
    for name, word in _CONCLUSIONS:
        if name not in left_out:
            yield from _aggregates(
                word, before.get(name, ()), now.get(name, ())
            )
    if 'keys' not in left_out:
        specs = record.get('keys', {}).get('extra_specs', {})
        for key in sorted({*specs, *extra_specs}):
            old, new = specs.get(key), extra_specs.get(key)
            if old is None and len(specs) >= _MOST_SPECS:
                continue
            is_cut = len(old or '') >= _LONGEST
            if old != new and not (is_cut and (new or '').startswith(old)):
                yield (
                    f'extra spec {key} of the flavor: '
                    f'{_was(old)} then, {_was(new)} now'
                )
    reasons, reasons_now = (
        [refusal['reason'] for refusal in each.get('refusals', ())]
        for each in (before, now)
    )
    for reason in reasons:
        if reason not in reasons_now:
            yield f'no longer refused: {reason}'
    for reason in reasons_now:
        if reason not in reasons:
            yield f'refused now: {reason}'


def _was(value: str | None) -> str:
    return 'absent' if value is None else value


def _aggregates(word: str, before: Any, after: Any) -> Iterator[str]:
    """Yield which aggregates filters forbid or require differently."""
    old, new = _by_cause(before), _by_cause(after)
    for key in sorted({*old, *new}):
        name, cause = key
        was, is_now = old.get(key, _NOTHING), new.get(key, _NOTHING)
        some, some_now = _named(was), _named(is_now)
        numbers = was['aggregates'], is_now['aggregates']
        are_all_named = numbers == (len(some), len(some_now))
        if not are_all_named:
            if numbers[0] != numbers[1]:
                yield (
                    f'{name} ({cause}): aggregates {word}: {numbers[0]} then, '
                    f'{numbers[1]} now'
                )
            continue
        for uuid in sorted({*some, *some_now}):
            one, one_now = some.get(uuid), some_now.get(uuid)
            if one_now is None:
                yield f'aggregate {one} is no longer {word}'
            elif one is None:
                yield f'aggregate {one_now} is {word} now'
            elif one != one_now:
                yield f'aggregate {one} then, {one_now} now'


_NOTHING: Mapping[str, Any] = {'aggregates': 0, 'some': ()}


def _by_cause(entries: Any) -> dict[tuple[str, str], Any]:
    return {(entry['filter'], entry['cause']): entry for entry in entries}


def _named(entry: Mapping[str, Any]) -> dict[str, str]:
    """Return the aggregates with their locks, by uuid."""
    return {
        one['uuid']: one['name']
        + (f' ({", ".join(one["locks"])})' if one.get('locks') else '')
        for one in entry['some']
    }
