# SPDX-License-Identifier: Apache-2.0
"""Conversion of Nova's request spec, and application of decisions to it."""

from cases import cases
from function_filter import FunctionFilter
from nova import objects
from nova.scheduler import utils as scheduler_utils
import pytest

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.decision import Decision, decide
from isolate_aggregates.filters.constraints import (
    Destination,
    Forbid,
    Refuse,
    Require,
)
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.nova import adapter
from isolate_aggregates.nova.images import AcceptedImage
from isolate_aggregates.request import (
    DeclaredProperties,
    Flavor,
    Image,
)
from isolate_aggregates_tools.request import Request

UUID = '00000000-0000-0000-0000-00000000000'
A, B, C, D, E = (Aggregate(f'{UUID}{name}', name) for name in 'abcde')
FLAVOR = {
    'name': 'f', 'flavorid': '7', 'vcpus': 1, 'memory_mb': 2, 'root_gb': 3,
    'ephemeral_gb': 4, 'swap': 5, 'extra_specs': {'k': 'v'},
}  # fmt: skip
DISTRO = DeclaredProperties(frozenset({'os_distro'}))


@pytest.fixture(scope='module', autouse=True)
def _nova():
    objects.register_all()


def image_meta(**fields):
    properties = objects.ImageMetaProps.from_dict(
        {'trait:CUSTOM_A': 'required'}
    )
    return objects.ImageMeta(properties=properties, **fields)


def request(accepted=AcceptedImage({}), **fields):  # noqa: B008
    spec = objects.RequestSpec(**fields)
    made = adapter.NovaRequest(spec, accepted)
    # Otherwise the request would end here.
    made.spec_of_nova = spec
    return made


def test_filters_see_what_nova_gives():
    view = request(
        flavor=objects.Flavor(**FLAVOR),
        project_id='p',
        num_instances=3,
        is_bfv=True,
        scheduler_hints={'group': ['g']},
        image=image_meta(id=f'{UUID}1', name='debian', owner='o'),
    )
    assert view.flavor == Flavor('f', '7', 1, 2, 3, 4, 5, {'k': 'v'})
    assert (view.project_id, view.num_instances) == ('p', 3)
    assert view.boot_from_volume is True
    assert view.scheduler_hints == {'group': ('g',)}
    assert view.requested_host is None
    traits = {'trait:CUSTOM_A': 'required'}
    assert view.image == Image('debian', f'{UUID}1', traits, 'o')
    assert view.image_properties == traits


def test_missing_fields_of_nova_have_defaults():
    sizes = {
        key: value for key, value in FLAVOR.items() if isinstance(value, int)
    }
    view = request(flavor=objects.Flavor(**sizes))
    assert view.flavor == Flavor('', '', 1, 2, 3, 4, 5, {})
    assert (view.project_id, view.num_instances) == (None, 1)
    assert view.boot_from_volume is False
    assert view.scheduler_hints == {}
    assert view.image is None
    assert view.image_properties == {}
    assert request(image=None).image is None
    assert request(scheduler_hints=None).scheduler_hints == {}
    assert request(is_bfv=False).boot_from_volume is False


def test_reading_changes_nothing():
    """Unset fields stay unset, although Nova's objects load them on access."""
    for destination in (None, objects.Destination()):
        spec = objects.RequestSpec(flavor=objects.Flavor(**FLAVOR))
        if destination:
            spec.requested_destination = destination
        before = spec.obj_to_primitive()
        assert adapter.forced(spec) is None
        view = adapter.NovaRequest(spec, AcceptedImage({}))
        assert view.operator_traits == frozenset()
        assert view.declaring(DISTRO).image is None
        _ = view.project_id, view.scheduler_hints, view.boot_from_volume
        assert spec.obj_to_primitive() == before


@pytest.mark.parametrize(
    ('identity', 'name'),
    [
        ({'id': f'{UUID}1', 'name': 'debian'}, 'debian'),
        ({'id': f'{UUID}1', 'name': ''}, f'{UUID}1'),
        ({'id': f'{UUID}1'}, f'{UUID}1'),
        ({}, 'unnamed'),
    ],
)
def test_an_image_without_a_name_gets_one(identity, name):
    image = request(image=image_meta(**identity)).image
    assert (image.name, image.id) == (name, identity.get('id', ''))
    assert image.owner is None


