"""SHA-256 alone: `hashlib` loads OpenSSL first, which takes longer than hashing all that a command reads. `random` does it the same way."""

try:
    from _sha256 import sha256  # Python 3.11
except ImportError:
    try:
        from _sha2 import sha256
    except ImportError:
        from hashlib import sha256

__all__ = ["sha256"]
