# SPDX-License-Identifier: Apache-2.0
"""The commands, one module each; ``tools/cli`` runs them."""
