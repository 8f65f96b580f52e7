"""serve_faults_test.py PROGRAM: what `reformer serve` makes of clients that
err, dawdle or mean harm."""
import json
import signal
import socket
import subprocess
import sys
import threading
import unittest

import serve_support
from serve_support import Server, until

PROGRAM = None  # set below
SERVER = None


def setUpModule():
    global SERVER
    SERVER = serve_support.TextServer(PROGRAM, "--batch", 3, "--queue", 4,
                                      "--context", 3000, "--body", 100000)


def tearDownModule():
    SERVER.close()


class FaultsTest(unittest.TestCase):
    def refused(self, body, *words, status=400):
        got, _, answer = SERVER.ask("POST", "/v1/completions", body)
        self.assertEqual(got, status, answer)
        for word in words:
            self.assertIn(word, answer["error"]["message"])
        return answer["error"]

    def test_broken_json_is_named(self):
        self.refused('{"prompt": "ab",}', "no JSON")
        self.refused("", "no JSON")
        self.refused('["prompt"]', "object")
        self.refused('{"prompt": "a", "prompt": "b"}', "prompt")
        self.refused("[" * 5000, "no JSON")
        self.refused(b'{"prompt": "\xff"}', "no JSON")
        self.refused('{"temperature": 1e999}', "no JSON")

    def test_wrong_values_are_named(self):
        for body, *words in (
                ({"max_tokens": 0}, "max_tokens", "1 to"),
                ({"max_tokens": 1.5}, "max_tokens", "1.5"),
                ({"max_tokens": 2 ** 64}, "max_tokens"),
                ({"temperature": -1}, "temperature", "-1"),
                ({"temperature": "hot"}, "temperature", "hot"),
                ({"top_p": 0}, "top_p"),
                ({"n": 100}, "n"),
                ({"prompt": 5}, "prompt"),
                ({"prompt": [1, "a"]}, "token"),
                ({"prompt": ["a", 1]}, "prompt"),
                ({"prompt": [256]}, "256", "0 to 255"),
                ({"prompt": []}, "prompt"),
                ({"stop": ""}, "stop"),
                ({"stop": ["a"] * 17}, "stop", "16"),
                ({"logprobs": 21}, "logprobs", "20"),
                ({"stream": 1}, "stream"),
                ({"seed": -1}, "seed"),
                ({"rounds": 9}, "rounds", "8"),
                ({"echo": True}, "echo"),
                ({"frequency_penalty": 1}, "repetition_penalty"),
                ({"messages": []}, "chat"),
                ({"temprature": 1}, "temprature", "temperature"),
                ({"stream_options": {"usage": 1}}, "usage")):
            error = self.refused(body, *words)
            self.assertEqual(error["type"], "invalid_request_error")

    def test_what_openais_clients_send_without_asking_is_taken(self):
        SERVER.complete(prompt="a", user="me", best_of=1, echo=False,
                        suffix=None, frequency_penalty=0,
                        presence_penalty=0.0, logit_bias={}, logprobs=None)

    def test_a_text_longer_than_the_context_is_refused(self):
        self.refused({"prompt": "a" * 2990, "max_tokens": 20}, "3000", "2990")
        self.refused({"prompt": "a" * 5000}, "3000", "5000")

    def test_another_model_is_not_there(self):
        self.refused({"model": "gpt-4"}, "gpt-4", "text", status=404)
        SERVER.complete(model="text", prompt="a")

    def test_too_large_a_body_is_refused(self):
        status, _, answer = SERVER.ask("POST", "/v1/completions",
                                       "x" * 100001)
        self.assertEqual(status, 413)
        self.assertIn("--body", answer["error"]["message"])

    def test_bodies_of_no_size_or_of_a_hidden_one_are_refused(self):
        body = json.dumps({"prompt": "a"}).encode()
        for headers, sent, status in (
                ({"Transfer-Encoding": "chunked"},
                 b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body), 411),
                ({}, body, 411),
                ({"Content-Encoding": "gzip", "Content-Length": "9"},
                 b"\x1f\x8b1234567", 415),
                ({"Content-Type": "multipart/form-data; boundary=x",
                  "Content-Length": "9"}, b"--x\r\n\r\n--", 415)):
            with socket.create_connection((SERVER.host, SERVER.port)) as s:
                lines = "".join(f"{name}: {value}\r\n"
                                for name, value in headers.items())
                s.sendall(b"POST /v1/completions HTTP/1.1\r\n"
                          b"Host: localhost\r\n" + lines.encode()
                          + b"\r\n" + sent)
                first = s.makefile("rb").readline()
                self.assertIn(f" {status} ".encode(), first, headers)

    def test_a_refused_body_is_not_the_next_request(self):
        smuggled = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        size = b"Content-Length: %d\r\n" % len(smuggled)
        for head, status in (
                (b"POST /v1/completions HTTP/1.1\r\n", 411),
                (b"POST /v1/completions HTTP/1.1\r\n"
                 b"Transfer-Encoding: chunked\r\n", 411),
                (b"POST /v1/completions HTTP/1.1\r\n" + size +
                 b"Content-Type: multipart/form-data; boundary=x\r\n", 415),
                (b"GET /health HTTP/1.1\r\n" + size, 400),
                (b"POST /v1/completions HTTP/1.1\r\n"
                 b"Content-Length: 0\r\n" + size, 400)):
            # The library reads 4,096 bytes at once: the body is beyond them.
            start = head + b"Host: localhost\r\nX-Padding: "
            start += b"x" * (4096 - len(start) - 4) + b"\r\n\r\n"
            with socket.create_connection((SERVER.host, SERVER.port)) as s:
                s.sendall(start + smuggled)
                answer = b""
                try:
                    while piece := s.recv(4096):
                        answer += piece
                except ConnectionResetError:  # what it did not read
                    pass
                self.assertEqual(answer.count(b"HTTP/1.1 "), 1, answer)
                self.assertIn(b"HTTP/1.1 %d " % status, answer)

    def test_unknown_paths_and_methods_are_named(self):
        for method, path in (("GET", "/nothing"), ("PUT", "/health"),
                             ("GET", "/v1/completions"),
                             ("GET", "/../../etc/passwd"),
                             ("GET", "/%2e%2e/%2e%2e/etc/passwd"),
                             ("GET", "/pageXjs")):
            status, _, answer = SERVER.ask(method, path)
            self.assertEqual(status, 404, path)
            self.assertIn("nothing here", answer["error"]["message"])
        status, _, answer = SERVER.ask("POST", "/v1/chat/completions", {})
        self.assertIn("does not chat", answer["error"]["message"])

    def test_what_is_no_http_does_not_stop_it(self):
        for sent in (b"\0\1\2\3\r\n\r\n", b"GET\r\n\r\n",
                     b"GET / HTTP/9.9\r\n\r\n",
                     b"POST /v1/completions HTTP/1.1\r\n"
                     b"Content-Length: -1\r\n\r\n",
                     b"POST /v1/completions HTTP/1.1\r\n"
                     b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
                     b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n\r\n"):
            with socket.create_connection((SERVER.host, SERVER.port)) as s:
                s.sendall(sent)
                s.shutdown(socket.SHUT_WR)
                s.settimeout(30)
                got = b""
                try:
                    while piece := s.recv(4096):
                        got += piece
                except ConnectionResetError:
                    pass
                self.assertNotIn(b" 200 ", got.split(b"\r\n")[0], sent[:40])
        self.assertEqual(SERVER.ask("GET", "/health")[0], 200)


class SlowTest(unittest.TestCase):
    """Clients that would be waited for as long as they like."""

    @classmethod
    def setUpClass(cls):
        # 34 threads for connections.
        cls.server = Server(PROGRAM, SERVER.run, "--timeout", 1, "--batch", 1,
                            "--queue", 1, "--context", 20000)

    @classmethod
    def tearDownClass(cls):
        status, error = cls.server.stop()
        assert status == 0, error

    def connect(self):
        return socket.create_connection((self.server.host, self.server.port),
                                        timeout=120)

    @staticmethod
    def rest(s):
        got = b""
        try:
            while piece := s.recv(65536):
                got += piece
        except ConnectionResetError:
            pass
        return got

    def test_who_falls_silent_within_a_request_is_not_waited_for(self):
        for sent in (b"GE", b"GET /health HTTP/1.1\r\nHost: localh",
                     b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                     b"Content-Length: 100\r\n\r\n{"):
            with self.connect() as s:
                s.sendall(sent)
                self.assertNotIn(b" 200 ", self.rest(s))

    def test_who_drips_keeps_nobody_out(self):
        ended = threading.Event()

        def drip():
            while not ended.is_set():  # again and again
                with self.connect() as s:
                    try:
                        s.sendall(b"GET /health HTTP/1.1\r\nX: ")
                        while not ended.wait(0.2):
                            s.sendall(b"y")
                    except OSError:
                        pass
        threads = [threading.Thread(target=drip) for _ in range(40)]
        for thread in threads:
            thread.start()
        try:
            with self.connect() as s:
                s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
                          b"Connection: close\r\n\r\n")
                self.assertIn(b" 200 ", self.rest(s))
        finally:
            ended.set()
            for thread in threads:
                thread.join()

    def test_heads_end(self):
        # Lines without "\r" are skipped: none of them is the empty one.
        for first, line in (
                (b"", b"X: y\r\n"), (b"", b"y"), (b"x\n", b"y"),
                (b"", b"X: " + b"y" * 8000 + b"\r\n"),
                (b"x\n", b"X: y\r\n")):
            with self.connect() as s:
                s.sendall(b"GET /health HTTP/1.1\r\n" + first)
                sent = 0
                with self.assertRaises(OSError):
                    while sent < 2 ** 27:
                        s.sendall(line * (2 ** 18 // len(line)))
                        sent += 2 ** 18
        large = b"X: " + b"y" * 8000 + b"\r\n"
        for first, count, status in ((b"", 3, 200), (b"x\n", 3, 200),
                                     (b"", 5, 400), (b"x\n", 5, 400)):
            with self.connect() as s:
                s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
                          b"Connection: close\r\n" + first + count * large +
                          b"\r\n")
                self.assertIn(b" %d " % status, self.rest(s)[:16])

    def test_who_reads_nothing_of_a_stream_makes_room(self):
        before = self.server.metrics()["reformer_texts_cancelled_total"]
        body = json.dumps({"prompt": "a", "max_tokens": 19000, "logprobs": 20,
                           "stream": True}).encode()
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.connect((self.server.host, self.server.port))
            s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                      b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            until(lambda: self.server.metrics()
                  ["reformer_texts_cancelled_total"] > before)

    def test_who_left_is_not_looked_for(self):
        left = 'reformer_responses_total{status="499"}'
        before = self.server.metrics().get(left, 0)
        body = json.dumps({"tokens": [1] * 5000}).encode()
        self.server.process.send_signal(signal.SIGSTOP)
        try:
            with self.connect() as s:
                s.sendall(b"POST /v1/attention HTTP/1.1\r\nHost: localhost\r\n"
                          b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        finally:
            self.server.process.send_signal(signal.SIGCONT)
        until(lambda: self.server.metrics().get(left, 0) == before + 1)


class SecurityTest(unittest.TestCase):
    def test_every_answer_forbids_frames_and_foreign_scripts(self):
        for method, path in (("GET", "/"), ("GET", "/page.js"),
                             ("GET", "/nothing"), ("POST", "/v1/completions")):
            headers = SERVER.ask(method, path)[1]
            policy = headers["Content-Security-Policy"]
            self.assertIn("default-src 'none'", policy)
            self.assertIn("script-src 'self'", policy)
            self.assertIn("frame-ancestors 'none'", policy)
            self.assertEqual(headers["X-Frame-Options"], "DENY")
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            self.assertNotIn("Access-Control-Allow-Origin", headers)

    def test_many_may_knock_while_it_is_busy(self):
        SERVER.process.send_signal(signal.SIGSTOP)
        try:
            knocking = [socket.create_connection((SERVER.host, SERVER.port),
                                                 timeout=30)
                        for _ in range(40)]
        finally:
            SERVER.process.send_signal(signal.SIGCONT)
        for s in knocking:
            s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
                      b"Connection: close\r\n\r\n")
        for s in knocking:
            self.assertIn(b" 200 ", s.makefile("rb").readline())
            s.close()

    def test_parts_of_a_page_are_not_sent_again_and_again(self):
        whole = SERVER.ask("GET", "/page.css")[2]
        for ranges in ("bytes=0-3", "bytes=" + ",".join(["0-"] * 700)):
            status, headers, page = SERVER.ask("GET", "/page.css", None,
                                               {"Range": ranges})
            self.assertEqual((status, page), (200, whole))
        status, _, answer = SERVER.ask("GET", "/", None, {"Range": "bytes=x"})
        self.assertEqual(status, 416)
        self.assertIn("no range", answer["error"]["message"])
        # Nor is the answer to ranges of which the last is none.
        with socket.create_connection((SERVER.host, SERVER.port)) as s:
            s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n"
                      b"Connection: close\r\nRange: bytes="
                      + b"0-," * 1000 + b"5-1\r\n\r\n")
            self.assertLess(len(s.makefile("rb").read()), 3000)

    def test_pages_of_others_are_refused(self):
        for headers in ({"Origin": "https://evil.example"},
                        {"Origin": "null"},
                        {"Host": "evil.example"},
                        {"Sec-Fetch-Site": "cross-site"}):
            for method, path, body in (
                    ("GET", "/v1/models", None), ("GET", "/", None),
                    ("POST", "/v1/completions", {"prompt": "a"})):
                status = SERVER.ask(method, path, body, headers)[0]
                self.assertEqual(status, 403, headers)
        host = f"localhost:{SERVER.port}"
        own = {"Host": host, "Origin": "http://" + host}
        self.assertEqual(SERVER.ask("GET", "/v1/models", None, own)[0], 200)

    def test_other_machines_need_a_token(self):
        failed = subprocess.run(
            [PROGRAM, "serve", SERVER.run, "--host", "0.0.0.0", "--port", "0"],
            capture_output=True, timeout=60)
        self.assertEqual(failed.returncode, 1)
        self.assertRegex(failed.stderr.decode(), "--host 0.0.0.0 .*--token")
        short = subprocess.run(
            [PROGRAM, "serve", SERVER.run, "--token", "short", "--port", "0"],
            capture_output=True, timeout=60)
        self.assertRegex(short.stderr.decode(), "--token: at least 16")

    def test_a_token_is_asked_for_by_all_that_works(self):
        token = "sixteen-letters-and-more"
        server = Server(PROGRAM, SERVER.run, "--host", "0.0.0.0", "--token",
                        token)
        try:
            server.host = "127.0.0.1"
            right = {"Authorization": f"Bearer {token}"}
            for method, path, body in (
                    ("GET", "/v1/models", None), ("GET", "/metrics", None),
                    ("POST", "/v1/completions", {"prompt": "a"}),
                    ("POST", "/v1/attention", {"tokens": [1, 2]})):
                for wrong in ({}, {"Authorization": "Bearer " + token[:-1]},
                              {"Authorization": "Bearer " + token + "x"},
                              {"Authorization": token}):
                    status = server.ask(method, path, body, wrong)[0]
                    self.assertEqual(status, 401, wrong)
                self.assertEqual(server.ask(method, path, body, right)[0],
                                 200)
            for path in ("/", "/health"):
                self.assertEqual(server.ask("GET", path)[0], 200)
        finally:
            self.assertEqual(server.stop()[0], 0)


if __name__ == "__main__":
    PROGRAM = serve_support.program_of(sys.argv)
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
