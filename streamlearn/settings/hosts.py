"""Which hosts are this very machine."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """By name or number alone: what a name resolves to can change after the check."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
