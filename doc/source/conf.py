# SPDX-License-Identifier: Apache-2.0
"""Sphinx configuration of the documentation."""

from importlib import metadata

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

from isolate_aggregates_reservations.commands import documents
from isolate_aggregates_tools.commands import schemas as tools
from isolate_aggregates_tools.placement import microversion

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

# Each reference to something of this package has to lead somewhere.
nitpicky = True
nitpick_ignore_regex = [
    # What other projects document; their pages are not asked at each build.
    (r'py:.*', r'(?!isolate_aggregates\b).*'),
    # Type variables, which mean nothing outside of a signature.
    (r'py:class', r'.*\._T'),
    # Types in signatures of the public API that are not public themselves.
    (
        r'py:class',
        r'isolate_aggregates\.(placement|tools\.(answers|cloud))\..*',
    ),
    (r'py:class', r'isolate_aggregates\.filters\.pipeline\..*'),
]

# For "make linkcheck", which follows the links to other sites.
linkcheck_timeout = 30
linkcheck_ignore = [
    # Examples.
    r'https?://[^/]*\.example\.com\b',
    r'http://127\.0\.0\.1\b',
    # Wants a login.
    r'https://bugs\.launchpad\.net/.*/\+filebug$',
    # Is there once the spec has been proposed.
    r'https://blueprints\.launchpad\.net/nova/\+spec/scheduler-request-',
]
linkcheck_anchors_ignore_for_url = [
    # Its script makes the anchors.
    r'https://github\.com/',
]


class JSONSchemas(Directive):
    """Shows which command has which schema, and in which file."""

    def run(self):
        rows = [
            f'   {command}, ``{schema["$id"]}``, '
            f'``{package}/schemas/{command.replace(" ", "-")}.json``'
            for package, schemas in (
                ('isolate_aggregates_tools', tools.SCHEMAS),
                ('isolate_aggregates_reservations', documents.SCHEMAS),
            )
            for command, schema in sorted(schemas.items())
        ]
        head = ['.. csv-table::', '   :header: Command, Schema, File', '']
        parent = nodes.Element()
        self.state.nested_parse(StringList(head + rows), 0, parent)
        return parent.children


class PlacementFeatures(Directive):
    """Shows which features of Placement need which microversion."""

    def run(self):
        features = [
            value
            for value in vars(microversion).values()
            if isinstance(value, microversion.Feature)
        ]
        rows = [
            f'   {each.purpose}, {each.microversion}, {each.release}'
            for each in sorted(features)
        ]
        head = ['.. csv-table::', '   :header: For, Needs, Release', '']
        parent = nodes.Element()
        self.state.nested_parse(StringList(head + rows), 0, parent)
        return parent.children


def setup(app):
    """Add the directives."""
    app.add_directive('json-schemas', JSONSchemas)
    app.add_directive('placement-features', PlacementFeatures)
