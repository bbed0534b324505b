"""Credentials of a cluster: one key and its self-signed certificate, the only one that members trust.

Anybody who holds the key is a member of the cluster and can command it: scheduler, workers and clients use
the same key. A command with workers of its own makes credentials in memory; dask writes the key to a file
only while TLS reads it, in a folder that only this user can read.
"""

from __future__ import annotations

import datetime
import os
import ssl
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.errors import EmulatorError, InputError
from emulator.storage.checkpoints import naming_file
from emulator.storage.own_files import create_file, open_file

if TYPE_CHECKING:
    from distributed import Security

CERTIFICATE = "certificate.pem"
KEY = "key.pem"
VALID_DAYS = 3650
"""Days for which a certificate is valid: long enough for any study. New keys may replace it earlier."""

CLOCK_SLACK = datetime.timedelta(days=1)
"""Maximum difference between the clocks of a cluster's hosts."""

MOST_PEM_BYTES = 2**16
"""Maximum size of the file of a certificate or key."""


@dataclass(frozen=True, repr=False)
class Credentials:
    """A certificate and its private key, in PEM."""

    certificate: str
    key: str

    def security(self) -> Security:
        """These credentials for every role, with encryption required on every connection."""
        from distributed import Security

        return Security(
            require_encryption=True,
            tls_ca_file=self.certificate,
            tls_scheduler_cert=self.certificate,
            tls_scheduler_key=self.key,
            tls_worker_cert=self.certificate,
            tls_worker_key=self.key,
            tls_client_cert=self.certificate,
            tls_client_key=self.key,
        )


def make_credentials(valid_days: int = VALID_DAYS) -> Credentials:
    """A new key (ECDSA, P-256) and its self-signed certificate, valid for `valid_days` from now."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "driftscale cluster")])
    now = datetime.datetime.now(datetime.UTC)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SLACK)
        .not_valid_after(now + datetime.timedelta(days=valid_days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.KeyUsage(
                digital_signature=True,
                key_cert_sign=True,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                crl_sign=False,
                encipher_only=False,
                decipher_only=False,
            ),
            critical=True,
        )
        .add_extension(identifier, critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    return Credentials(
        certificate.public_bytes(serialization.Encoding.PEM).decode("ascii"),
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode("ascii"),
    )


def write_keys(folder: Path, *, fresh: bool = False) -> None:
    """Write new credentials into `folder`, created if it does not exist; only the owner can read the files.

    Raises:
        InputError: `folder` has keys already (`fresh` replaces them), cannot be created, or others may write
            in it.
        OSError: a file cannot be written; the error has its name, and no new file is left.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: no folder for keys can be made there: {error.strerror}") from error
    _refuse_open_folder(folder)
    paths = [folder / CERTIFICATE, folder / KEY]
    for path in paths:
        if not fresh and os.path.lexists(path):
            raise InputError(
                f"{path}: there are keys already, which a cluster may use; --fresh replaces them"
            )
    credentials = make_credentials()
    written: list[Path] = []
    try:
        for path, content in zip(paths, (credentials.certificate, credentials.key), strict=True):
            path.unlink(missing_ok=True)
            with naming_file(path), create_file(path) as file:
                written.append(path)
                os.fchmod(file.fileno(), 0o600)  # before the key is written
                file.write(content.encode("ascii"))
    except BaseException:  # half of the keys would be taken for keys by the same command
        for path in written:
            with suppress(OSError):
                path.unlink()
        raise


def read_keys(folder: Path) -> Security:
    """The credentials in `folder`; InputError, with the file's name, if they are invalid or not secret."""
    if folder.is_dir():
        _refuse_open_folder(folder)
    certificate, key = (_read_secret(folder / name) for name in (CERTIFICATE, KEY))
    _check_certificate(folder / CERTIFICATE, certificate)
    security = Credentials(certificate, key).security()
    try:
        security.get_connection_args("client")
    except ssl.SSLError as error:
        raise InputError(
            f"{folder / KEY}: is not the key, in PEM, of {CERTIFICATE} beside it ({error.reason})"
        ) from error
    return security


def _refuse_open_folder(folder: Path) -> None:
    """Raise InputError if others may write in the folder: they could put their own keys there."""
    status = folder.stat()
    _refuse_other_owner(folder, status)
    if stat.S_IMODE(status.st_mode) & 0o022:
        raise InputError(
            f"{folder}: others may write in this folder, and could put their own keys there; chmod go-w it, "
            f"or name one that does not exist"
        )


def _refuse_other_owner(path: Path, status: os.stat_result) -> None:
    """Raise InputError if what `path` is belongs to another user, who could then command the cluster."""
    if status.st_uid != os.geteuid():
        raise InputError(
            f"{path}: belongs to the user with id {status.st_uid}, who may change it, not to you "
            f"({os.geteuid()}); copy the keys to a folder of your own, or make new ones"
        )


def _read_secret(path: Path) -> str:
    try:
        with open_file(path) as file:
            status = os.fstat(file.fileno())
            _refuse_other_owner(path, status)
            mode = stat.S_IMODE(status.st_mode)
            if mode & 0o077:
                raise InputError(
                    f"{path}: has mode {mode:04o}: others may read it, and could then command the cluster; "
                    f"chmod 600 it, or make new keys"
                )
            content = file.read(MOST_PEM_BYTES + 1)
    except EmulatorError:
        raise
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read: {error.strerror}; `driftscale cluster keys DIR` makes keys"
        ) from error
    if len(content) > MOST_PEM_BYTES or b"-----BEGIN " not in content:
        raise InputError(f"{path}: is not PEM of at most {MOST_PEM_BYTES:,} bytes")
    try:
        return content.decode("ascii")
    except ValueError as error:
        raise InputError(f"{path}: is not PEM: {error}") from error


def _check_certificate(path: Path, certificate: str) -> None:
    """Raise InputError unless the file has one certificate, valid now: members trust every one in it."""
    from cryptography import x509

    try:
        parsed = x509.load_pem_x509_certificate(certificate.encode("ascii"))
    except ValueError as error:
        raise InputError(f"{path}: is not a certificate in PEM") from error
    count = certificate.count("-----BEGIN ")  # of every label, since TLS trusts more of them than x509 reads
    if count > 1:
        raise InputError(
            f"{path}: has {count} certificates or other parts, and the holder of the key of any could "
            f"command the cluster; leave the one of {KEY} in it, or make new keys"
        )
    now = datetime.datetime.now(datetime.UTC)
    if not parsed.not_valid_before_utc <= now <= parsed.not_valid_after_utc:
        raise InputError(
            f"{path}: is valid from {parsed.not_valid_before_utc:%Y-%m-%d} to "
            f"{parsed.not_valid_after_utc:%Y-%m-%d} only; driftscale cluster keys DIR --fresh makes new ones"
        )
