"""The flags of each program of the test control plane."""

from __future__ import annotations

# etcd wants a port in every address; on a unix socket it is part of the file's name.
ETCD, ETCD_PEER = "unix://etcd:0", "unix://peer:0"


def flags_of(port: int) -> dict[str, list[str]]:
    """Return the flags by program, the API server on ``port``; paths are relative to its folder."""
    client = ["--leader-elect=false", "--secure-port=0"]
    return {
        "etcd": [
            "--name=test",
            "--data-dir=etcd.data",
            "--unsafe-no-fsync",
            "--log-level=warn",
            f"--listen-client-urls={ETCD}",
            f"--advertise-client-urls={ETCD}",
            f"--listen-peer-urls={ETCD_PEER}",
            f"--initial-advertise-peer-urls={ETCD_PEER}",
            f"--initial-cluster=test={ETCD_PEER}",
        ],
        "kube-apiserver": [
            f"--etcd-servers={ETCD}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--secure-port={port}",
            "--cert-dir=pki",
            "--tls-cert-file=pki/apiserver.crt",
            "--tls-private-key-file=pki/apiserver.key",
            "--client-ca-file=pki/ca.crt",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-account-key-file=pki/service-account.pub",
            "--service-account-signing-key-file=pki/service-account.key",
            "--allow-privileged=true",
        ],
        "kube-controller-manager": [
            "--kubeconfig=controller-manager.kubeconfig",
            "--service-account-private-key-file=pki/service-account.key",
            "--root-ca-file=pki/ca.crt",
            "--use-service-account-credentials",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
            *client,
        ],
        "kube-scheduler": ["--kubeconfig=scheduler.kubeconfig", *client],
    }
