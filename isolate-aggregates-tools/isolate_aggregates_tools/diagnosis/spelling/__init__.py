# SPDX-License-Identifier: Apache-2.0
"""Finds what is misspelled in flavors, images and aggregates.

It corrects the side that is misspelled: a tag on one aggregate that nothing
names, beside several flavors that name another one, is the mistake. Names that
merely resemble each other, such as those of other resource classes, options
and filters, are never proposed.
"""
