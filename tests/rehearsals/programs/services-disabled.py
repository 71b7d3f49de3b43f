# A service that is disabled takes no servers.
import openstack

cloud = openstack.connect('prod')
for service in cloud.compute.services(binary='nova-compute'):
    if service.host.startswith('c'):
        cloud.compute.disable_service(service, disabled_reason='repair')
