"""The figures by name. Imports nothing, so that the command line can tell them without torch."""

LEARNER = ("learner_vs_bare_loop",)
BUFFERS = ("buffer_1e4_vs_1e3", "buffer_1e5_vs_1e3", "buffer_1e6_vs_1e3")
REFIT = ("bias_refit",)
LOG = ("log_vs_learner",)
KAFKA = ("kafka_vs_learner",)
SAVING = ("checkpoint_stall", "checkpoint_bytes")
SERVING = (
    "predict_p99_idle",
    "predict_p99_learning",
    "predict_p99_checkpoint",
    "predict_requests",
    "predict_pictures",
    "learning_with_client",
    "start_to_ready",
    "restart_to_learning",
    "resident_learner",
    "resident_server",
)
ALL = (*LEARNER, *BUFFERS, *REFIT, *LOG, *KAFKA, *SAVING, *SERVING)
