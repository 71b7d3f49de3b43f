# SPDX-License-Identifier: Apache-2.0
"""Nova's API, as far as only commands use it."""
