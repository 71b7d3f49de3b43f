#!/usr/bin/env bash
# Expected: a server that answers with HTTP/1.1 and a length, and without a
#   "Connection: close" header, keeps the connection for the next request.
# Seen: uWSGI with --http-socket answers so and closes the connection.
# Package: pyuwsgi 2.0.30.post1 (uWSGI 2.0.30)
# Why: keystoneauth and all OpenStack clients keep connections. The next request
#   to Placement meets a closed one and counts as a failure, or is repeated;
#   "add-header = Connection: close" tells them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet \
    pyuwsgi==2.0.30.post1
"$folder/venv/bin/python" - <<'PROGRAM'
from importlib import metadata
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

APP = '''
def app(environ, start_response):
    start_response('200 OK', [('Content-Length', '2')])
    return [b'ok']
'''


def free_port():
    with socket.create_server(('127.0.0.1', 0)) as listener:
        return listener.getsockname()[1]


def answer(port):
    """Send one request, and read until the server closes, or ten seconds."""
    with socket.create_connection(('127.0.0.1', port), timeout=10) as peer:
        peer.sendall(b'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
        parts = []
        while part := peer.recv(65536):
            parts.append(part)
    return b''.join(parts).decode()


def served(port):
    deadline = time.monotonic() + 30
    while True:
        try:
            return answer(port)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


with tempfile.TemporaryDirectory() as folder:
    pathlib.Path(folder, 'site_app.py').write_text(APP)
    port = free_port()
    server = subprocess.Popen(
        [
            os.path.join(os.path.dirname(sys.executable), 'pyuwsgi'),
            '--http-socket',
            f'127.0.0.1:{port}',
            '--module',
            'site_app:app',
            '--chdir',
            folder,
            '--die-on-term',
            '--disable-logging',
        ],
        stderr=subprocess.DEVNULL,
    )
    try:
        text = served(port)
    except TimeoutError:
        sys.exit('changed: the connection stays open')
    finally:
        server.terminate()
        server.wait()

print('pyuwsgi', metadata.version('pyuwsgi'))
print('answer:', text.split('\r\n\r\n')[0].splitlines())
print('then the server closed the connection')
if 'connection' in text.lower() or not text.startswith('HTTP/1.1 200'):
    sys.exit('changed')
PROGRAM
# seen: pyuwsgi 2.0.30.post1
# seen: answer: ['HTTP/1.1 200 OK', 'Content-Length: 2']
# seen: then the server closed the connection
