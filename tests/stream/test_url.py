from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from streamlearn.errors import SettingsError
from streamlearn.settings.stream import EmbeddedLogSettings, KafkaSettings, StreamSettings, is_loopback
from streamlearn.stream.url import KafkaAddress, LogAddress, open_stream, parse_url


@pytest.mark.parametrize(
    ("url", "servers", "topic"),
    [
        ("kafka://localhost:9092/digits", (("localhost", 9092),), "digits"),
        ("kafka://localhost/digits", (("localhost", 9092),), "digits"),
        ("kafka://a:1,b.example.org:65535/x.y_z-1", (("a", 1), ("b.example.org", 65535)), "x.y_z-1"),
        ("kafka://[::1]:9092/digits", (("::1", 9092),), "digits"),
    ],
)
def test_kafka_url(url: str, servers: tuple[tuple[str, int], ...], topic: str) -> None:
    assert parse_url(url) == KafkaAddress(servers, topic)
    assert parse_url(parse_url(url).url) == parse_url(url)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("log:/var/lib/x.log", "/var/lib/x.log"),
        ("log:x", "x"),
        ("log:a b:c", "a b:c"),
        ("log:~/x", str(Path.home() / "x")),
    ],
)
def test_log_url(url: str, path: str) -> None:
    assert parse_url(url) == LogAddress(Path(path))


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "no kind known"),
        ("digits", "no kind known"),
        ("http://localhost/digits", "no kind known"),
        ("kafka:localhost/digits", "no kind known"),
        ("log:", "no path"),
        ("log:a\0b", "no path"),
        ("kafka://localhost:9092", "names no topic"),
        ("kafka://localhost:9092/", "names no topic"),
        ("kafka:///digits", "no host:port"),
        ("kafka://localhost:9092,/digits", "no host:port"),
        ("kafka://local host/digits", "no host:port"),
        ("kafka://localhost:0/digits", "port 0"),
        ("kafka://localhost:65536/digits", "port 65536"),
        ("kafka://localhost:http/digits", "no host:port"),
        ("kafka://localhost/a/b", "does not allow"),
        ("kafka://localhost/..", "does not allow"),
        ("kafka://localhost/digits?x=1", "does not allow"),
        ("kafka://localhost/" + "t" * 240, "240 characters"),
    ],
)
def test_what_is_wrong_with_a_url_is_said(url: str, says: str) -> None:
    with pytest.raises(SettingsError, match=says) as raised:
        parse_url(url)
    assert "kafka://host:9092/topic or log:PATH" in raised.value.hint


def test_a_password_in_a_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(SettingsError, match="no user or password") as raised:
        parse_url("kafka://me:hunter2@broker/digits")
    assert "hunter2" not in str(raised.value)


def test_a_password_is_in_no_representation() -> None:
    settings = StreamSettings(kafka=KafkaSettings(security_protocol="SASL_SSL", username="me", password="hunter2"))
    for text in (repr(settings), str(settings), settings.model_dump_json(), repr(settings.kafka)):
        assert "hunter2" not in text


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1.2.3", "::1"])
def test_credentials_over_plaintext_may_go_to_this_machine(host: str) -> None:
    assert is_loopback(host)
    name = f"[{host}]" if ":" in host else host
    settings = KafkaSettings(security_protocol="SASL_PLAINTEXT", username="me", password="hunter2")
    open_stream(f"kafka://{name}:9092/digits", StreamSettings(kafka=settings)).close()


def test_credentials_over_plaintext_to_another_machine_are_refused_unless_waived() -> None:
    settings = KafkaSettings(security_protocol="SASL_PLAINTEXT", username="me", password="hunter2")
    url = "kafka://localhost:9092,broker.example.org:9092/digits"
    with pytest.raises(SettingsError, match=r"unencrypted to broker\.example\.org") as raised:
        open_stream(url, StreamSettings(kafka=settings))
    assert "hunter2" not in str(raised.value)
    waived = settings.model_copy(update={"allow_plaintext_credentials": True})
    open_stream(url, StreamSettings(kafka=waived)).close()


def test_all_faults_of_the_settings_at_once(tmp_path: Path) -> None:
    settings = KafkaSettings(
        security_protocol="SASL_PLAINTEXT", ca_file=tmp_path / "none.pem", cert_file=tmp_path / "none.crt"
    )
    with pytest.raises(SettingsError) as raised:
        open_stream("kafka://broker/digits", StreamSettings(kafka=settings))
    assert len(raised.value.faults) == 6
    unused = KafkaSettings(username="me")
    with pytest.raises(SettingsError, match="use SASL_SSL"):
        open_stream("kafka://broker/digits", StreamSettings(kafka=unused))


def test_a_log_needs_no_kafka(tmp_path: Path) -> None:
    program = (
        "import sys; from streamlearn.stream.url import open_stream\n"
        f"open_stream('log:{tmp_path}/x').close(); assert 'kafka' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_settings_are_fixed_and_known() -> None:
    with pytest.raises(ValueError, match="frozen"):
        KafkaSettings().group = "other"
    with pytest.raises(ValueError, match="retention"):
        EmbeddedLogSettings(retention="some")
    with pytest.raises(ValueError, match="Extra inputs"):
        KafkaSettings(pasword="x")