def test_filters_see_only_declared_properties():
    accepted = AcceptedImage({'os_distro': 'debian', 'os_version': '12'})
    view = request(accepted, image=image_meta(id=f'{UUID}1'))
    traits = {'trait:CUSTOM_A': 'required'}
    assert view.image_properties == traits
    declaring = view.declaring(DISTRO)
    assert declaring.image_properties == traits | {'os_distro': 'debian'}


def test_an_unavailable_property_refuses_at_once():
    view = request(AcceptedImage(None), image=image_meta(id=f'{UUID}1'))
    with pytest.raises(exception.RequestRefused):
        view.declaring(DeclaredProperties(frozenset({'license:*'})))


@pytest.mark.parametrize(
    ('values', 'seen'),
    [
        (['a', 'b'], ('a', 'b')),
        (['a'], ('a',)),
        ('abc', ('abc',)),
        # Nova takes these for no hint.
        ([''], None),
        ([], None),
        (None, None),
    ],
)
def test_a_hint_has_the_values_that_it_was_given(values, seen):
    spec = objects.RequestSpec()
    # Bypasses the field, which would convert the values to lists.
    spec._obj_scheduler_hints = {'reservation': values}
    found = adapter.NovaRequest(spec, AcceptedImage({})).scheduler_hints
    assert found.get('reservation') == seen


def test_traits_of_an_image_open_only_where_tenants_are_trusted():
    view = request(
        flavor=objects.Flavor(
            **FLAVOR | {'extra_specs': {'trait:CUSTOM_B': 'required'}}
        ),
        image=image_meta(),
        requested_resources=[
            objects.RequestGroup(
                requester_id='port', required_traits={'CUSTOM_PORT'}
            )
        ],
        is_bfv=False,
    )
    assert view.required_traits >= {'CUSTOM_A', 'CUSTOM_B', 'CUSTOM_PORT'}
    assert view.operator_traits == {'CUSTOM_B', 'CUSTOM_PORT'}


def test_without_ports_operator_traits_come_from_the_flavor():
    view = request(flavor=objects.Flavor(**FLAVOR), requested_resources=None)
    assert view.operator_traits == frozenset()


def test_a_flavor_that_needs_its_image_for_cpus_has_its_own_traits():
    extra_specs = {
        'trait:CUSTOM_B': 'required',
        'hw:cpu_policy': 'mixed',
        'hw:cpu_realtime': 'true',
    }
    sizes = {'vcpus': 4, 'extra_specs': extra_specs}
    image = objects.ImageMeta.from_dict(
        {'properties': {'hw_cpu_realtime_mask': '^0-1'}}
    )
    view = request(
        flavor=objects.Flavor(**FLAVOR | sizes), image=image, is_bfv=False
    )
    assert view.required_traits == {'CUSTOM_B'}
    assert view.operator_traits == {'CUSTOM_B'}


def test_a_flavor_that_needs_its_image_for_encryption_has_its_own_traits():
    extra_specs = {
        'trait:CUSTOM_B': 'required',
        'hw:mem_encryption': 'true',
        'os:secure_boot': 'required',
    }
    image = objects.ImageMeta.from_dict(
        {
            'properties': {
                'hw_firmware_type': 'uefi',
                'hw_machine_type': 'q35',
                'hw_tpm_version': '2.0',
                'trait:CUSTOM_C': 'required',
            }
        }
    )
    view = request(
        flavor=objects.Flavor(**FLAVOR | {'extra_specs': extra_specs}),
        image=image,
        is_bfv=False,
    )
    own = view.operator_traits
    assert {'CUSTOM_B', 'COMPUTE_SECURITY_UEFI_SECURE_BOOT'} <= own
    assert view.required_traits - own == {
        'CUSTOM_C',
        'COMPUTE_SECURITY_TPM_2_0',
        'COMPUTE_SECURITY_TPM_TIS',
    }


