# A host is in one zone only.
openstack aggregate create --zone az2 second
openstack aggregate add host second c1
