# SPDX-License-Identifier: Apache-2.0
"""Prometheus metrics of a cloud and of the workers of nova-scheduler."""
