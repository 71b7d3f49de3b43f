# A key for each flavor without one.
import openstack

cloud = openstack.connect('prod')
for flavor in cloud.compute.flavors(get_extra_specs=True):
    if not flavor.extra_specs:
        keys = {'trait:CUSTOM_CPU': 'required'}
        cloud.compute.create_flavor_extra_specs(flavor, keys)
