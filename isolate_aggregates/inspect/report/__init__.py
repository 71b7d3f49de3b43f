# SPDX-License-Identifier: Apache-2.0
"""A page that shows how a cloud is isolated.

1. ``content`` gathers what there is to show.
2. ``cells`` arranges the matrix for the page's
   script, each text once.
3. ``calendar`` does so with the room for
   reservations.
4. ``page`` makes the page of it.
"""
