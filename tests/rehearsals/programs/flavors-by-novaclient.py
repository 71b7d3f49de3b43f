# Old programs use novaclient.
import os

from keystoneauth1 import loading
from novaclient import client

names = ('auth_url', 'username', 'password', 'project_name')
names = (*names, 'user_domain_id', 'project_domain_id')
auth = loading.get_plugin_loader('password').load_from_options(
    **{name: os.environ[f'OS_{name.upper()}'] for name in names}
)
session = loading.session.Session().load_from_options(auth=auth)
nova = client.Client('2.60', session=session)
made = nova.flavors.create(
    'gpu.big', 256, 4, 2, flavorid='gpu-2', is_public=False
)
made.set_keys({'trait:CUSTOM_GPU': 'required', 'quota:cpu': '1'})
made.unset_keys(['quota:cpu'])
nova.flavor_access.add_tenant_access(made, 'a' * 32)
[gpu] = [one for one in nova.aggregates.list() if one.name == 'gpu']
gpu.set_metadata({'pinned': None})
gpu.add_host('c2')
nova.aggregates.create('zoned', 'az3').update({'name': 'zone-3'})
