# SPDX-License-Identifier: Apache-2.0
"""Options that blazar-nova also has."""

from oslo_config import cfg


class _SharedOpt:
    """An option that blazar-nova registers too, with another help text.

    oslo.config rejects a second registration that differs from the first. For
    these options only name and default must be equal.
    """

    name: str
    default: object

    def __eq__(self, other: object) -> bool:
        return (self.name, self.default) == (
            getattr(other, 'name', None),
            getattr(other, 'default', None),
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.name)


class _SharedStrOpt(_SharedOpt, cfg.StrOpt):
    pass


class _SharedBoolOpt(_SharedOpt, cfg.BoolOpt):
    pass


blazar_opts: list[cfg.Opt] = [
    _SharedStrOpt(
        'aggregate_freepool_name',
        default='freepool',
        help='Name of the aggregate of hosts that may be reserved.',
    ),
    _SharedBoolOpt(
        'allow_preemptibles',
        default=False,
        help="""
Let flavors with ``blazar:preemptible=true`` use the preemptible aggregate.
""",
    ),
    _SharedStrOpt(
        'preemptible_aggregate',
        default='freepool',
        help='Name of the aggregate whose hosts take preemptible servers.',
    ),
    _SharedStrOpt(
        'blazar_owner',
        default='blazar:owner',
        help="""
Metadata key of a reserved aggregate that holds the owner's project id.
""",
    ),
    _SharedStrOpt(
        'blazar_az_prefix',
        default='blazar_',
        help='Prefix of the availability zones of reserved aggregates.',
    ),
]
