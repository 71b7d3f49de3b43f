# SPDX-License-Identifier: Apache-2.0
"""Updates Placement to match the host aggregates and their metadata.

:mod:`~isolate_aggregates_tools.operate.sync.snapshot` reads the current state,
:mod:`~isolate_aggregates_tools.operate.sync.plan` computes the changes, and
:mod:`~isolate_aggregates_tools.operate.sync.apply` makes them.
"""
