"""An authority, and certificates of it, for servers and clients on this machine."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import ssl
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes

    def server_context(self, folder: Path) -> ssl.SSLContext:
        """For a server that shows this certificate."""
        file = folder / "server.pem"
        file.write_bytes(self.certificate + self.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context


@cache
def authority(name: str = "the authority of the tests") -> tuple[Pair, Pair]:
    """The authority itself, and a certificate of it for localhost and 127.0.0.1."""
    ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    own = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    addresses = x509.SubjectAlternativeName(
        [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    )
    constraint = x509.BasicConstraints(ca=True, path_length=None)
    ca = _built(issuer, issuer, ca_key).add_extension(constraint, critical=True)
    leaf = _built(own, issuer, key).add_extension(addresses, critical=False)
    return tuple(  # type: ignore[return-value]
        Pair(_pem(builder.sign(ca_key, hashes.SHA256())), _key(mine))
        for builder, mine in ((ca, ca_key), (leaf, key))
    )


def inline(pem: bytes) -> str:
    """As it stands in a kubeconfig."""
    return base64.b64encode(pem).decode()


def _built(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=2))
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
