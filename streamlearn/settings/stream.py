"""The `stream` table: where records come from and how the stream is reached.

The stream's own options (`streamlearn.stream.options`) are the same values, one room further up, where nothing of the
settings is known but what `options` gives. A test keeps the two alike.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr


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

    def options(self) -> dict[str, Any]:
        """What StreamOptions.model_validate takes."""
        return {"kafka": self.kafka.model_dump(), "log": self.log.model_dump()}
