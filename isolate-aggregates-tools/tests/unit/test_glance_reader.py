# SPDX-License-Identifier: Apache-2.0
"""What is read from Glance."""

from cases import cases
from http_fakes import GLANCE, connection
import pytest

from isolate_aggregates import exception
from isolate_aggregates.request import Image
from isolate_aggregates_tools import errors
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools.cloud.live.glance import GlanceClient

ID = 'a1b2c3d4-0000-4000-8000-00000000000'
WINDOWS = Image(
    'windows-2022',
    f'{ID}1',
    {'trait:CUSTOM_WINDOWS': 'required', 'os_distro': 'windows'},
    owner='project-1',
    visibility='public',
)
DEBIAN = Image('debian', f'{ID}2', visibility='public', disk_format='qcow2')


def reader():
    return GlanceClient(connection())


def test_an_image_comes_with_its_custom_properties_and_no_others(http, glance):
    glance.images = [DEBIAN, WINDOWS]
    glance.answer(http)
    assert reader().images() == [DEBIAN, WINDOWS]


@cases(
    ('name', 'number'),
    {
        'by id': (f'{ID}2', 2),
        'by name': ('windows-2022', 1),
        'a name that looks like an id': (f'{ID}9', 3),
        'another case is another name': ('Ubuntu', 4),
        'and the other way round': ('ubuntu', 5),
        'a name with a meaning': ('in:ubuntu,debian', 6),
        'a name to be quoted': ('a/b?c d=ä&e', 7),
    },
)
def test_an_image_is_found_by_id_or_any_name(http, glance, name, number):
    glance.images = [
        WINDOWS,
        DEBIAN,
        Image(f'{ID}9', f'{ID}3'),
        Image('Ubuntu', f'{ID}4'),
        Image('ubuntu', f'{ID}5'),
        Image('in:ubuntu,debian', f'{ID}6'),
        Image('a/b?c d=ä&e', f'{ID}7'),
    ]
    glance.answer(http)
    assert reader().image(name).id == f'{ID}{number}'


def test_an_id_takes_precedence_over_a_name(http, glance):
    glance.images = [Image(f'{ID}2', f'{ID}1'), DEBIAN]
    glance.answer(http)
    assert reader().image(f'{ID}2') == DEBIAN


def test_a_name_of_several_images_is_refused_with_their_ids(http, glance):
    glance.images = [DEBIAN, Image('debian', f'{ID}1')]
    # Each on a separate page.
    glance.page = 1
    glance.answer(http)
    with pytest.raises(tools_errors.NotUnique) as caught:
        reader().image('debian')
    assert str(caught.value) == (
        "The image name 'debian' is not unique; name one of "
        f'{ID}1, {ID}2 instead.'
    )


@pytest.mark.parametrize('name', ['nobody', f'{ID}9'])
def test_an_unknown_image_is_not_found(http, glance, name):
    glance.images = [DEBIAN]
    glance.answer(http)
    with pytest.raises(errors.NotFound) as caught:
        reader().image(name)
    assert str(caught.value) == (
        f'There is no image with the name or id {name!r} in Glance at '
        'http://glance.test.'
    )


def test_images_that_glance_lists_only_on_request_are_read_too(http, glance):
    glance.images = [
        WINDOWS,
        Image('hidden', f'{ID}3', visibility='private'),
        Image('community', f'{ID}4', visibility='community'),
        Image('both', f'{ID}5', visibility='community'),
    ]
    glance.hidden = {f'{ID}3', f'{ID}5'}
    glance.answer(http)
    assert reader().images() == glance.images
    for image in glance.images:
        assert reader().image(image.name) == image


def test_an_image_in_several_lists_is_read_once(http, glance):
    # Glance lists the community images of the user's project by default.
    glance.images = [DEBIAN, WINDOWS]
    glance.answer(http)
    found = {'images': [{'id': DEBIAN.id, 'name': 'debian'}]}
    http.get(f'{GLANCE}/v2/images?visibility=community', json=found)
    assert reader().images() == [DEBIAN, WINDOWS]
    assert reader().image('debian') == DEBIAN


