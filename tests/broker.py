"""A real Kafka for the tests, started by deploy/kafka/start once a session, on free ports."""

from __future__ import annotations

import itertools
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import missing

START = Path(__file__).parent.parent / "deploy" / "kafka" / "start"
STORE_PASSWORD = "a-password-for-tests"
USER, PASSWORD = "learner", "learn-for-life"


class Broker:
    def __init__(self, directory: Path) -> None:
        self.data = directory / "data"
        self.port, self._controller_port, self.tls_port = _free_ports(3)
        self.url = f"kafka://127.0.0.1:{self.port}"
        self.ca_file = directory / "ca.pem"
        self._properties = directory / "more.properties"
        self._output = directory / "kafka.out"
        self._process: subprocess.Popen[bytes] | None = None
        self._names = itertools.count()
        _make_key_store(directory / "store.p12", self.ca_file)
        self._properties.write_text(self._tls_listener(directory / "store.p12"))

    def _tls_listener(self, store: Path) -> str:
        """The certificate names localhost only, so that 127.0.0.1 is the wrong name for the same broker."""
        users = f'user_{USER}="{PASSWORD}"'
        module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        return (
            f"listeners=PLAINTEXT://127.0.0.1:{self.port},SASL_SSL://127.0.0.1:{self.tls_port},"
            f"CONTROLLER://127.0.0.1:{self._controller_port}\n"
            f"advertised.listeners=PLAINTEXT://127.0.0.1:{self.port},SASL_SSL://localhost:{self.tls_port}\n"
            "sasl.enabled.mechanisms=PLAIN\n"
            f"listener.name.sasl_ssl.plain.sasl.jaas.config={module} {users};\n"
            f"ssl.keystore.location={store}\nssl.keystore.type=PKCS12\nssl.keystore.password={STORE_PASSWORD}\n"
        )

    def start(self) -> None:
        ports = ["--port", str(self.port), "--controller-port", str(self._controller_port)]
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [START, *ports, "--data", self.data, "--properties", self._properties],
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._wait(lambda: "Kafka Server started" in self._output.read_text())

    def stop(self, *, kill: bool = False) -> None:
        if self._process is not None:
            self._process.kill() if kill else self._process.terminate()
            self._process.wait(60)
            self._process = None

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def new_topic(self, partitions: int = 1, **configs: str) -> str:
        name = f"topic-{next(self._names)}"
        self.create(name, partitions, **configs)
        return name

    def create(self, name: str, partitions: int = 1, **configs: str) -> None:
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        with self.admin() as admin:
            admin.create_topics({name: {"num_partitions": partitions, "replication_factor": 1, "configs": settings}})
            admin.wait_for_topics([name])

    def delete(self, name: str) -> None:
        with self.admin() as admin:
            admin.delete_topics([name])
            self._wait(lambda: admin.describe_topics([name])[0]["error_code"] == 3)

    def admin(self):  # type: ignore[no-untyped-def]  # the library has no types
        from streamlearn.stream.kafka_library import KafkaAdminClient

        return KafkaAdminClient(bootstrap_servers=f"127.0.0.1:{self.port}")

    def _wait(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not done():
            if self._process is None or self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"Kafka did not come up or answer:\n{self._output.read_text()[-3000:]}")
            time.sleep(0.05)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Shared by all tests of the session: leave it running."""
    yield from _running(tmp_path_factory)


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """For the tests of one module that stop and start it."""
    yield from _running(tmp_path_factory)


def _running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    for program, package in (("java", "Java 17"), ("keytool", "Java 17"), ("mvn", "Maven")):
        if shutil.which(program) is None:
            missing(f"{program}: install {package} to run the tests against a real Kafka")
    fetched = subprocess.run([START, "--fetch"], capture_output=True, text=True, check=False)
    if fetched.returncode:
        missing(f"Kafka could not be fetched: {fetched.stderr[-500:]}")
    broker = Broker(tmp_path_factory.mktemp("kafka"))
    try:
        broker.start()
        yield broker
    finally:
        broker.stop(kill=True)


def _make_key_store(store: Path, ca_file: Path) -> None:
    keytool = ["keytool", "-keystore", str(store), "-storetype", "PKCS12", "-storepass", STORE_PASSWORD, "-alias", "b"]
    name = ["-dname", "CN=localhost", "-ext", "san=dns:localhost", "-keyalg", "RSA", "-validity", "30"]
    subprocess.run([*keytool, "-genkeypair", *name], check=True, capture_output=True)
    subprocess.run([*keytool, "-exportcert", "-rfc", "-file", str(ca_file)], check=True, capture_output=True)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
