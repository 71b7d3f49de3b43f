# SPDX-License-Identifier: Apache-2.0
"""Changes the isolation of a cloud: lock, unlock, grant, revoke and sync."""
