#!/usr/bin/env python3
"""The shared key and a record of RFC 6083 from a given master secret, with Python's `cryptography`, for src/rfc6083/tests.rs.

    python3 crates/dtls/tests/rfc6083.py

Nothing here is shared with the crate: the PRF (RFC 5246 §5), the exporter (RFC 5705 §4), the nonce and the additional data (RFC 5288 §3,
RFC 5246 §6.2.3.3) are written from the RFCs.
"""
import hashlib
import hmac

from cryptography.hazmat.primitives.ciphers.aead import AESGCM


def prf(algorithm, secret, seed, length):
    a, out = seed, b""
    while len(out) < length:
        a = hmac.new(secret, a, algorithm).digest()
        out += hmac.new(secret, a + seed, algorithm).digest()
    return out[:length]


# Test vectors of P_SHA256 from the mailing list of the TLS working group.
known = prf(
    hashlib.sha256,
    bytes.fromhex("9bbe436ba940f017b17652849a71db35"),
    b"test label" + bytes.fromhex("a0ba9f936cda311827a6f796ffd5198c"),
    32,
)
assert known.hex() == "e3f229ba727be17b8d122620557cd453c2aab21d07c3d495329b52d4e61edb5a"

master, client, server = bytes(range(48)), b"\x11" * 32, b"\x22" * 32
for algorithm, size in [(hashlib.sha256, 16), (hashlib.sha384, 32)]:
    print(prf(algorithm, master, b"EXPORTER_DTLS_OVER_SCTP" + client + server, 64).hex())
    block = prf(algorithm, master, b"key expansion" + server + client, 2 * (size + 4))
    number = (1 << 48 | 1 << 16).to_bytes(8, "big")
    content = b"a message of the user"
    additional = number + b"\x17\xfe\xfd" + len(content).to_bytes(2, "big")
    sealed = AESGCM(block[:size]).encrypt(block[2 * size : 2 * size + 4] + number, content, additional)
    print((b"\x17\xfe\xfd" + number + (8 + len(sealed)).to_bytes(2, "big") + number + sealed).hex())
