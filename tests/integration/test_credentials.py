"""A password for Kafka, given in the environment: used over TLS, and found nowhere afterwards."""

from __future__ import annotations

from pathlib import Path

from streamlearn.stream.url import open_stream
from tests.broker import PASSWORD, USER, Broker
from tests.records.mixed import mixed
from tests.serving import Serve, run, saved_examples

PREFIX = "STREAMLEARN_STREAM__KAFKA__"


def environment(broker: Broker) -> dict[str, str]:
    return {
        PREFIX + "SECURITY_PROTOCOL": "SASL_SSL",
        PREFIX + "SASL_MECHANISM": "PLAIN",
        PREFIX + "USERNAME": USER,
        PREFIX + "PASSWORD": PASSWORD,
        PREFIX + "CA_FILE": str(broker.ca_file),
        "STREAMLEARN_LOG__LEVEL": "debug",
    }


def assert_no_password(daemon: Serve) -> None:
    assert PASSWORD not in daemon.output
    for path in daemon.state_dir.rglob("*"):
        assert path.is_dir() or PASSWORD.encode() not in path.read_bytes(), path


def test_learning_over_tls_with_a_password_from_the_environment(broker: Broker, tmp_path: Path) -> None:
    topic = broker.new_topic()
    stream = open_stream(f"{broker.url}/{topic}")
    stream.append(mixed(600))  # some are bad, so that letters are written the same way
    stream.close()
    url, given = f"kafka://localhost:{broker.tls_port}/{topic}", environment(broker)
    daemon = run(tmp_path / "state", url, environment=given)
    assert saved_examples(tmp_path / "state") > 400
    assert daemon.said("a record was refused")
    assert_no_password(daemon)

    with Serve(tmp_path / "state", url.replace("localhost", "127.0.0.1"), environment=given) as daemon:
        assert daemon.end() == 3  # the certificate does not name that host
    assert "is not trusted" in daemon.errors
    assert_no_password(daemon)

    with Serve(tmp_path / "state", url, environment=given | {PREFIX + "USERNAME": "nobody"}) as daemon:
        assert daemon.end() == 3
    assert "the broker refuses user 'nobody'" in daemon.errors
    assert_no_password(daemon)


def test_a_password_that_would_travel_in_the_clear_is_refused(broker: Broker, tmp_path: Path) -> None:
    given = environment(broker) | {PREFIX + "SECURITY_PROTOCOL": "SASL_PLAINTEXT"}
    del given[PREFIX + "CA_FILE"]
    with Serve(tmp_path / "state", "kafka://192.0.2.1:9092/topic", environment=given) as daemon:
        assert daemon.end() == 2
    assert "the password would travel unencrypted to 192.0.2.1" in daemon.errors
    assert_no_password(daemon)
