# SPDX-License-Identifier: Apache-2.0
"""Exports Prometheus metrics of a cloud and of nova-scheduler's workers."""