def test_a_listed_image_takes_precedence_over_hidden_namesakes(http, glance):
    glance.images = [
        Image('debian', f'{ID}3', visibility='community'),
        Image('debian', f'{ID}4', visibility='public'),
        DEBIAN,
    ]
    glance.hidden = {f'{ID}4'}
    glance.answer(http)
    assert reader().image('debian') == DEBIAN
    glance.images.remove(DEBIAN)
    assert reader().image('debian').id == f'{ID}4'


def test_images_are_read_page_by_page(http, glance):
    glance.images = [Image(f'image-{n}', f'{ID}{n}') for n in range(5)]
    glance.page = 2
    glance.answer(http)
    assert reader().images() == glance.images
    asked = [
        request
        for request in http.request_history
        if 'glance' in request.url and 'visibility' not in request.qs
    ]
    assert len([r for r in asked if 'os_hidden' not in r.qs]) == 3


def test_an_image_can_be_deleted_while_the_list_is_read(http, glance):
    glance.images = [Image(f'image-{n}', f'{ID}{n}') for n in range(4)]
    glance.page = 2

    def delete():
        glance.images = [i for i in glance.images if i.id != f'{ID}1']

    glance.after_page = delete
    glance.answer(http)
    assert [i.name for i in reader().images()] == [
        'image-0',
        'image-2',
        'image-3',
    ]


def test_a_page_that_is_repeated_is_an_error(http, glance):
    found = {'images': [{'id': f'{ID}1'}], 'next': '/v2/images?marker=x'}
    http.get(f'{GLANCE}/v2/images', json=found)
    with pytest.raises(exception.ServiceError, match=f'{ID}1 again'):
        reader().images()


@pytest.mark.parametrize(
    'endpoint', [GLANCE, f'{GLANCE}/', f'{GLANCE}/v2', f'{GLANCE}/v2/']
)
def test_the_endpoint_can_include_the_version(http, glance, endpoint):
    glance.images = [DEBIAN]
    glance.answer(http)
    link = connection()
    link.endpoints['image'] = endpoint
    assert GlanceClient(link).images() == [DEBIAN]


def test_users_can_set_any_property(http, glance):
    # openstacksdk raises errors for some of these keys, and converts others.
    properties = {
        'cls': 'a',
        'connection': 'b',
        'hw_boot_menu': 'maybe',
        'hw_cpu_sockets': 'many',
        'metadata': 'c',
        'microversion': 'd',
        'properties': 'e',
    }
    glance.images = [Image('odd', f'{ID}1', properties)]
    glance.answer(http)
    assert reader().images() == glance.images
    assert reader().image(f'{ID}1') == glance.images[0]


def test_an_image_need_not_have_a_name_or_an_owner(http, glance):
    found = {'id': f'{ID}1', 'name': None, 'owner': None, 'kernel_id': None}
    http.get(f'{GLANCE}/v2/images', json={'images': [found]})
    assert reader().images() == [Image('', f'{ID}1')]


@cases(
    ('answer', 'lacking'),
    {
        'no images': ({}, "KeyError('images')"),
        'no id': ({'images': [{'name': 'x'}]}, "KeyError('id')"),
        'invalid images': (
            {'images': ['x']},
            "AttributeError(\"'str' object has no attribute 'get'\")",
        ),
    },
)
def test_an_incomplete_answer_is_an_error(http, glance, answer, lacking):
    http.get(f'{GLANCE}/v2/images', json=answer)
    with pytest.raises(exception.ServiceError) as caught:
        reader().images()
    assert str(caught.value) == (
        'Glance at http://glance.test answered /v2/images?limit=1000 with '
        f'JSON that lacks expected data: {lacking}; is this the right '
        'endpoint?'
    )
