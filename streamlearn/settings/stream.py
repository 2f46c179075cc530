"""The `stream` table: where records come from and how the stream is reached. Nothing here opens anything."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from streamlearn.errors import SettingsError
from streamlearn.settings.hosts import is_loopback


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class KafkaSettings(_Table):
    """For kafka:// only: how brokers are reached, and who we are to them."""

    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        default="PLAINTEXT",
        description="encrypted: SSL, with a password: SASL_PLAINTEXT, both: SASL_SSL",
    )
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        default="SCRAM-SHA-512", description="how the password is proved"
    )
    username: str | None = Field(default=None, description="for SASL_PLAINTEXT and SASL_SSL", examples=["streamlearn"])
    password: SecretStr | None = Field(default=None, description="the password of username")
    ca_file: Path | None = Field(default=None, description="certificates to trust; without it, the system's")
    cert_file: Path | None = Field(default=None, description="the client's own certificate, PEM")
    key_file: Path | None = Field(default=None, description="the key of cert_file, PEM")
    check_hostname: bool = Field(default=True, description="the broker's certificate must name the host of the URL")
    allow_plaintext_credentials: bool = Field(
        default=False, description="send the password unencrypted to another machine"
    )
    group: str = Field(
        default="streamlearn", min_length=1, description="the consumer group that lag tools see; never read back"
    )
    interleave: Literal["arrival", "fixed"] = Field(
        default="arrival", description="several partitions: as records come, or strictly in turn, which is repeatable"
    )
    create_topics: bool = Field(default=True, description="appending creates a missing topic; reading never does")
    connect_timeout: float = Field(default=5.0, gt=0, description="seconds to get an answer from a broker at all")
    request_timeout: float = Field(default=5.0, gt=0.5, description="seconds one request may take")
    away_after: float = Field(default=3.0, gt=0, description="seconds of silence after which the broker counts as away")

    @property
    def encrypted(self) -> bool:
        return self.security_protocol in ("SSL", "SASL_SSL")

    @property
    def authenticated(self) -> bool:
        return self.security_protocol in ("SASL_PLAINTEXT", "SASL_SSL")


class EmbeddedLogSettings(_Table):
    """For log: only: the embedded log."""

    retention: Literal["keep", "passed"] = Field(
        default="keep", description="keep every record, or delete what the checkpoints have passed"
    )
    busy_timeout: float = Field(default=10.0, gt=0, description="seconds to wait for another process that is writing")


class StreamSettings(_Table):
    """Where records come from."""

    url: str | None = Field(
        default=None,
        description="kafka://host:9092/topic or log:PATH; without it, the log inside the state directory",
        examples=["kafka://localhost:9092/examples"],
    )
    from_earliest: bool = Field(
        default=False,
        description="when the checkpoint's position is gone from the stream, go on from the earliest record left",
    )
    kafka: KafkaSettings = KafkaSettings()
    log: EmbeddedLogSettings = EmbeddedLogSettings()


def check_kafka_settings(kafka: KafkaSettings, hosts: list[str]) -> None:
    """Raises one SettingsError with every fault, above all credentials that would travel in the clear."""
    faults = []
    if kafka.authenticated and (kafka.username is None or kafka.password is None):
        faults.append(f"stream.kafka: security_protocol {kafka.security_protocol} needs username and password")
    if not kafka.authenticated and (kafka.username is not None or kafka.password is not None):
        faults.append(
            f"stream.kafka: username or password is set, but security_protocol {kafka.security_protocol}"
            " does not use them; use SASL_SSL"
        )
    if (kafka.cert_file is None) != (kafka.key_file is None):
        faults.append("stream.kafka: cert_file and key_file go together; only one of them is set")
    if not kafka.encrypted and (kafka.ca_file is not None or kafka.cert_file is not None):
        faults.append(
            f"stream.kafka: certificates are set, but security_protocol {kafka.security_protocol} is not encrypted"
        )
    faults += [
        f"stream.kafka: {field} {path} does not exist"
        for field, path in (
            ("ca_file", kafka.ca_file),
            ("cert_file", kafka.cert_file),
            ("key_file", kafka.key_file),
        )
        if path is not None and not path.is_file()
    ]
    away = [host for host in hosts if not is_loopback(host)]
    if kafka.security_protocol == "SASL_PLAINTEXT" and away and not kafka.allow_plaintext_credentials:
        faults.append(
            f"stream.kafka: the password would travel unencrypted to {', '.join(away)}; use security_protocol SASL_SSL,"
            " or set allow_plaintext_credentials if the network is safe"
        )
    if faults:
        raise SettingsError(faults)
