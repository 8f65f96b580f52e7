"""What the tests of `reformer serve` share: small models, a server, a client."""
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

TOY = {
    "task": {"name": "translation-toy", "alphabet": 12},
    "model": {"layers": 1, "encoder_layers": 1, "d_model": 16, "d_ff": 32,
              "heads": 2, "d_head": 8, "attention": "full",
              "positions": "sinusoid"},
    "train": {"length": 8, "batch": 8, "steps": 30, "warmup": 5,
              "checkpoint_every": 10, "keep": 2, "evaluate_every": 30}}


def train(program, config, out, *settings):
    sets = [word for setting in (
        "train.steps=3", "train.warmup=1", "train.batch=1", "model.layers=2",
        "model.d_model=16", "model.d_ff=16", "model.heads=2", "model.d_head=8",
        "lsh.chunk_length=8", *settings) for word in ("--set", setting)]
    check([program, "train", config, "--out", out, "--threads", "1", *sets])


def check(command):
    run = subprocess.run(list(map(str, command)), capture_output=True,
                         timeout=300)
    assert run.returncode == 0, run.stderr.decode()


def train_text(program, folder, name="text", *settings):
    data = pathlib.Path(folder) / "data"
    data.write_bytes(bytes(range(256)) * 40)
    out = pathlib.Path(folder) / name
    train(program, "text", out, f"task.data={data}", "train.length=64",
          "model.positions=rotary", *settings)
    return out


def train_translation(program, folder):
    """A toy that translates nothing well."""
    config = pathlib.Path(folder) / "toy.json"
    config.write_text(json.dumps(TOY))
    out = pathlib.Path(folder) / "toy"
    check([program, "train", config, "--out", out, "--threads", "1"])
    return out


class Server:
    """A `reformer serve`, from its first line on stdout to `stop`."""

    def __init__(self, program, run, *arguments):
        self.process = subprocess.Popen(
            [program, "serve", str(run), "--port", "0", "--threads", "1",
             *map(str, arguments)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "OMP_WAIT_POLICY": "passive"})
        line = self.process.stdout.readline().decode()
        found = re.fullmatch(r"serving (\S+) at http://(\S+):(\d+)/\n", line)
        if not found:
            raise AssertionError(line + self.process.stderr.read().decode())
        self.name, self.host, self.port = (
            found[1], found[2], int(found[3]))

    def stop(self):
        """Its exit status, and what it wrote on stderr."""
        self.process.send_signal(signal.SIGTERM)
        error = self.process.communicate(timeout=60)[1].decode()
        return self.process.returncode, error

    def connect(self, timeout=60):
        return http.client.HTTPConnection(self.host, self.port,
                                          timeout=timeout)

    def ask(self, method, path, body=None, headers=(), connection=None):
        """Status, headers and body of an answer; JSON is parsed."""
        own = connection or self.connect()
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        own.request(method, path, body, dict(headers))
        answer = own.getresponse()
        text = answer.read()
        if connection is None:
            own.close()
        if answer.getheader("Content-Type") == "application/json":
            text = json.loads(text)
        return answer.status, answer.headers, text

    def complete(self, **body):
        status, _, answer = self.ask("POST", "/v1/completions", body)
        if status != 200:
            raise AssertionError((status, answer))
        return answer

    def stream(self, **body):
        """Yields the events of a stream, parsed; without the last [DONE]."""
        connection = self.connect()
        connection.request("POST", "/v1/completions",
                           json.dumps({**body, "stream": True}))
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        assert answer.getheader("Content-Type") == "text/event-stream"
        done = False
        for line in answer:
            if line.startswith(b"data: "):
                assert not done
                done = line == b"data: [DONE]\n"
                if not done:
                    yield json.loads(line[6:])
        connection.close()
        assert done

    def metrics(self):
        text = self.ask("GET", "/metrics")[2].decode()
        return {name: float(value) for name, value in re.findall(
            r"^(reformer_\S+) (\S+)$", text, re.M)}


class TextServer(Server):
    """One of a small text model, which it trains first."""

    def __init__(self, program, *arguments):
        self.program = program
        self.folder = tempfile.TemporaryDirectory()
        self.run = train_text(program, self.folder.name)
        super().__init__(program, self.run, *arguments)

    def generated(self, *arguments):
        """What `reformer generate` writes with that model."""
        return subprocess.run(
            [self.program, "generate", self.run, "--threads", "1",
             *map(str, arguments)],
            capture_output=True, timeout=120).stdout

    def close(self):
        status, error = self.stop()
        self.folder.cleanup()
        assert status == 0, (status, error)


def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("it did not come to pass")
        time.sleep(0.02)


def program_of(arguments):
    """The program that serves; the test is skipped where it cannot."""
    program = str(pathlib.Path(arguments[1]).resolve())
    asked = subprocess.run([program, "serve", "no-such-run", "--port", "0"],
                           capture_output=True, timeout=60)
    if b"without an HTTP library" in asked.stderr:
        skip("the program was built without cpp-httplib")
    return program


def skip(reason):
    """ctest's word for a test that could not run here."""
    print(f"skipped: {reason}", file=sys.stderr)
    sys.exit(77)
