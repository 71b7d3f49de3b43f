# SPDX-License-Identifier: Apache-2.0
"""The tools of operators: they read a cloud, report on it, and change it."""
