# SPDX-License-Identifier: Apache-2.0
"""What is wrong with names, flavors and requests, whatever is in use.

1. ``near_names`` compares names, ``spelling`` finds what is misspelled, and
   ``renamed_hosts`` finds hosts with another name.
2. ``causes`` says why a request has no host however empty the hosts are, and
   ``unplaceable`` which flavors have none.
"""
