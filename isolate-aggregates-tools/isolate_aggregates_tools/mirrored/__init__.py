# SPDX-License-Identifier: Apache-2.0
"""Reproductions of Nova's own filters, for use outside Nova.

Each mirror reproduces one of Nova's request filters, a part of its scheduler,
what nova-api refuses, or one of its host filters that depend only on
aggregates or compute services. With these, commands send the same queries as
Nova. They do not run inside nova-scheduler. They need no configuration: Nova's
options enable them, as in Nova.

Data from other services, for example the aggregates of a network, must be part
of the request.
"""