def length(**fields):
    """Return the counted length of a query, and that of Nova's own."""
    fields.setdefault('flavor', objects.Flavor(**FLAVOR))
    spec = objects.RequestSpec(**fields)
    sent = []
    for translate in (True, False):
        made = scheduler_utils.resources_from_request_spec(
            None, spec, Nodes(), enable_pinning_translate=translate
        )
        sent.append(len(made.to_querystring()))
        if not made.cpu_pinning_requested:
            break
    return adapter.query_length(spec), max(sent)


class Nodes:
    """A minimal host manager of Nova, for requests with a target."""

    def get_compute_nodes_by_host_or_node(self, context, host, node, cell):
        return [
            objects.ComputeNode(
                uuid=f'{UUID}9', host='h', hypervisor_hostname='n'
            )
        ]


def port(number):
    """Return the request group of a port with guaranteed bandwidth."""
    return objects.RequestGroup(
        requester_id=f'{UUID}{number}',
        resources={
            'NET_BW_EGR_KILOBIT_PER_SEC': 1000,
            'NET_BW_IGR_KILOBIT_PER_SEC': 1000,
        },
        required_traits={'CUSTOM_PHYSNET_PUBLIC', 'CUSTOM_VNIC_TYPE_NORMAL'},
    )


def pinned(extra_specs):
    return {
        'flavor': objects.Flavor(
            **{**FLAVOR, 'vcpus': 9, 'extra_specs': extra_specs}
        )
    }


@cases(
    'fields',
    {
        'plain': dict,
        'aggregates': lambda: {
            'requested_destination': objects.Destination(
                aggregates=[f'{UUID}1,{UUID}2', f'{UUID}3'],
                forbidden_aggregates={f'{UUID}4'},
            )
        },
        'a port with QoS': lambda: {'requested_resources': [port(1)]},
        'four ports with QoS and no group policy': lambda: {
            'requested_resources': [port(n) for n in range(1, 5)]
        },
        'forced host': lambda: {'force_hosts': ['h']},
        'forced node': lambda: {'force_nodes': ['n']},
        'requested host': lambda: {
            'requested_destination': objects.Destination(host='h')
        },
        'pinned CPUs': lambda: pinned({'hw:cpu_policy': 'dedicated'}),
        'pinned CPUs, longer where they are translated': lambda: pinned(
            {
                'hw:cpu_policy': 'dedicated',
                'hw:emulator_threads_policy': 'isolate',
                'hw:cpu_thread_policy': 'require',
            }
        ),
    },
)
def test_the_length_is_that_of_the_query_nova_sends(fields):
    counted, sent = length(**fields())
    assert counted == sent


def test_a_limit_that_nova_may_lift_is_counted():
    counted, sent = length(scheduler_hints={'group': ['g']})
    assert counted == sent + len('limit=1000&')


@pytest.mark.parametrize(
    ('fields', 'targets'),
    [
        ({}, None),
        ({'force_hosts': None, 'force_nodes': None}, None),
        ({'force_hosts': [], 'force_nodes': []}, None),
        ({'force_hosts': ['h']}, (['h'], ())),
        ({'force_nodes': ['n']}, ((), ['n'])),
    ],
)
def test_forced_hosts_and_nodes_are_read(fields, targets):
    assert adapter.forced(objects.RequestSpec(**fields)) == targets


def applied(spec, *constraints):
    pipeline = Pipeline({'mine': FunctionFilter(lambda *_: constraints)})
    decision = decide(Request(Flavor('f')), AggregateIndex(), pipeline)
    decision.check()
    adapter.apply(decision, spec)
    if 'requested_destination' not in spec or not spec.requested_destination:
        return None
    found = spec.requested_destination
    return (
        found.aggregates if 'aggregates' in found else None,
        found.forbidden_aggregates
        if found.obj_attr_is_set('forbidden_aggregates')
        else None,
    )


@pytest.mark.parametrize('fields', [{}, {'requested_destination': None}])
def test_a_decision_is_put_onto_the_destination(fields):
    def put(*constraints):
        return applied(objects.RequestSpec(**fields), *constraints)

    assert put() is None
    aggregates, forbidden = put(Require((D, B, E, A), 'x'), Require((C,), 'y'))
    assert aggregates == [
        f'{A.uuid},{B.uuid},{D.uuid},{E.uuid}', C.uuid
    ]  # fmt: skip
    assert not forbidden
    aggregates, forbidden = put(Forbid((A, B), 'x'))
    assert not aggregates
    assert forbidden == {A.uuid, B.uuid}


