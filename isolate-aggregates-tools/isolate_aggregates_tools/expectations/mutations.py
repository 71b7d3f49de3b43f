# SPDX-License-Identifier: Apache-2.0
"""Alters a cloud in one place after the other, to test its expectations.

An expectation *notices* a mutation if the cloud meets it and the altered cloud
does not. A mutation that no expectation notices shows what they leave out.

Each metadata key of an aggregate, each extra spec of a flavor and each
property of an operator's image is removed and altered; each trait of a
resource provider is removed. A mutation that changes no answer for any flavor,
image or project of the cloud, for example of a tag that no filter reads, is
not a gap.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses
import re

from isolate_aggregates.request import Image
from isolate_aggregates.request.extra_specs import REQUIRED, TRAIT_PREFIX
from isolate_aggregates.text import quoted
from isolate_aggregates_tools import ranges
from isolate_aggregates_tools.answers.requests import STRANGER
from isolate_aggregates_tools.cloud import changes
from isolate_aggregates_tools.cloud.changes import Change, Values
from isolate_aggregates_tools.expectations.answers import (
    Answers,
    AnswersWithoutTrait,
    names_trait,
)
from isolate_aggregates_tools.expectations.expectation import (
    Expectation,
    subject,
    violations,
)
from isolate_aggregates_tools.expectations.survives import Survives
from isolate_aggregates_tools.placement.provider import trees
from isolate_aggregates_tools.request import Request

_TRAIT = 'trait'
_ALTERED = 'altered'
_ALTERED_TRAIT = f'{TRAIT_PREFIX}CUSTOM_ALTERED'
_FORBIDDEN = 'forbidden'
# Requires or forbids a trait, also in a numbered group.
_TRAIT_SPEC = re.compile(r'trait[a-zA-Z0-9_-]*:')


@dataclasses.dataclass(frozen=True)
class Mutation:
    """A change of a cloud in one place.

    :param kind: ``tag``, ``extra spec``, ``property`` or ``trait``.
    :param subject: What it belongs to, with its kind.
    :param key: The key, or the trait.
    :param replacement: What takes its place; None if it is removed.
    :param alter: Returns the answers of the altered cloud.
    """

    kind: str
    subject: str
    key: str
    replacement: str | None
    alter: Callable[[], Answers] = dataclasses.field(compare=False, repr=False)

    def __str__(self) -> str:
        done = (
            'removed'
            if self.replacement is None
            else f'replaced by {self.replacement!r}'
        )
        return f'{self.kind} {quoted(self.key)} of {self.subject} {done}'


@dataclasses.dataclass(frozen=True)
class Gap:
    """A mutation that no expectation notices.

    :param effect: An answer that it changes, as a sentence.
    """

    mutation: Mutation
    effect: str


@dataclasses.dataclass(frozen=True)
class Coverage:
    """Which mutations expectations notice.

    :param noticed: The number of mutations that at least one notices.
    :param without_effect: The number of those that change no answer.
    :param gaps: Those that change an answer, and that none notices.
    """

    noticed: int
    without_effect: int
    gaps: tuple[Gap, ...]


# Shows the progress of an iteration over so many items.
Track = Callable[[Iterable[Mutation], int], Iterable[Mutation]]


def coverage(
    expectations: Sequence[Expectation],
    answers: Answers,
    track: Track = lambda mutations, total: mutations,
) -> Coverage:
    """Return which mutations of a cloud the expectations notice.

    :param expectations: The expectations; those that the cloud does not meet
        notice nothing, and those that take long are not asked.
    """
    met = [
        expectation
        for expectation in expectations
        if not isinstance(expectation.check, Survives)
        and not any(violations(expectation, answers))
    ]
    comparison = _Comparison(answers)
    # Traits that no question names cannot change an answer.
    questions = [q for q in answers.questions.values() if q is not None]
    mutations = list(mutations_of(answers, comparison.images))
    relevant_traits = frozenset(
        trait
        for trait in {m.key for m in mutations if m.kind == _TRAIT}
        if any(names_trait(question, trait) for question in questions)
    )
    noticed = without_effect = 0
    gaps = []
    for mutation in track(mutations, len(mutations)):
        if mutation.kind == _TRAIT and mutation.key not in relevant_traits:
            without_effect += 1
            continue
        altered = mutation.alter()
        if any(any(violations(e, altered)) for e in met):
            noticed += 1
        elif effect := comparison.effect(altered):
            gaps.append(Gap(mutation, effect))
        else:
            without_effect += 1
    return Coverage(noticed, without_effect, tuple(gaps))


class _Comparison:
    """Compares the answers of altered clouds with those of a cloud.

    The questions are each flavor with each kind of operators' image that
    matters, and each flavor in each project that aggregates name.
    """

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        images = answers.snapshot.images
        numbers = {id(image): number for number, image in enumerate(images)}
        # The number of each image in the snapshot; None for no image.
        self._kinds = [
            None if image is None else numbers[id(image)]
            for image in answers.operator_images
        ]
        asked = {id(r.image) for r in answers.context.requests.values()}
        self.images = [
            image
            for number, image in enumerate(images)
            if (number in self._kinds or id(image) in asked)
            and not image.is_tenants
        ]
        for request, _ in self._requests(answers, answers):
            answers.hosts(request)

    def effect(self, altered: Answers) -> str:
        """Return the first answer that differs; empty if there is none."""
        for old, new in self._requests(self._answers, altered):
            before, after = self._answers.hosts(old), altered.hosts(new)
            texts = []
            if after - before:
                texts.append(f'could use {ranges.folded(after - before)}')
            if before - after:
                texts.append(
                    f'could no longer use {ranges.folded(before - after)}'
                )
            if texts:
                project = new.project_id
                name = subject(new, None if project == STRANGER else project)
                return f'{name} {" and ".join(texts)}'
        return ''

    def _requests(
        self, old: Answers, new: Answers
    ) -> Iterator[tuple[Request, Request]]:
        projects = sorted(old.named_projects | new.named_projects)
        for flavors in zip(
            old.snapshot.flavors, new.snapshot.flavors, strict=True
        ):
            for number in self._kinds:
                images = [
                    None if number is None else one.snapshot.images[number]
                    for one in (old, new)
                ]
                yield (
                    old.request(flavors[0], images[0]),
                    new.request(flavors[1], images[1]),
                )
            for project in projects:
                yield (
                    old.request(flavors[0], None, project),
                    new.request(flavors[1], None, project),
                )


def mutations_of(
    answers: Answers, images: Iterable[Image]
) -> Iterator[Mutation]:
    """Yield all mutations of a cloud.

    :param images: The images whose properties are altered.
    """
    snapshot = answers.snapshot
    for aggregate in snapshot.aggregates:
        for key, values, replacement in _alterations(
            aggregate.metadata, _altered_tag
        ):
            yield Mutation(
                'tag',
                f'aggregate {aggregate.name}',
                key,
                replacement,
                _altering(answers, changes.values(aggregate, values), False),
            )
    for flavor in snapshot.flavors:
        for key, values, replacement in _alterations(
            flavor.extra_specs, _altered_spec
        ):
            change = changes.values(flavor, values)
            yield Mutation(
                'extra spec',
                f'flavor {flavor.name}',
                key,
                replacement,
                _altering(answers, change, True),
            )
    for image in images:
        for key, values, replacement in _alterations(
            image.properties, _altered_spec
        ):
            change = changes.values(image, values)
            yield Mutation(
                'property',
                f'image {quoted(image.name)}',
                key,
                replacement,
                _altering(answers, change, True),
            )
    yield from _of_traits(answers)


def _of_traits(answers: Answers) -> Iterator[Mutation]:
    for tree in trees(answers.snapshot.providers).values():
        # Other hosts may use what a provider shares.
        host = None if answers.index.sharing else tree[0].host
        for provider in tree:
            for trait in sorted(provider.traits):
                yield Mutation(
                    _TRAIT,
                    f'provider {provider.name}',
                    trait,
                    None,
                    _without_trait(answers, provider.uuid, trait, host),
                )


def _without_trait(
    answers: Answers, provider: str, trait: str, host: str | None
) -> Callable[[], Answers]:
    def alter() -> Answers:
        change = changes.names_of_provider(
            provider, 'traits', lambda traits: traits - {trait}
        )
        # The trait still exists.
        snapshot = changes.new_trait(trait)(change(answers.snapshot))
        return AnswersWithoutTrait(snapshot, answers, trait, host)

    return alter


def _altering(
    answers: Answers, change: Change, same_aggregates: bool
) -> Callable[[], Answers]:
    return lambda: Answers(
        change(answers.snapshot), answers.context, answers, same_aggregates
    )


def _alterations(
    values: Mapping[str, str],
    altered: Callable[[str, str], tuple[Values, str]],
) -> Iterator[tuple[str, Values, str | None]]:
    """Yield how each value is removed and altered, and what replaces it."""
    for key in sorted(values):
        yield key, {key: None}, None
        yield key, *altered(key, values[key])


def _altered_tag(key: str, value: str) -> tuple[Values, str]:
    if key.startswith(TRAIT_PREFIX):
        return {key: None, _ALTERED_TRAIT: value}, _ALTERED_TRAIT
    return {key: _ALTERED}, _ALTERED


def _altered_spec(key: str, value: str) -> tuple[Values, str]:
    if not _TRAIT_SPEC.match(key):
        return {key: _ALTERED}, _ALTERED
    other = _FORBIDDEN if value == REQUIRED else REQUIRED
    return {key: other}, other
