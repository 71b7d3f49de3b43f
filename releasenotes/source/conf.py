# SPDX-License-Identifier: Apache-2.0
"""Sphinx configuration of the release notes."""

project = 'isolate-aggregates release notes'
copyright = 'isolate-aggregates developers'
# Release notes are those of all versions.
version = release = ''

extensions = [
    'openstackdocstheme',
    'reno.sphinxext',
]

html_theme = 'openstackdocs'
html_theme_options = {
    'analytics_tracking_code': '',
    'display_badge': False,
    'root_title': 'isolate-aggregates',
}
pygments_style = 'native'

openstackdocs_auto_name = False
openstackdocs_auto_version = False
