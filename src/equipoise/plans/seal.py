"""Seals of results: hashes that show whether a file was edited, and who signed it.

A hash is the SHA-256 of JSON with sorted keys, no spaces and numbers as Python writes them. Anybody
can compute it, so that it shows an accident or a careless edit; a signature (Ed25519 [1]_) with a
key of the auditor's shows a careful one too.

References
----------
.. [1] S. Josefsson, I. Liusvaara (2017). Edwards-Curve Digital Signature Algorithm (EdDSA). RFC
   8032. https://doi.org/10.17487/RFC8032
"""

import base64
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equipoise.exceptions import InvalidParameterError, MissingDependencyError

__all__ = ["SealCheck", "check_seal", "sealed", "signing_key"]

PARTS = ("data", "plan")
"""What is hashed apart; the rest, answers and all, is hashed as "findings"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SealCheck:
    """What the seal of a file says.

    Parameters
    ----------
    present : bool
        Whether there is one.
    edited : tuple of str
        Parts that are not as they were written: "data", "plan", "findings" or "signature".
    signer : str, optional
        Public key with which the file was signed, as base64.
    """

    present: bool
    edited: tuple[str, ...] = ()
    signer: str | None = None

    @property
    def words(self) -> str:
        """One line for a person."""
        if not self.present:
            return "the results carry no seal; whether they were edited is not known"
        if self.edited:
            return f"EDITED after the audit: {', '.join(self.edited)}"
        by = "not signed" if self.signer is None else f"signed with the key {self.signer}"
        return f"the seal holds: data, plan and findings are as they were written; {by}"


def sealed(record: dict[str, Any], key: Any = None) -> dict[str, Any]:
    """Return results with their seal.

    Parameters
    ----------
    record : dict
        JSON-safe results.
    key : Ed25519PrivateKey, optional
        From `signing_key`; the hashes are signed with it.

    Returns
    -------
    dict
        With ``seal``.
    """
    seal: dict[str, Any] = {"algorithm": "sha256", **_hashes(record)}
    if key is not None:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        seal["signature"] = _text(key.sign(_canonical(_hashes(record))))
        seal["public_key"] = _text(public)
    return record | {"seal": seal}


def check_seal(record: dict[str, Any]) -> SealCheck:
    """Compare results with their seal.

    Parameters
    ----------
    record : dict
        As it was read.

    Returns
    -------
    SealCheck
    """
    seal = record.get("seal")
    if not isinstance(seal, dict):
        return SealCheck(present=False)
    hashes = _hashes(record)
    edited = [part for part, value in hashes.items() if seal.get(part) != value]
    signer = seal.get("public_key")
    if ("signature" in seal or signer is not None) and not _signed(seal, hashes):
        edited.append("signature")
    return SealCheck(present=True, edited=tuple(edited), signer=signer)


def _hashes(record: dict[str, Any]) -> dict[str, str]:
    rest = {name: value for name, value in record.items() if name not in {*PARTS, "seal"}}
    parts = {part: record.get(part) for part in PARTS} | {"findings": rest}
    return {part: hashlib.sha256(_canonical(value)).hexdigest() for part, value in parts.items()}


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def signing_key(path: Path) -> Any:
    """Read a private key of Ed25519 from a file in PEM.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    cryptography.hazmat.primitives.asymmetric.ed25519.Ed25519PrivateKey

    Raises
    ------
    InvalidParameterError
        If it cannot be read, or holds something else.
    """
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError as error:
        raise MissingDependencyError(
            "A signature needs cryptography. Install `equipoise[sign]`."
        ) from error
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except OSError as error:
        raise InvalidParameterError(
            f"Key {str(path)!r} cannot be read: {error.strerror}."
        ) from error
    except (ValueError, TypeError) as error:
        raise InvalidParameterError(
            f"{str(path)!r} is not a private key in PEM without a password."
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidParameterError(
            f"{str(path)!r} must be a key of Ed25519; make one with"
            " `openssl genpkey -algorithm ed25519 -out key.pem`."
        )
    return key


def _signed(seal: dict[str, Any], hashes: dict[str, str]) -> bool:
    """Return whether the signature is that of the hashes."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError as error:
        raise MissingDependencyError(
            "These results are signed; to check it, install `equipoise[sign]`."
        ) from error
    try:
        # Without `validate` signs that are no base64 would be left out, and printed with the key.
        public = base64.b64decode(seal["public_key"], validate=True)
        signature = base64.b64decode(seal["signature"], validate=True)
        Ed25519PublicKey.from_public_bytes(public).verify(signature, _canonical(hashes))
    except (InvalidSignature, KeyError, ValueError, TypeError):
        return False
    return True
