# SPDX-License-Identifier: Apache-2.0
"""What to do about findings and requests, and whom each repair lets in.

1. ``effects`` compares who may use which hosts before and after a repair.
2. ``admitted`` says whom a repair lets in, as data and in words.
3. ``many_repairs`` compares the clouds before and after many at once.
4. ``trial`` tries the repairs of findings, and leaves out those that do not
   hold.
5. ``proposals`` proposes changes for a request, ``request_repairs`` tries
   them, and ``full_hosts`` proposes how to free room.
"""