@pytest.mark.parametrize(
    ('others', 'more'),
    [
        (None, ()),
        (
            {A.uuid, B.uuid},
            (
                'other request filters forbid aggregates '
                f'{A.name}, {B.name} in it',
            ),
        ),
    ],
)
def test_a_refusal_for_length_names_what_others_forbid(others, more):
    spec = objects.RequestSpec()
    if others:
        spec.requested_destination = objects.Destination(
            forbidden_aggregates=others
        )
    decision = Decision(
        Destination(),
        AggregateIndex([C, B, A]),
        too_long=exception.QueryNotShortened(['it is too long']),
    )
    with pytest.raises(exception.QueryNotShortened) as caught:
        adapter.check_length(decision, spec)
    assert caught.value.reasons == ('it is too long', *more)


@cases(
    'others',
    {
        'none by another filter': None,
        'some by another filter': {B.uuid, C.uuid},
    },
)
def test_forbidden_aggregates_are_those_that_nova_would_append(others):
    ours, theirs = (
        objects.RequestSpec(
            requested_destination=objects.Destination(
                forbidden_aggregates=others and set(others)
            )
        )
        for _ in range(2)
    )
    for spec in ours, theirs:
        spec.obj_reset_changes(recursive=True)
    pipeline = Pipeline(
        {'mine': FunctionFilter(lambda *_: [Forbid((A, B), 'x')])}
    )
    decision = decide(Request(Flavor('f')), AggregateIndex(), pipeline)
    adapter.apply(decision, ours)
    theirs.requested_destination.append_forbidden_aggregates(
        decision.forbidden
    )
    assert ours.requested_destination.forbidden_aggregates == {
        *(others or ()),
        *decision.forbidden,
    }
    assert ours.obj_what_changed() == theirs.obj_what_changed()
    assert sort(ours.obj_to_primitive()) == sort(theirs.obj_to_primitive())
    # What is added later is still checked by Nova.
    with pytest.raises(ValueError, match='string'):
        ours.requested_destination.forbidden_aggregates.add(object())


def sort(primitive):
    """Return a primitive with the elements of sets in order."""
    destination = primitive['nova_object.data']['requested_destination']
    data = destination['nova_object.data']
    data['forbidden_aggregates'] = sorted(data['forbidden_aggregates'])
    return primitive


def test_existing_constraints_of_the_destination_are_kept():
    spec = objects.RequestSpec(
        requested_destination=objects.Destination(
            host='h', aggregates=[C.uuid], forbidden_aggregates={B.uuid}
        )
    )
    found = applied(spec, Require((A,), 'x'), Forbid((C,), 'y'))
    assert found == ([C.uuid, A.uuid], {B.uuid, C.uuid})
    assert spec.requested_destination.host == 'h'


def test_a_refusal_leaves_the_request_spec_alone():
    spec = objects.RequestSpec()
    with pytest.raises(exception.RequestRefused):
        applied(spec, Forbid((A,), 'x'), Refuse('no'))
    assert 'requested_destination' not in spec


@pytest.mark.parametrize('policy', [None, 'isolate'])
@pytest.mark.parametrize('groups', [0, 1, 2, 3])
def test_several_groups_have_the_policy_that_nova_sends(groups, policy):
    specs = {f'resources{n}:CUSTOM_{n}': '1' for n in range(1, groups + 1)}
    if policy:
        specs['group_policy'] = policy
    spec = objects.RequestSpec(
        flavor=objects.Flavor(**{**FLAVOR, 'extra_specs': specs}),
        image=objects.ImageMeta(properties=objects.ImageMetaProps()),
        is_bfv=False,
        requested_resources=[],
        pci_requests=objects.InstancePCIRequests(requests=[]),
        requested_destination=None,
        force_hosts=None,
        force_nodes=None,
    )
    sent = scheduler_utils.resources_from_request_spec(None, spec, None)
    # Nova's client of Placement adds it later.
    policy_added = '&group_policy=none' if groups > 1 and not policy else ''
    assert adapter.query_length(spec) == len(
        sent.to_querystring() + policy_added
    )
