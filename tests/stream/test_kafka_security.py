"""Who we are to a broker, and whether it is the one we mean: TLS and SASL."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from streamlearn.errors import StreamAway, StreamError
from tests.broker import PASSWORD, USER, Broker
from tests.stream.conftest import Opener
from tests.stream.examples import numbered, read

SECURE = {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "username": USER, "password": PASSWORD}


def test_sasl_ssl_with_the_right_name_and_password(broker: Broker, new_stream: Opener) -> None:
    topic = broker.new_topic()
    stream = new_stream(f"kafka://localhost:{broker.tls_port}/{topic}", **SECURE, ca_file=broker.ca_file)
    stream.append(numbered(0, 20))
    stream.open(None)
    records = read(stream, 20)
    stream.passed(stream.position(), stream.position())
    assert stream.send_dead_letter(records[0], "shape", "wrong") is True
    assert len(stream.dead_letters()) == 1


@pytest.mark.parametrize(
    ("host", "settings", "says"),
    [
        ("127.0.0.1", {}, "is not trusted: .*IP address mismatch"),
        ("localhost", {"ca_file": None}, "is not trusted: .*self-signed certificate"),
        ("localhost", {"password": "wrong-one"}, f"refuses user '{USER}'.*[Aa]uthentication failed"),
        ("localhost", {"sasl_mechanism": "SCRAM-SHA-512"}, f"refuses user '{USER}'"),
    ],
)
def test_sasl_ssl_with_something_wrong(
    broker: Broker, new_stream: Opener, host: str, settings: dict[str, Any], says: str
) -> None:
    url = f"kafka://{host}:{broker.tls_port}/{broker.new_topic()}"
    stream = new_stream(url, **{**SECURE, "ca_file": broker.ca_file, **settings})
    for call in (lambda: stream.open(None), lambda: stream.append(numbered(0, 1))):
        with pytest.raises(StreamError, match=says) as raised:
            patiently(call)
        assert PASSWORD not in str(raised.value)
        assert "wrong-one" not in str(raised.value)


def patiently(call: Callable[[], object]) -> None:
    """As the daemon does, for which a broker that only hung up is away: on a busy machine its reason can get lost."""
    for _ in range(30):
        with suppress(StreamAway):
            call()
            return
    raise AssertionError("the broker never said why")


def test_another_name_goes_when_the_check_is_waived(broker: Broker, new_stream: Opener) -> None:
    url = f"kafka://127.0.0.1:{broker.tls_port}/{broker.new_topic()}"
    new_stream(url, **SECURE, ca_file=broker.ca_file, check_hostname=False).open(None)


def test_tls_to_a_port_that_speaks_none(broker: Broker, new_stream: Opener) -> None:
    stream = new_stream(f"kafka://localhost:{broker.port}/x", **SECURE, ca_file=broker.ca_file, connect_timeout=2)
    with pytest.raises(StreamError, match=r"no TLS connection|no broker answers"):
        stream.open(None)
