# SPDX-License-Identifier: Apache-2.0
"""Describes places in a YAML file, with line numbers."""

from collections.abc import Iterable, Iterator
import dataclasses

import yaml

from isolate_aggregates.text import counted

# The most problems in one error message.
_MOST = 5

# A path of keys and item numbers from the top of the document.
Place = tuple[str | int, ...]

# The names of the items in the lists of cloud files and of expectations.
_KINDS = {
    'aggregates': 'aggregate',
    'placement_aggregates': 'placement aggregate',
    'providers': 'provider',
    'children': 'child',
    'flavors': 'flavor',
    'images': 'image',
    'servers': 'server',
    'expectations': 'expectation',
    'server_groups': 'server group',
    'compute_services': 'compute service',
}


@dataclasses.dataclass(frozen=True)
class Problem:
    """A problem in a file.

    :param text: The text that follows the description of the place.
    """

    place: Place
    text: str


def messages(problems: Iterable[Problem], document: yaml.Node) -> list[str]:
    """Return messages with places and lines, in the order of the file.

    If there are too many, the last one is their number.
    """
    lines = {_message(problem, document) for problem in problems}
    texts = [text for _, text in sorted(lines)]
    more = len(texts) - _MOST
    if more > 0:
        texts[_MOST:] = [f'and {counted(more, "more problem")}']
    return texts


def _message(problem: Problem, document: yaml.Node) -> tuple[int, str]:
    line = document.start_mark.line + 1
    things: list[str] = []
    keys: list[str] = []
    above: str | int = ''
    for key, key_node, node in _way(document, problem.place):
        line = key_node.start_mark.line + 1
        if isinstance(key, str):
            keys.append(key)
        elif above in _KINDS and isinstance(node, yaml.MappingNode):
            keys.pop()
            things.append(f'{_KINDS[str(above)]} {_name(node, key)}')
        above = key
    if keys:
        things.append('.'.join(keys))
    place = f'{", ".join(things)} (line {line})' if things else f'line {line}'
    return line, f'{place}: {problem.text}'


def _way(
    node: yaml.Node, place: Place
) -> Iterator[tuple[str | int, yaml.Node, yaml.Node]]:
    """Yield the steps to a place, each with the nodes of key and value."""
    for key in place:
        key_node = node
        if isinstance(node, yaml.SequenceNode) and isinstance(key, int):
            key_node = node = node.value[key]
        elif isinstance(node, yaml.MappingNode):
            for each, value in node.value:
                if each.value == key:
                    key_node, node = each, value
        yield key, key_node, node


def _name(node: yaml.Node, number: int) -> str:
    """Return the name of an item, or its number if it has none."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == 'name' and isinstance(value, yaml.ScalarNode):
                return str(value.value)
    return f'number {number + 1}'


def item_lines(document: yaml.Node, key: str) -> list[int]:
    """Return the lines that the items of a list at the top begin in."""
    *_, (_, _, items) = _way(document, (key,))
    return [item.start_mark.line + 1 for item in items.value]
