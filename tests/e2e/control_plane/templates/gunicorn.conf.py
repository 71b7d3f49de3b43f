# SPDX-License-Identifier: Apache-2.0
"""How the web server runs Keystone, Glance, Placement and Nova's API."""

import sys

# They take the arguments of gunicorn for their own.
sys.argv = sys.argv[:1]

worker_class = 'gthread'
threads = 16
graceful_timeout = 5
# A busy machine must not look like a hanging worker.
timeout = 300
# Seconds. After two, its default, it often closes a connection just when a
# client uses it again.
keepalive = 300
# It would be in the home directory, one for all.
control_socket_disable = True
