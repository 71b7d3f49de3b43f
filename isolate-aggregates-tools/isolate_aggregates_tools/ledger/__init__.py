# SPDX-License-Identifier: Apache-2.0
"""Where servers ran in a period, and where they could, for auditors.

``stays``, ``days``, ``nova_records`` and ``ledger`` compute; ``reading`` asks
Nova; ``writer`` and ``history`` write and read the ledger file.
"""
