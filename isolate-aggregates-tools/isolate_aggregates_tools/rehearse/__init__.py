# SPDX-License-Identifier: Apache-2.0
"""A rehearsal: any tool runs against a local API that holds a cloud file.

1. ``world`` holds the cloud, and what each request changed or could not.
2. ``aggregates``, ``flavors``, ``hosts``, ``servers``, ``images`` and
   ``identity`` answer for it; ``placement`` is the real one.
3. ``service`` listens on 127.0.0.1, and hands requests to them.
4. ``launcher`` and ``tool`` run the tool, away from every network.
5. ``rehearsal`` is all of this, and ``between`` says who was let in meanwhile.
"""
