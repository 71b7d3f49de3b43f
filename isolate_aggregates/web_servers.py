# SPDX-License-Identifier: Apache-2.0
"""The queries that web servers before Placement accept by default."""

# The maximum length of a query in bytes, with the headers of Nova. The buffer
# of uWSGI, 4,096 bytes, has to hold the headers and two copies of the query.
UWSGI = 1_600
GUNICORN = 4_050
APACHE = 8_150
HAPROXY = 14_700
