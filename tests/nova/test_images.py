# SPDX-License-Identifier: Apache-2.0
"""What Nova keeps of an image, and what has to be read from Glance."""

from keystoneauth1 import exceptions as ks_exceptions
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
import pytest

from isolate_aggregates import exception
from isolate_aggregates.nova import images
from isolate_aggregates.request.properties import Declared

GLANCE = {
    'os_distro': 'debian',
    'hw_machine_type': 'q35',
    'hw_vif_multiqueue_enabled': 'yes',
    'license:oracle': 'true',
    'trait:CUSTOM_A': 'required',
}
TRAIT = {'trait:CUSTOM_A': 'required'}


class Glance:
    """Counts how often the image is read."""

    def __init__(self, properties=GLANCE):
        self.properties = properties
        self.read = 0

    def __call__(self, image_id):
        assert image_id == 'image-1'
        self.read += 1
        return self.properties


def seen(declared, keys=(), read=None, image_id='image-1'):
    objects.register_all()
    identity = {'id': image_id} if image_id else {}
    image = objects.ImageMeta(
        properties=objects.ImageMetaProps.from_dict(GLANCE), **identity
    )
    return images.properties(
        image,
        Declared(frozenset(declared) | frozenset(keys), frozenset(keys)),
        read or Glance(),
    )


@pytest.mark.parametrize('declared', [(), ('hw_machine_type',)])
def test_glance_is_not_asked_for_what_nova_keeps_as_it_is(declared):
    glance = Glance()
    assert seen(declared, read=glance) == TRAIT | {
        name: GLANCE[name] for name in declared
    }
    assert glance.read == 0


@pytest.mark.parametrize(
    'name',
    ['os_distro', 'hw_vif_multiqueue_enabled', 'license:oracle'],
    ids=['may come from an older name', 'is converted', 'is dropped'],
)
def test_glance_is_asked_once_for_everything_else(name):
    glance = Glance()
    found = seen((name, 'hw_machine_type'), ('other:*',), glance)
    assert found == TRAIT | {
        name: GLANCE[name], 'hw_machine_type': 'q35'
    }  # fmt: skip
    assert glance.read == 1


@pytest.mark.parametrize('name', ['os_distro', 'hw_vif_multiqueue_enabled'])
def test_glance_is_asked_for_what_nova_keeps_in_another_way(name):
    assert seen((name,)) == TRAIT | {name: GLANCE[name]}


def test_a_trait_that_was_not_required_when_nova_was_asked_is_not():
    glance = Glance(GLANCE | {'trait:CUSTOM_B': 'required'})
    assert seen(('os_*', 'trait:*'), read=glance) == TRAIT | {
        'os_distro': 'debian'
    }


def test_an_image_of_which_nova_knows_nothing_has_no_properties():
    objects.register_all()
    image = objects.ImageMeta()
    declared = Declared(frozenset({'hw_machine_type'}))
    assert images.properties(image, declared, Glance()) == {}


def test_all_that_is_missing_is_named_in_order():
    needed = [f'license:{name}' for name in 'dbeac']
    with pytest.raises(exception.RequestRefused) as caught:
        seen(needed, read=Glance(None))
    [reason] = caught.value.reasons
    assert f'the image properties {", ".join(sorted(needed))} ca' in reason


@pytest.mark.parametrize(
    ('read', 'image_id'),
    [(Glance(None), 'image-1'), (Glance(), None)],
    ids=['the image is gone', 'known from a volume only'],
)
class TestWithoutTheImage:
    """The image itself cannot be read."""

    def test_what_nova_knows_is_taken_from_nova(self, read, image_id):
        found = seen(
            ('os_distro', 'hw_vif_multiqueue_enabled', 'hw_scsi_model'),
            read=read,
            image_id=image_id,
        )
        assert found == TRAIT | {
            'os_distro': 'debian', 'hw_vif_multiqueue_enabled': 'True'
        }  # fmt: skip

    @pytest.mark.parametrize('needed', ['license:oracle', 'license:*'])
    def test_what_is_needed_refuses(self, read, image_id, needed):
        with pytest.raises(exception.RequestRefused) as caught:
            seen((needed,), ('key:*',), read, image_id)
        assert caught.value.reasons == (
            f'the image properties {needed} cannot be read: the image is '
            'gone, not visible to the project, or known only from a volume',
        )

    def test_a_key_opens_nothing(self, read, image_id):
        assert seen((), ('license:*',), read, image_id) == TRAIT


class Api:
    """Glance as Nova asks it."""

    def __init__(self):
        self.properties = {'os_distro': 'debian', 'a': 1, 'b': None}
        self.error = None
        self.asked = []

    def get(self, context, image_id):
        self.asked.append(image_id)
        if self.error:
            raise self.error
        return {'properties': self.properties}


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


class TestImageProperties:
    """Images that are read from Glance are remembered for a while."""

    @pytest.fixture(autouse=True)
    def _known(self, monkeypatch):
        self.api, self.clock = Api(), Clock()
        monkeypatch.setattr(images.glance, 'API', lambda: self.api)
        self.known = images.ImageProperties(self.clock)

    def get(self, image_id='image-1'):
        return self.known.get(nova_context.get_admin_context(), image_id)

    def test_properties_are_texts_and_those_unset_are_left_out(self):
        assert self.get() == {'os_distro': 'debian', 'a': '1'}

    def test_an_image_without_properties_has_none(self):
        self.api.get = lambda context, image_id: {}
        assert self.get() == {}

    def test_an_image_is_read_again_after_half_a_minute(self):
        first = self.get()
        self.api.properties = {}
        self.clock.now += 29
        assert self.get() == first
        self.clock.now += 1
        assert self.get() == {}
        assert len(self.api.asked) == 2

    def test_the_images_read_last_are_remembered(self):
        for number in range(512):
            self.get(number)
        self.get(0)
        assert len(self.api.asked) == 512
        # Reading an image again makes it one of the last.
        self.clock.now += 30
        self.get(0)
        self.get(512)
        self.clock.now -= 1
        self.api.asked.clear()
        self.get(0)
        self.get(2)
        self.get(1)
        assert self.api.asked == [1]

    @pytest.mark.parametrize(
        'error',
        [
            nova_exception.ImageNotFound(image_id='image-1'),
            ks_exceptions.AuthorizationFailure(),
        ],
    )
    def test_an_image_that_cannot_be_had_has_no_properties(self, error):
        self.api.error = error
        assert self.get() is None
        # It is asked for again: it may have been shared since.
        self.api.error = None
        assert self.get() == {'os_distro': 'debian', 'a': '1'}

    @pytest.mark.parametrize(
        'error',
        [
            nova_exception.GlanceConnectionFailed(server='g', reason='r'),
            ks_exceptions.ConnectFailure(),
        ],
    )
    def test_a_glance_that_fails_is_an_error(self, error):
        self.api.error = error
        with pytest.raises(exception.ServiceError, match='image-1'):
            self.get()
