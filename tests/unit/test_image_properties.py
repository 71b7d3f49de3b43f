# SPDX-License-Identifier: Apache-2.0
"""A filter sees the image properties that filters declare, and no others."""

from cases import cases
from hypothesis import given
from hypothesis import strategies as st
import pytest

from isolate_aggregates import exception
from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.filters import RequestFilter
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.request.properties import DeclaredProperties
from isolate_aggregates.testing import PlainRequest

GLANCE = {
    'os_distro': 'debian',
    'os_version': '12',
    'license:oracle': 'true',
    'trait:CUSTOM_A': 'required',
    'trait:CUSTOM_B': 'forbidden',
    'secure_boot': 'required',
}
TRAIT = {'trait:CUSTOM_A': 'required'}


class Looking(RequestFilter):
    """A filter that records the image properties it sees."""

    def __init__(self, *declared, keys=()):
        self.declared = declared
        self.keys = keys
        self.seen = []

    @property
    def IMAGE_PROPERTIES(self):  # noqa: N802
        return self.declared

    @property
    def IMAGE_KEYS(self):  # noqa: N802
        return self.keys

    def __call__(self, request, aggregates):
        self.seen.append(dict(request.image_properties))
        assert request.image is None or (
            request.image.properties == request.image_properties
        )
        return ()


def seen_by(*filters, image=Image('i', properties=GLANCE)):  # noqa: B008
    pipeline = Pipeline({str(n): one for n, one in enumerate(filters)})
    pipeline.evaluate(PlainRequest(Flavor('f'), image), AggregateIndex())
    return [one.seen for one in filters]


@cases(
    ('declared', 'keys', 'names'),
    {
        'nothing': ((), (), []),
        'a name': (('os_distro',), (), ['os_distro']),
        'a beginning': (('os_*',), (), ['os_distro', 'os_version']),
        'a key': ((), ('license:*',), ['license:oracle']),
        'a name is no beginning': (('os_dist',), (), []),
        'traits that nothing requires': (('trait:*',), (), []),
    },
)
def test_a_filter_sees_required_traits_and_declared_properties(
    declared, keys, names
):
    [[seen]] = seen_by(Looking(*declared, keys=keys))
    assert seen == TRAIT | {name: GLANCE[name] for name in names}


def test_filters_share_all_declared_properties():
    first, second = seen_by(Looking('os_distro'), Looking('os_version'))
    assert first == second
    assert first[0].keys() == TRAIT.keys() | {'os_distro', 'os_version'}


def test_without_an_image_there_are_no_properties():
    assert seen_by(Looking('os_distro'), image=None) == [[{}]]


def test_keys_and_needed_properties_of_filters_are_separate():
    together = DeclaredProperties.union(
        [
            DeclaredProperties(frozenset({'a', 'b'}), frozenset({'a', 'b'})),
            DeclaredProperties(frozenset({'b', 'c'}), frozenset({'c'})),
        ]
    )
    assert together.patterns == {'a', 'b', 'c'}
    assert together.keys == {'a', 'c'}
    assert together.needed == {'b'}


RECORD = {'r:1': 'x', 'r:2': None, 'os': 'y', 'z': 'z', **TRAIT}
KEYS = {'patterns': {'r:*'}, 'keys': {'r:*'}}


@cases(
    ('declared', 'properties', 'expected'),
    {
        'keys': (KEYS, RECORD, {'r:1': 'x'}),
        'keys without a record': (KEYS, None, {}),
        'needed': ({'patterns': {'os'}}, RECORD, {'os': 'y'}),
        'lost': ({'patterns': {'r:*'}}, RECORD, 'r:2'),
        'no record': ({'patterns': {'os'}}, None, 'os'),
    },
)
def test_what_counts_of_a_record_or_is_missing(declared, properties, expected):
    declaration = DeclaredProperties(
        **{name: frozenset(value) for name, value in declared.items()}
    )
    if isinstance(expected, str):
        with pytest.raises(
            exception.RequestRefused, match=f'properties {expected} are not'
        ):
            declaration.recorded(properties)
    else:
        assert declaration.recorded(properties) == expected
        with_trait = declaration.recorded(properties, ['CUSTOM_A'])
        assert with_trait == expected | TRAIT


names = st.sampled_from(['os_distro', 'os_', 'hw_x', 'trait:A', 'r:1', 'r:'])
patterns = st.sets(st.sampled_from(['os_distro', 'os_*', 'r:*', 'hw', '*']))


@given(
    st.dictionaries(names, st.sampled_from(['required', 'x', ''])), patterns
)
def test_filters_see_only_properties_of_the_image(properties, declared):
    found = DeclaredProperties(frozenset(declared)).among(properties)
    assert found.items() <= properties.items()
    for name, value in properties.items():
        if name.startswith('trait:'):
            assert (name in found) == (value == 'required')
        elif '*' in declared:
            assert name in found
