# SPDX-License-Identifier: Apache-2.0
"""Creates an HTML page that shows how a cloud is isolated.

1. ``content`` collects the data.
2. ``cells`` encodes the matrix for the script of the page.
3. ``calendar`` encodes the capacity for reservations.
4. ``page`` renders the page.
"""
