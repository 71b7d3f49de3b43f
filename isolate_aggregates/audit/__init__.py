# SPDX-License-Identifier: Apache-2.0
"""Finds what keeps isolation from working, and says what repairs it."""

from isolate_aggregates.audit.finding import Finding, Severity

__all__ = ['Finding', 'Severity']
