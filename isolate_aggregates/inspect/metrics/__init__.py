# SPDX-License-Identifier: Apache-2.0
"""Metrics for Prometheus: of a cloud, and of the workers of nova-scheduler."""
