"""The tables of what is served: `http`, `snapshot`, `labels`."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from streamlearn.settings.hosts import is_loopback


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class HttpSettings(_Table):
    """Predictions and control over HTTP."""

    enabled: bool = Field(default=True, description="false: the learner alone, nothing is served")
    host: str = Field(default="127.0.0.1", min_length=1, description="the address to listen on")
    port: int = Field(default=8080, ge=0, le=65535, description="the port to listen on (0: any that is free)")
    token: SecretStr | None = Field(default=None, description="who has it may do everything (Authorization: Bearer)")
    read_token: SecretStr | None = Field(default=None, description="who has it may look and ask for predictions only")
    allow_no_token: bool = Field(
        default=False, description="let everybody who can reach the address do everything, also beyond this machine"
    )
    servers: int = Field(default=1, ge=1, le=64, description="processes that answer predictions")
    spare: bool = Field(
        default=True, description="keep one more server loaded, which takes over at once when another one dies"
    )
    exit_with_learner: bool = Field(
        default=False, description="stop serving, too, when the learner stops for a reason, with its exit code"
    )
    max_body_bytes: int = Field(default=8 << 20, ge=1024, description="a larger body is refused (413)")
    max_instances: int = Field(default=1024, ge=1, description="inputs in one request, at the most")
    max_connections: int = Field(
        default=1000, ge=1, description="open at one server; one more is answered 503 and closed"
    )
    max_waiting: int = Field(
        default=4096, ge=1, description="inputs of all requests that wait for the model; more are answered 503"
    )
    request_seconds: float = Field(
        default=10.0, gt=0, description="a request must have arrived within this time, and be answered within it again"
    )
    idle_seconds: float = Field(default=60.0, gt=0, description="a connection without a request is closed after this")

    @model_validator(mode="after")
    def _token_beyond_loopback(self) -> Self:
        if self.enabled and not is_loopback(self.host) and self.token is None and not self.allow_no_token:
            raise ValueError(
                f"host {self.host} can be reached by others: set token (STREAMLEARN_HTTP__TOKEN, or token_file), "
                "or allow_no_token if whoever can reach it may do everything"
            )
        for name, secret in (("token", self.token), ("read_token", self.read_token)):
            if secret is not None and not _fits_a_header(secret.get_secret_value()):
                raise ValueError(f"{name} must be printable ASCII without spaces, or no client could send it")
        return self


class SnapshotSettings(_Table):
    """What the learner publishes for the servers."""

    every_seconds: float = Field(
        default=1.0, ge=0.05, description="a snapshot at most this often, when something was learned"
    )


class LabelSettings(_Table):
    """Labels that come later than the prediction they are for."""

    expire_seconds: float = Field(
        default=86_400.0, gt=0, description="a prediction that had an id waits this long for its label"
    )
    max_pending: int = Field(
        default=100_000, ge=1, description="predictions that wait; one more, and the oldest is given up"
    )
    max_pending_bytes: int = Field(default=1 << 30, ge=1024, description="their inputs altogether, on the disk")


def _fits_a_header(secret: str) -> bool:
    return bool(secret) and secret.isascii() and secret.isprintable() and " " not in secret
