# SPDX-License-Identifier: Apache-2.0
"""Keep hosts apart: isolated and reserved host aggregates for Nova."""
