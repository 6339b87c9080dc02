"""A test set of certificates: an authority, a coordinator and sites, all for trying things out.

In earnest, an authority that the network trusts signs them, and no key leaves the machine it was made on.
"""

import datetime
import ipaddress
import os
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sottovoce.core.errors import BadInput
from sottovoce.core.shown import shown
from sottovoce.federation.study import is_name

DAYS = 90


def write_certificates(folder: str | Path, sites: Sequence[str], hosts: Sequence[str] = ("localhost",)) -> list[Path]:
    """Write a folder each for coordinator and sites: ``authority.pem``, ``certificate.pem``, ``key.pem``."""
    base = Path(folder)
    if not str(folder) or (base.exists() and (not base.is_dir() or any(base.iterdir()))):
        raise BadInput(f"{shown(base)} is not an empty folder; give a new one, since keys are never written over.")
    if not all(map(is_name, sites)) or len({"coordinator", *sites}) <= len(sites):
        raise BadInput(
            "names of sites are letters, digits, blanks and .,:()+-, each once, and none is 'coordinator'; give others."
        )
    key = ec.generate_private_key(ec.SECP256R1())
    authority = _signed("sottovoce test authority", key, "sottovoce test authority", key, authority=True)
    written = []
    for name in ("coordinator", *sites):
        own = ec.generate_private_key(ec.SECP256R1())
        names = hosts if name == "coordinator" else ()
        certificate = _signed(name, own, "sottovoce test authority", key, hosts=names)
        place = base / name
        try:
            place.mkdir(parents=True, mode=0o700)
            (place / "authority.pem").write_bytes(authority.public_bytes(serialization.Encoding.PEM))
            (place / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
            secret = own.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            with os.fdopen(os.open(place / "key.pem", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(secret)
        except OSError as error:
            raise BadInput(f"{shown(place)} cannot be written ({error.strerror}); give another folder.") from None
        written.append(place)
    return written


def _signed(
    name: str,
    own: ec.EllipticCurvePrivateKey,
    issuer: str,
    key: ec.EllipticCurvePrivateKey,
    *,
    authority: bool = False,
    hosts: Sequence[str] = (),
) -> x509.Certificate:
    """Return a certificate of a name, signed by the authority's key."""
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(own.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=DAYS))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=0 if authority else None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(own.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        .add_extension(_usage(authority), critical=True)
    )
    if not authority:
        used = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        made = made.add_extension(x509.ExtendedKeyUsage([used]), critical=False)
    if hosts:
        made = made.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
    return made.sign(key, hashes.SHA256())


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        pass
    try:
        return x509.DNSName(name)
    except ValueError:
        raise BadInput("a host of the coordinator is no name of a machine; give it as sites reach it.") from None


def _usage(authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority, key_cert_sign=authority, crl_sign=authority, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip
