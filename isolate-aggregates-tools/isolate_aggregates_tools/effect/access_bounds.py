# SPDX-License-Identifier: Apache-2.0
"""The hosts that servers must and may use while a cloud is changed."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
import dataclasses

from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates_tools.answers import deciding, scope
from isolate_aggregates_tools.answers.deciding import Questions
from isolate_aggregates_tools.answers.offers import Offers
from isolate_aggregates_tools.answers.requests import Requests
from isolate_aggregates_tools.answers.scope import Asker
from isolate_aggregates_tools.cloud.snapshot import Snapshot

_Hosts = frozenset[str]
# Who may use too many or too few hosts, with these hosts.
Violation = tuple[Asker, _Hosts, _Hosts]

# The most combinations of flavors, images and projects that are asked about.
# If there are more, no image is combined with a project.
_MOST_ASKERS = 2000

# The names of flavors and the ids of images stay when they are changed.
_Key = tuple[str, str | None, str | None]


@dataclasses.dataclass(frozen=True)
class State:
    """A cloud at one moment, and the hosts that servers may use.

    :param offers: Those of this cloud or of one shortly before it.
    """

    snapshot: Snapshot
    access: Mapping[_Key, _Hosts]
    offers: Offers


class Bounds:
    """The access before and after a change, which limits it in between.

    :param afters: The cloud after each command; at least one.
    """

    def __init__(
        self,
        before: Snapshot,
        afters: Sequence[Snapshot],
        pipeline: Pipeline,
        requests: Requests,
    ) -> None:
        after = afters[-1]
        self._pipeline = pipeline
        self._requests = requests
        # Equal sets are kept once: most servers may use the same hosts.
        self._sets: dict[_Hosts, _Hosts] = {}
        self._members = _flavors(before, afters)
        states = (before, *afters)
        images = dict.fromkeys(
            image.id or image.name if image else None
            for snapshot in (before, after)
            for image in scope.images(snapshot, pipeline)
        )
        existing = {id(image) for image in before.images}
        images |= {
            image.id or image.name: None
            for image in _images(states)
            if id(image) not in existing
        }
        projects = _projects(before, afters, pipeline)
        self._keys: list[_Key] = [
            (flavor, image, project)
            for flavor in self._members
            for image in images
            for project in projects
        ]
        if len(self._keys) > _MOST_ASKERS:
            self._keys = [
                key for key in self._keys if key[1] is None or key[2] is None
            ]
        self._names = {
            image.id or image.name: image.name for image in _images(states)
        }
        self.start = self._state(before, Offers(before))
        self.end = self._state(after, Offers(after, before=self.start.offers))
        old, new = self.start.access, self.end.access
        self._most = {key: old[key] | new[key] for key in self._keys}
        self._least = {key: old[key] & new[key] for key in self._keys}

    def after(self, previous: State, snapshot: Snapshot) -> State:
        """Return a state that a change makes of another.

        Only the hosts that have moved are looked at, if that is all.
        """
        # What is computed for it is forgotten with the state.
        snapshot = dataclasses.replace(snapshot)
        moved_hosts = _moved(previous.snapshot, snapshot)
        if moved_hosts is None:
            # They remember each question, so each cloud has its own.
            offers = Offers(snapshot, before=previous.offers)
            return self._state(snapshot, offers)
        some = Offers(scope.among(snapshot, moved_hosts))
        answers = {
            key: self._once(previous.access[key] - moved_hosts | hosts)
            for key, hosts in self._access(snapshot, some).items()
        }
        return State(snapshot, answers, previous.offers)

    def _state(self, snapshot: Snapshot, offers: Offers) -> State:
        return State(snapshot, self._access(snapshot, offers), offers)

    def violations(self, state: State) -> Iterator[Violation]:
        """Yield who may use too many or too few hosts, with these hosts."""
        for key, hosts in state.access.items():
            too_many = hosts - self._most[key]
            too_few = self._least[key] - hosts
            if too_many or too_few:
                flavor, image, project = key
                name = None if image is None else self._names.get(image, image)
                for member in self._members[flavor]:
                    yield Asker(member, name, project), too_many, too_few

    def _access(
        self, snapshot: Snapshot, offers: Offers
    ) -> dict[_Key, _Hosts]:
        """Return the hosts that all servers may use."""
        flavors = {flavor.name: flavor for flavor in scope.flavors(snapshot)}
        images: dict[str | None, Image | None] = {
            image.id or image.name: image for image in snapshot.images
        }
        images[None] = None
        questions = Questions(snapshot, self._pipeline, self._requests)
        answers = {}
        with deciding.silent():
            for key in self._keys:
                flavor_name, image_id, project = key
                flavor = flavors.get(flavor_name)
                answers[key] = self._once(
                    offers.hosts(
                        questions.of(flavor, images[image_id], project)
                    )
                    if flavor and image_id in images
                    else frozenset()
                )
        return answers

    def _once(self, hosts: _Hosts) -> _Hosts:
        return self._sets.setdefault(hosts, hosts)


def _projects(
    before: Snapshot, afters: Sequence[Snapshot], pipeline: Pipeline
) -> list[str | None]:
    """Return the projects to ask about, first those of changed aggregates."""
    changed = [
        aggregate
        for after in afters
        for pair in scope.changed_aggregates(before, after)
        for aggregate in pair
        if aggregate
    ]
    first, others = (
        scope.projects(aggregates, pipeline)
        for aggregates in (changed, before.aggregates)
    )
    return list(dict.fromkeys((*first, *others)))


def _moved(before: Snapshot, after: Snapshot) -> _Hosts | None:
    """Return the hosts that joined or left aggregates.

    None if there are other changes: metadata may change the access to any
    host, for example if a project gets an aggregate of its own.
    """
    for old, new in scope.changed_aggregates(before, after):
        if not (old and new) or old.metadata != new.metadata:
            return None
    return scope.affected(before, after)


def _flavors(
    before: Snapshot, afters: Sequence[Snapshot]
) -> dict[str, tuple[str, ...]]:
    """Return the names of the flavors to ask about, with those they stand for.

    Of flavors that no command changes and whose extra specs are equal, those
    that need less stand for the others: what a smaller one may use, a larger
    one may use if it fits.
    """
    existing = {id(flavor) for flavor in before.flavors}
    remaining = {flavor.name for flavor in afters[-1].flavors}
    changed = {
        *(
            flavor.name
            for snapshot in afters
            for flavor in snapshot.flavors
            if id(flavor) not in existing
        ),
        *({flavor.name for flavor in before.flavors} - remaining),
    }
    kinds: dict[Hashable, list[Flavor]] = {}
    for flavor in scope.flavors(before):
        if flavor.name not in changed:
            specs = frozenset(flavor.extra_specs.items())
            kinds.setdefault(specs, []).append(flavor)
    members: dict[str, tuple[str, ...]] = {
        name: (name,) for name in sorted(changed)
    }
    for flavors in kinds.values():
        for flavor in flavors:
            if not any(_is_smaller(other, flavor) for other in flavors):
                members[flavor.name] = tuple(
                    other.name
                    for other in flavors
                    if other is flavor or _is_smaller(flavor, other)
                )
    return members


def _is_smaller(flavor: Flavor, than: Flavor) -> bool:
    sizes, others = (
        (one.vcpus, one.ram, one.disk + one.ephemeral, one.swap)
        for one in (flavor, than)
    )
    if sizes == others:
        return flavor.name < than.name
    return all(a <= b for a, b in zip(sizes, others, strict=True))


def _images(states: Iterable[Snapshot]) -> Iterator[Image]:
    """Yield each image of some clouds once, also as it was before a change."""
    seen: set[int] = set()
    for snapshot in states:
        for image in snapshot.images:
            if id(image) not in seen:
                seen.add(id(image))
                yield image
