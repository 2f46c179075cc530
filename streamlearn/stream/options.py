"""How a stream is reached and kept, beyond its URL. Plain values: nothing here opens anything."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from streamlearn.errors import SettingsError

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


class KafkaOptions(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    security_protocol: SecurityProtocol = "PLAINTEXT"
    sasl_mechanism: SaslMechanism = "SCRAM-SHA-512"
    username: str | None = None
    password: SecretStr | None = None
    ca_file: Path | None = Field(default=None, description="certificates to trust; without it, the system's")
    cert_file: Path | None = Field(default=None, description="the client's own certificate, PEM")
    key_file: Path | None = Field(default=None, description="the key of cert_file, PEM")
    check_hostname: bool = True
    allow_plaintext_credentials: bool = Field(default=False, description="send the password in the clear")
    group: str = Field(default="streamlearn", min_length=1, description="the consumer group that lag tools see")
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


class LogOptions(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    retention: Literal["keep", "passed"] = Field(
        default="keep", description="keep every record, or delete what the checkpoints have passed"
    )
    busy_timeout: float = Field(default=10.0, gt=0, description="seconds to wait for another process that is writing")


class StreamOptions(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    kafka: KafkaOptions = KafkaOptions()
    log: LogOptions = LogOptions()


def check_kafka_options(options: KafkaOptions, hosts: list[str]) -> None:
    """Raises one SettingsError with every fault, above all credentials that would travel in the clear."""
    faults = []
    if options.authenticated and (options.username is None or options.password is None):
        faults.append(f"kafka: security_protocol {options.security_protocol} needs username and password")
    if not options.authenticated and (options.username is not None or options.password is not None):
        faults.append(
            f"kafka: username or password is set, but security_protocol {options.security_protocol} does not use them;"
            " use SASL_SSL"
        )
    if (options.cert_file is None) != (options.key_file is None):
        faults.append("kafka: cert_file and key_file go together; only one of them is set")
    if not options.encrypted and (options.ca_file is not None or options.cert_file is not None):
        faults.append(
            f"kafka: certificates are set, but security_protocol {options.security_protocol} is not encrypted"
        )
    faults += [
        f"kafka: {field} {path} does not exist"
        for field, path in (
            ("ca_file", options.ca_file),
            ("cert_file", options.cert_file),
            ("key_file", options.key_file),
        )
        if path is not None and not path.is_file()
    ]
    away = [host for host in hosts if not is_loopback(host)]
    if options.security_protocol == "SASL_PLAINTEXT" and away and not options.allow_plaintext_credentials:
        faults.append(
            f"kafka: the password would travel unencrypted to {', '.join(away)}; use security_protocol SASL_SSL,"
            " or set allow_plaintext_credentials if the network is safe"
        )
    if faults:
        raise SettingsError(faults)


def is_loopback(host: str) -> bool:
    """By name or number alone: what a name resolves to can change after the check."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
