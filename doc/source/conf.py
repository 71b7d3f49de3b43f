# SPDX-License-Identifier: Apache-2.0
"""Sphinx configuration of the documentation."""

from importlib import metadata

project = 'isolate-aggregates'
copyright = 'isolate-aggregates developers'
# A clone may have no tags, so the version is that of the installed package.
version = release = metadata.version(project)

extensions = [
    'cliff.sphinxext',
    'openstackdocstheme',
    'oslo_config.sphinxconfiggen',
    'oslo_config.sphinxext',
    'sphinx.ext.autodoc',
]

html_theme = 'openstackdocs'
html_theme_options = {
    'analytics_tracking_code': '',
    'display_badge': False,
    'root_title': project,
    'sidebar_dropdown': '',
    'sidebar_mode': 'toc',
}
pygments_style = 'native'

openstackdocs_auto_name = False
openstackdocs_auto_version = False

autoprogram_cliff_application = 'isolate-aggregates'

config_generator_config_file = (
    '../../etc/isolate-aggregates/config-generator.conf'
)
sample_config_basename = '_static/isolate-aggregates'

autodoc_member_order = 'bysource'
autodoc_typehints = 'signature'
