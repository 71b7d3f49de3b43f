# Nova deletes no aggregate with hosts; the script goes on.
openstack aggregate delete gpu || true
openstack aggregate remove host gpu g1
openstack aggregate delete gpu
