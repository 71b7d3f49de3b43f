# SPDX-License-Identifier: Apache-2.0
"""Glance's API over the images of Nova's Glance fixture, where Nova looks."""

from urllib import parse

import webob
import webob.dec
import webob.exc
from wsgi_intercept import interceptor

URL = 'http://glance.test'
_VERSIONS = {
    'versions': [
        {
            'id': 'v2.9',
            'status': 'CURRENT',
            'links': [{'rel': 'self', 'href': f'{URL}/v2/'}],
        }
    ]
}
# All other arguments ask for images with a property.
_NO_FILTERS = ('limit', 'marker', 'os_hidden', 'sort', 'sort_key', 'sort_dir')
_PATCH = 'application/openstack-images-v2.1-json-patch'


class GlanceApi:
    """A fake of the parts of Glance's API that are used.

    :param images: The images of the fixture, by id.
    """

    def __init__(self, images):
        self._images = images
        self.interceptor = interceptor.RequestsInterceptor(
            lambda: self, url=URL
        )

    @webob.dec.wsgify
    def __call__(self, request):
        """Answer a request."""
        if request.path_info in ('', '/'):
            return webob.Response(json=_VERSIONS, status=300)
        _, version, images, *number = request.path_info.split('/')
        assert (version, images) == ('v2', 'images')
        if not number:
            shown = map(self._shown, self._images.values())
            wanted = {
                key: value
                for key, value in request.GET.items()
                if key not in _NO_FILTERS
            }
            found = [one for one in shown if wanted.items() <= one.items()]
            return webob.Response(json={'images': found})
        image = self._images.get(parse.unquote(number[0]))
        if image is None:
            raise webob.exc.HTTPNotFound('No image found')
        if request.method == 'PATCH':
            assert request.content_type == _PATCH
            for operation in request.json:
                self._change(image['properties'], operation)
        return webob.Response(json=self._shown(image))

    @staticmethod
    def _change(properties, operation):
        key = operation['path'].removeprefix('/')
        if operation['op'] in ('add', 'replace'):
            properties[key] = operation['value']
        elif key in properties:
            del properties[key]
        else:
            raise webob.exc.HTTPConflict(f'Property {key} does not exist.')

    @staticmethod
    def _shown(image):
        return {
            'id': image['id'],
            'name': image['name'],
            'owner': '8a5c0e6d2f7b4d31a9f05f2c1be07c44',
            'visibility': image.get('visibility', 'public'),
            'status': 'active',
            **{key: image.get(key) for key in ('min_ram', 'min_disk', 'size')},
            **{
                key: value
                for key, value in image['properties'].items()
                if isinstance(value, str)
            },
        }
