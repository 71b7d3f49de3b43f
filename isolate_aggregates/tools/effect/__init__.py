# SPDX-License-Identifier: Apache-2.0
"""The effect of changes, before they are made."""
