"""All settings of the daemon, one table for each part. `config example` prints them with what each means."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from streamlearn.settings.http import HttpSettings, LabelSettings, SnapshotSettings
from streamlearn.settings.learner import LearnerSettings
from streamlearn.settings.limits import Limits
from streamlearn.settings.presets import PRESETS
from streamlearn.settings.stream import StreamSettings

_LIMITS = Limits()


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


class RecordSettings(_Table):
    """How large records may be, and how many bad ones are too many."""

    max_bytes: int = Field(default=_LIMITS.record_bytes, ge=1, description="a record with a larger value is refused")
    max_pixels: int = Field(default=_LIMITS.image_pixels, ge=1, description="a picture with more pixels is refused")
    max_label_bytes: int = Field(default=_LIMITS.label_bytes, ge=1, le=1024, description="longest class name, in UTF-8")
    max_id_bytes: int = Field(default=_LIMITS.id_bytes, ge=1, le=1024, description="longest id of an example, in UTF-8")
    max_group_bytes: int = Field(
        default=_LIMITS.group_bytes, ge=1, le=1024, description="longest name of a class group"
    )
    max_bad_ratio: float = Field(
        default=0.5,
        gt=0,
        le=1,
        description="learning stops when more than this share of the last records was bad (1: never)",
    )
    bad_window: int = Field(default=1000, ge=1, description="how many of the last records that share is taken over")

    def limits(self) -> Limits:
        return Limits(self.max_bytes, self.max_pixels, self.max_label_bytes, self.max_id_bytes, self.max_group_bytes)


class CheckpointSettings(_Table):
    """When the state is saved, and which old ones stay."""

    every_examples: int = Field(
        default=10_000,
        ge=0,
        description="save after this many examples: always at the same places of a stream (0: do not)",
    )
    every_seconds: float = Field(
        default=60, ge=0, description="save also when this long has passed since the last (0: do not)"
    )
    keep: int = Field(default=3, ge=1, description="the newest checkpoints that stay")
    keep_every: int = Field(default=10, ge=1, description="of the older ones, every so manyth stays longer")
    keep_long: int = Field(default=10, ge=0, description="how many of those that stay longer")
    max_failures: int = Field(
        default=5, ge=1, description="failed saves in a row after which learning pauses until one succeeds"
    )


class AccuracySettings(_Table):
    """How well it does, measured on every example before it is learned."""

    window: int = Field(
        default=1000, ge=1, description="the last examples of each class group that the sliding accuracy is over"
    )


class LogSettings(_Table):
    """What the daemon tells about itself on standard error."""

    format: Literal["auto", "human", "json"] = Field(
        default="auto", description="auto: human on a terminal, one JSON object a line otherwise"
    )
    level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="the least that is told")


class Settings(_Table):
    """One model for everything: a TOML file < environment < flags."""

    preset: str | None = Field(
        default=None,
        description=f"start from the paper's settings for a benchmark: {', '.join(PRESETS)}",
        examples=["split-fashion-mnist"],
    )
    state_dir: Path = Field(
        default=Path("streamlearn-state"), description="where checkpoints, snapshots and the embedded log live"
    )
    threads: int = Field(
        default=1,
        ge=1,
        le=1024,
        description="processor threads that torch may use (more only pay for large networks); same number, same bits",
    )
    quiet: bool = Field(default=False, description="no progress on the terminal")
    learner: LearnerSettings = Field(default_factory=lambda: LearnerSettings.model_validate({}))
    stream: StreamSettings = StreamSettings()
    records: RecordSettings = RecordSettings()
    checkpoint: CheckpointSettings = CheckpointSettings()
    accuracy: AccuracySettings = AccuracySettings()
    http: HttpSettings = HttpSettings()
    snapshot: SnapshotSettings = SnapshotSettings()
    labels: LabelSettings = LabelSettings()
    log: LogSettings = LogSettings()

    @field_validator("preset")
    @classmethod
    def _preset_exists(cls, name: str | None) -> str | None:
        if name is not None and name not in PRESETS:
            raise ValueError(f"there is no preset {name!r}; there are {', '.join(PRESETS)}")
        return name

    @property
    def stream_url(self) -> str:
        return self.stream.url or default_stream_url(self.state_dir)


def default_stream_url(state_dir: Path) -> str:
    """The embedded log of a daemon that was given no stream."""
    return f"log:{state_dir / 'stream.log'}"
