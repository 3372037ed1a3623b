"""A Redis and a Sentinel that speak TLS alone, with certificates of the test. The wheel's Valkey cannot."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from redis import AuthenticationError, Redis, RedisError, ResponseError

from harbor_refresh.local.ports import LOOPBACK
from harbor_refresh.local.process import spawn
from harbor_refresh.local.redis import EmbeddedRedis
from tests.programs import needs

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


class Certificates:
    """An authority, and what it has signed: a server at this address, a server of another name, a client."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()
        self._authority("ca")
        self._authority("another-ca")
        self._sign("server", f"subjectAltName=IP:{LOOPBACK}")
        self._sign("elsewhere", "subjectAltName=DNS:elsewhere.example")
        self._sign("client", "extendedKeyUsage=clientAuth")

    def file(self, name: str) -> str:
        return str(self.directory / name)

    def query(self, **changed: str) -> str:
        """The options of an address for a client that has all."""
        given = {"ssl_ca_certs": "ca.crt", "ssl_certfile": "client.crt", "ssl_keyfile": "client.key"}
        named = {option: self.file(name) for option, name in given.items()} | changed
        return "&".join(f"{option}={value}" for option, value in named.items() if value)

    def options(self, server: str = "server") -> tuple[str, ...]:
        """The options of the server."""
        files = {"cert": f"{server}.crt", "key": f"{server}.key", "ca-cert": "ca.crt"}
        return tuple(word for kind, name in files.items() for word in (f"--tls-{kind}-file", self.file(name)))

    def _authority(self, name: str) -> None:
        usage = "keyUsage=critical,keyCertSign,cRLSign"
        self._openssl(
            "req", "-x509", *KEY, "-keyout", f"{name}.key", "-out", f"{name}.crt", *_of(name), "-addext", usage
        )

    def _sign(self, name: str, extension: str) -> None:
        (self.directory / "extensions").write_text(f"{extension}\nauthorityKeyIdentifier=keyid\n")
        self._openssl("req", *KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", *_of(name))
        signed = ("-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial")
        self._openssl("x509", *signed, "-days", "2", "-extfile", "extensions", "-out", f"{name}.crt")

    def _openssl(self, *words: str) -> None:
        subprocess.run([needs("openssl"), *words], cwd=self.directory, check=True, capture_output=True)


def _of(name: str) -> tuple[str, ...]:
    return ("-subj", f"/CN={name}")


class RedisWithTLS(EmbeddedRedis):
    """`extra` are further options of its command line. It takes no client without a certificate."""

    name = "Redis with TLS"

    def __init__(
        self, directory: Path, certificates: Certificates, *, server: str = "server", extra: Sequence[str] = ()
    ) -> None:
        super().__init__(directory, extra=extra)
        self._certificates = certificates
        self._server = server

    def address(self, *, login: str = "", scheme: str = "rediss", path: str = "/0", **changed: str) -> str:
        return f"{scheme}://{login}{LOOPBACK}:{self.port}{path}?{self._certificates.query(**changed)}"

    def _launch(self) -> "subprocess.Popen[bytes]":
        self.directory.mkdir(parents=True, exist_ok=True)
        words = ["--tls-port", str(self.port), "--port", "0", "--bind", LOOPBACK, "--dir", str(self.directory)]
        command: list[str | Path] = [
            needs("redis-server"),
            *words,
            *self._certificates.options(self._server),
            "--save",
            "",
            *self.extra,
        ]
        return spawn(command, log=self.log)

    def _answers(self) -> bool:
        files = self._certificates.file
        client = Redis(
            host=LOOPBACK,
            port=self.port,
            ssl=True,
            ssl_check_hostname=False,
            ssl_ca_certs=files("ca.crt"),
            ssl_certfile=files("client.crt"),
            ssl_keyfile=files("client.key"),
        )
        with client:
            try:
                return bool(client.ping())
            except (AuthenticationError, ResponseError):  # it asks for a password
                return True
            except RedisError:
                return False


class SentinelWithTLS(RedisWithTLS):
    name = "Sentinel with TLS"

    def _launch(self) -> "subprocess.Popen[bytes]":
        self.directory.mkdir(parents=True, exist_ok=True)
        options = self._certificates.options(self._server)
        lines = [
            f"{name.removeprefix('--')} {value}" for name, value in zip(options[::2], options[1::2], strict=True)
        ]
        lines += ["port 0", f"tls-port {self.port}", "tls-replication yes", f"dir {self.directory}", *self.extra]
        file = self.directory / "sentinel.conf"
        file.write_text("\n".join(lines) + "\n")
        return spawn([needs("redis-server"), str(file), "--sentinel"], log=self.log)
