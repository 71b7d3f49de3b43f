# SPDX-License-Identifier: Apache-2.0
"""Reads the records of decisions that nova-scheduler has logged."""
