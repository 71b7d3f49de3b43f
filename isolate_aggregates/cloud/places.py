# SPDX-License-Identifier: Apache-2.0
"""Says where in a cloud file something is wrong, with the line."""

from collections.abc import Iterable, Iterator
import dataclasses

import yaml

# A key of a mapping or the number of an item, from the top of the document.
Place = tuple[str | int, ...]

# What is in the lists of a cloud file.
_KINDS = {
    'aggregates': 'aggregate',
    'placement_aggregates': 'placement aggregate',
    'providers': 'provider',
    'children': 'child',
    'flavors': 'flavor',
    'images': 'image',
}


@dataclasses.dataclass(frozen=True)
class Problem:
    """Something that is wrong.

    :param place: Where it is.
    :param text: What is wrong, as it follows the name of the place and a
        colon.
    """

    place: Place
    text: str


def told(problems: Iterable[Problem], document: yaml.Node) -> list[str]:
    """Return what is wrong and where, in the order of the file.

    :param problems: The problems.
    :param document: The document that has the places.
    """
    found = {_told(problem, document) for problem in problems}
    return [text for _, text in sorted(found)]


def _told(problem: Problem, document: yaml.Node) -> tuple[int, str]:
    line = document.start_mark.line + 1
    things: list[str] = []
    keys: list[str] = []
    above: str | int = ''
    for key, marked, node in _way(document, problem.place):
        line = marked.start_mark.line + 1
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
    """Yield each step, the node with its line, and the node it leads to."""
    for key in place:
        marked = node
        if isinstance(node, yaml.SequenceNode) and isinstance(key, int):
            marked = node = node.value[key]
        elif isinstance(node, yaml.MappingNode):
            for each, value in node.value:
                if each.value == key:
                    marked, node = each, value
        yield key, marked, node


def _name(node: yaml.Node, number: int) -> str:
    """Return the name of an item, or its number if it has none."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == 'name' and isinstance(value, yaml.ScalarNode):
                return str(value.value)
    return f'number {number + 1}'
