# SPDX-License-Identifier: Apache-2.0
"""A fake Neutron without any networks.

Nova requests the ports of a server whenever the server is shown, even if it
was created without networks. All collections are empty.

The argument is the port to listen on.
"""

from http import server
import json
import sys
from urllib import parse


class Handler(server.BaseHTTPRequestHandler):
    """Answers each request for a collection with an empty one."""

    protocol_version = 'HTTP/1.1'

    def do_GET(self):
        path = parse.urlsplit(self.path).path
        collection = path.rpartition('/')[2].removesuffix('.json')
        body = json.dumps({collection.replace('-', '_'): []}).encode()
        self.send_response(200)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == '__main__':
    server.ThreadingHTTPServer(
        ('127.0.0.1', int(sys.argv[1])), Handler
    ).serve_forever()
