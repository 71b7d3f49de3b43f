# SPDX-License-Identifier: Apache-2.0
"""Listens on 127.0.0.1, and hands requests to those who answer."""

from collections.abc import Callable, Iterable, Mapping
import http
import io
import json
import re
import socket
import socketserver
import threading
from typing import Any
from urllib import parse
from wsgiref import simple_server

from isolate_aggregates import exception
from isolate_aggregates.compute import USER_AGENT
from isolate_aggregates_tools.rehearse.exchange import (
    Answer,
    Call,
    Request,
    Unknown,
)
from isolate_aggregates_tools.rehearse.identity import Identity
from isolate_aggregates_tools.rehearse.images import Images
from isolate_aggregates_tools.rehearse.nova import Nova
from isolate_aggregates_tools.rehearse.placement import (
    HeldPlacement,
    refusal,
)
from isolate_aggregates_tools.rehearse.world import World

ADDRESS = '127.0.0.1'
_VERSION = re.compile(
    r'(?:^|,)\s*(?:compute\s+)?(?:2\.(\d+)|(latest))\s*(?:,|$)'
)
_VERSIONS = (
    *('HTTP_OPENSTACK_API_VERSION', 'HTTP_X_OPENSTACK_NOVA_API_VERSION'),
)
_Environ = dict[str, Any]
_Respond = Callable[..., Any]


class _Server(socketserver.ThreadingMixIn, simple_server.WSGIServer):
    """Serves on a socket that listens already."""

    daemon_threads = True

    def __init__(self, listener: socket.socket) -> None:
        super().__init__(
            listener.getsockname(), _Handler, bind_and_activate=False
        )
        self.socket.close()
        self.socket = listener
        self.server_name, self.server_port = listener.getsockname()
        self.setup_environ()


class _Handler(simple_server.WSGIRequestHandler):
    def log_message(self, *args: Any) -> None:
        """Say nothing: what was asked is in the report."""

    def address_string(self) -> str:
        # Without a search for the name of this machine.
        return ADDRESS


class Service:
    """The local API, until it is closed.

    :param world: The cloud that it holds.
    :param listener: The socket that it listens on.
    :param regions: The regions that tools may ask for.
    """

    def __init__(
        self,
        world: World,
        listener: socket.socket,
        regions: Iterable[str] = (),
    ) -> None:
        self._world = world
        # One request after the other, as each changes the world.
        self._lock = threading.Lock()
        self._server = _Server(listener)
        self._server.set_app(self._handle)
        self.url = f'http://{ADDRESS}:{self._server.server_port}'
        self._placement = HeldPlacement(world)
        self.identity = Identity(world, self.url, regions)
        self._nova = Nova(world, self._placement)
        self._answering: Mapping[
            str, tuple[str, Callable[[Request], Answer]]
        ] = {
            'identity': ('keystone', self.identity.answer),
            'compute': ('nova', self._nova.answer),
            'image': ('glance', Images(world).answer),
        }
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._placement.close()

    def _handle(self, environ: _Environ, respond: _Respond) -> list[bytes]:
        size = int(environ.get('CONTENT_LENGTH') or 0)
        # Before the lock: a tool may be slow to send it.
        body = environ['wsgi.input'].read(size)
        with self._lock:
            return self._answer(environ, body, respond)

    def _answer(
        self, environ: _Environ, body: bytes, respond: _Respond
    ) -> list[bytes]:
        method, target = environ['REQUEST_METHOD'], environ['PATH_INFO']
        if '://' in target or method == 'CONNECT':
            # As a proxy: the tool wants to leave.
            return self._not_held(
                'proxy', environ, 'what is elsewhere', respond
            )
        part, _, path = target.lstrip('/').partition('/')
        if part == 'placement':
            return self._forward(environ, f'/{path}', body, respond)
        if part not in self._answering:
            name = path.partition('/')[0] if part == 'not-held' else part
            return self._not_held(
                name or 'root', environ, 'this service', respond
            )
        name, handler = self._answering[part]
        headers, minor = {}, 0
        url = f'{self.url}/{part}'
        if name == 'nova':
            path, url = path.removeprefix('v2.1'), f'{url}/v2.1'
            minor = self._minor(environ)
            version = f'2.{minor}'
            headers = {
                'OpenStack-API-Version': f'compute {version}',
                'X-OpenStack-Nova-API-Version': version,
                'Vary': 'OpenStack-API-Version',
            }
        asked = Request(
            method,
            f'/{path.lstrip("/")}',
            _query(environ),
            _parsed(body),
            minor,
            url,
            environ.get('HTTP_USER_AGENT') == USER_AGENT,
        )
        return _send(
            self._world.answer(name, handler, asked), headers, respond
        )

    def _forward(
        self, environ: _Environ, path: str, body: bytes, respond: _Respond
    ) -> list[bytes]:
        environ = {
            **environ,
            'SCRIPT_NAME': '/placement',
            'PATH_INFO': path,
            'wsgi.input': io.BytesIO(body),
        }
        before = self._world.snapshot
        try:
            status, headers, content = self._placement.forward(environ)
        except (Unknown, exception.IsolateAggregatesError) as exc:
            return self._not_held('placement', environ, str(exc), respond)
        number = int(status.split()[0])
        reason = refusal(content) if number >= 400 else ''
        call = Call(
            'placement',
            environ['REQUEST_METHOD'],
            path,
            number,
            reason,
            _parsed(body),
        )
        self._world.note(call, before)
        respond(status, headers)
        return [content]

    def _not_held(
        self, name: str, environ: _Environ, what: str, respond: _Respond
    ) -> list[bytes]:
        def refuse(asked: Request) -> Answer:
            raise Unknown(what)

        asked = Request(
            environ['REQUEST_METHOD'], environ['PATH_INFO'], {}, None
        )
        return _send(self._world.answer(name, refuse, asked), {}, respond)

    def _minor(self, environ: _Environ) -> int:
        for key in _VERSIONS:
            if match := _VERSION.search(environ.get(key, '')):
                return self._nova.newest if match[2] else int(match[1])
        return 1


def _query(environ: _Environ) -> dict[str, str]:
    pairs = parse.parse_qsl(
        environ.get('QUERY_STRING', ''), keep_blank_values=True
    )
    return dict(pairs)


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body) if body else None
    except ValueError:
        return None


def _send(
    answer: Answer, more: Mapping[str, str], respond: _Respond
) -> list[bytes]:
    headers = {
        'X-Openstack-Request-Id': 'req-rehearsal',
        **answer.headers,
        **more,
    }
    content = b''
    if answer.document is not None:
        content = json.dumps(answer.document).encode()
        headers['Content-Type'] = 'application/json'
    headers['Content-Length'] = str(len(content))
    phrase = http.HTTPStatus(answer.status).phrase
    respond(f'{answer.status} {phrase}', list(headers.items()))
    return [content]
