# Nova takes texts and nulls.
import openstack

cloud = openstack.connect('prod')
for value in (True, 1, None, ''):
    answer = cloud.compute.post(
        '/os-aggregates/1/action',
        json={'set_metadata': {'metadata': {'pinned': value}}},
    )
    print(value, answer.status_code)
