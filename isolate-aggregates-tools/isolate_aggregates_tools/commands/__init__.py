# SPDX-License-Identifier: Apache-2.0
"""The commands, one module each; the package cli runs them."""
