# The SDK changes Placement.
import openstack

cloud = openstack.connect('prod')
cloud.placement.create_trait('CUSTOM_NVME')
[node] = cloud.placement.resource_providers(name='c2')
path = f'/resource_providers/{node.id}/traits'
version = {'OpenStack-API-Version': 'placement 1.36'}
traits = cloud.placement.get(path, headers=version).json()
traits['traits'].append('CUSTOM_NVME')
assert cloud.placement.put(path, json=traits, headers=version).ok
