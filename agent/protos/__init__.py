"""Messages of the kubelet's PodResources API.

``podresources_pb2`` is generated from ``podresources.proto`` by
``python -m grpc_tools.protoc -I . --python_out=. --pyi_out=. agent/protos/podresources.proto``
in the root of the repository, and committed.
"""
