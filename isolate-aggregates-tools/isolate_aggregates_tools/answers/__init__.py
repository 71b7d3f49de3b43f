# SPDX-License-Identifier: Apache-2.0
"""Which hosts servers may use: built once, asked once.

1. ``requests`` builds every request, as nova-api completes it.
2. ``asking`` lets the request filters decide on it.
3. ``offers`` answers its queries, as Placement would.
4. ``scope`` says which servers a question about a whole cloud is about.
"""
