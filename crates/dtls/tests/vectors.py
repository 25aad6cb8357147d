#!/usr/bin/env python3
"""Seals records of the DTLS chunk with Python's `cryptography` (OpenSSL), and prints them as Rust for vectors.rs.

    python3 crates/dtls/tests/vectors.py > crates/dtls/tests/vectors/sealed.rs && cargo fmt -p anabranch-dtls

Nothing here is shared with the crate: key schedule (RFC 8446 §7.1, RFC 9147 §5.9), nonce (RFC 8446 §5.3), header and encryption of the
sequence number (RFC 9147 §4) are written from the RFCs.
"""
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

SUITES = {
    "Aes128Gcm": (16, hashes.SHA256()),
    "Aes256Gcm": (32, hashes.SHA384()),
    "Chacha20Poly1305": (32, hashes.SHA256()),
}


def expand_label(algorithm, secret, label, context, length):
    label = b"dtls13" + label
    info = length.to_bytes(2, "big") + bytes([len(label)]) + label + bytes([len(context)]) + context
    return HKDFExpand(algorithm=algorithm, length=length, info=info).derive(secret)


def mask(suite, key, sample):
    if suite == "Chacha20Poly1305":
        # OpenSSL's nonce of 16 bytes consists of the counter of 32 bits and the nonce of 96 bits.
        return Cipher(algorithms.ChaCha20(key, sample), None).encryptor().update(bytes(16))
    return Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(sample)


def seal(suite, key, iv, sn, epoch, number, content, padding):
    header = bytes([0x28 | epoch & 3]) + (number & 0xFFFF).to_bytes(2, "big")
    nonce = bytes(a ^ b for a, b in zip(iv, number.to_bytes(12, "big")))
    aead = ChaCha20Poly1305(key) if suite == "Chacha20Poly1305" else AESGCM(key)
    sealed = aead.encrypt(nonce, content + b"\x17" + bytes(padding), header)
    hidden = bytes(a ^ b for a, b in zip(header[1:], mask(suite, sn, sealed[:16])))
    return header[:1] + hidden + sealed


def rust(data):
    return 'b"' + "".join(f"\\x{byte:02x}" for byte in data) + '"'


print("// Written by ../vectors.py.")
print("pub const SEALED: &[Vector] = &[")
for suite, (length, algorithm) in SUITES.items():
    secret = bytes((7 * at + len(suite)) % 256 for at in range(algorithm.digest_size))
    key, iv, sn = (
        expand_label(algorithm, secret, label, b"", size)
        for label, size in [(b"key", length), (b"iv", 12), (b"sn", length)]
    )
    for epoch, number, size, padding in [
        (3, 0, 4, 0), (3, 1, 0, 0), (4, 2, 20, 0), (5, 3, 1172, 0), (6, 258, 64, 0), (7, 65535, 33, 0), (3, 65536, 48, 0), (3, 5, 24, 7),
    ]:
        content = bytes((3 * at + number) % 256 for at in range(size))
        record = seal(suite, key, iv, sn, epoch, number, content, padding)
        fields = ", ".join([
            f"suite: Suite::{suite}", f"secret: {rust(secret)}", f"key: {rust(key)}", f"iv: {rust(iv)}", f"sn: {rust(sn)}",
            f"epoch: {epoch}", f"number: {number}", f"padding: {padding}", f"content: {rust(content)}", f"record: {rust(record)}",
        ])
        print(f"    Vector {{ {fields} }},")
print("];")
