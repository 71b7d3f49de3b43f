# SPDX-License-Identifier: Apache-2.0
"""What Nova keeps of an image, and what has to be read from Glance."""

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
