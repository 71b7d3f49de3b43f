#!/usr/bin/env bash
# Expected: gunicorn --limit-request-line 65536 takes request lines of up to
#   65,536 bytes.
# Seen: it takes 8,190, as if that had been given, and says nothing when it
#   starts. 0, which looks like "nothing is allowed", takes them.
# Package: gunicorn 27.0.1
# Why: with hundreds of isolated aggregates the query to Placement is longer
#   than 8,190 bytes, and nova-scheduler finds no host for any server.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet \
    gunicorn==27.0.1
"$folder/venv/bin/python" - <<'PROGRAM'
import http.client
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


def ask(port, length):
    """Return the status for a request line of this length."""
    path = '/?' + 'x' * (length - len('GET /? HTTP/1.1'))
    peer = http.client.HTTPConnection('127.0.0.1', port, timeout=30)
    try:
        peer.request('GET', path)
        return peer.getresponse().status
    finally:
        peer.close()


def served(limit, lengths):
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, 'site_app.py').write_text(APP)
        port = free_port()
        server = subprocess.Popen(
            [
                sys.executable,
                '-m',
                'gunicorn',
                '--bind',
                f'127.0.0.1:{port}',
                '--limit-request-line',
                str(limit),
                '--no-control-socket',
                'site_app:app',
            ],
            cwd=folder,
            env={**os.environ, 'HOME': folder},
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 30
        try:
            while True:
                try:
                    return {length: ask(port, length) for length in lengths}
                except ConnectionRefusedError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.1)
        finally:
            server.terminate()
            server.wait()


above = served(65536, (8190, 8191, 20000))
none = served(0, (20000,))
print('gunicorn', metadata.version('gunicorn'))
print('status by bytes with --limit-request-line 65536:', above)
print('status by bytes with --limit-request-line 0:', none)
if (list(above.values()), none[20000]) != ([200, 414, 414], 200):
    sys.exit('changed')
PROGRAM
# seen: gunicorn 27.0.1
# seen: status by bytes with --limit-request-line 65536: {8190: 200, 8191: 414, 20000: 414}
# seen: status by bytes with --limit-request-line 0: {20000: 200}
