# SPDX-License-Identifier: Apache-2.0
"""What Nova itself does with a request, before and after Placement.

Each mirror repeats one request filter of Nova, or what its scheduler does
beside them, or one of its host filters that look at aggregates alone. They
make a command ask what Nova would ask. Inside nova-scheduler, where Nova does
all this, they do not run. They need no names in the configuration: the options
of Nova switch them on and off, as they do in Nova.

What is looked up elsewhere, such as the aggregates of a network, the request
brings along.
"""

from isolate_aggregates.filters.mirrored import host_filters, places, traits

# The constant one first, then as Nova has them.
MIRRORS = (*traits.MIRRORS, *places.MIRRORS, *host_filters.MIRRORS)
