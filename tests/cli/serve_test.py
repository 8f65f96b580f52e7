"""serve_test.py PROGRAM: what `reformer serve` answers over HTTP."""
import json
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


class InterfaceTest(unittest.TestCase):
    def test_says_that_it_is_there_and_what_it_serves(self):
        self.assertEqual(SERVER.ask("GET", "/health")[2], {"status": "ok"})
        answer = SERVER.ask("GET", "/v1/models")[2]
        self.assertEqual(answer["object"], "list")
        model = answer["data"][0]
        self.assertEqual(model["id"], "text")
        self.assertEqual(model["object"], "model")
        about = model["reformer"]
        self.assertEqual(about["kind"], "bytes")
        self.assertEqual(about["layers"], ["lsh", "lsh"])
        self.assertEqual(about["context"], 3000)

    def test_a_completion_is_what_generate_writes(self):
        answer = SERVER.complete(prompt="ab", max_tokens=40, seed=7)
        text = SERVER.generated("--prompt", "ab", "--length", 40, "--seed", 7)
        self.assertEqual(answer["choices"][0]["text"],
                         text[:-1].decode("utf-8", "replace"))
        self.assertEqual(answer["choices"][0]["finish_reason"], "length")
        self.assertEqual(answer["usage"], {
            "prompt_tokens": 2, "completion_tokens": 40, "total_tokens": 42})
        self.assertEqual(answer["object"], "text_completion")
        self.assertEqual(answer["model"], "text")

    def test_a_stream_is_the_same_text_in_pieces(self):
        body = dict(prompt="ab", max_tokens=40, seed=7)
        whole = SERVER.complete(**body)["choices"][0]
        events = list(SERVER.stream(**body))
        pieces = [event["choices"][0] for event in events]
        self.assertEqual("".join(piece["text"] for piece in pieces),
                         whole["text"])
        self.assertEqual(len(pieces), 40)
        self.assertEqual([piece["finish_reason"] for piece in pieces],
                         [None] * 39 + ["length"])
        self.assertEqual(len({event["id"] for event in events}), 1)

    def test_a_stream_ends_with_usage_where_that_is_asked_for(self):
        events = list(SERVER.stream(prompt="abc", max_tokens=5,
                                    stream_options={"include_usage": True}))
        self.assertEqual(events[-1]["choices"], [])
        self.assertEqual(events[-1]["usage"]["total_tokens"], 8)

    def test_a_prompt_may_be_tokens(self):
        text = SERVER.complete(prompt="ab", seed=1)["choices"]
        tokens = SERVER.complete(prompt=[97, 98], seed=1)["choices"]
        self.assertEqual(text, tokens)

    def test_several_prompts_and_several_texts_of_each(self):
        answer = SERVER.complete(prompt=["ab", "c"], n=2, seed=3,
                                 max_tokens=20)
        choices = answer["choices"]
        self.assertEqual([choice["index"] for choice in choices],
                         [0, 1, 2, 3])
        alone = SERVER.complete(prompt="c", seed=3, max_tokens=20)
        self.assertEqual(choices[2]["text"], alone["choices"][0]["text"])
        self.assertNotEqual(choices[2]["text"], choices[3]["text"])
        self.assertEqual(answer["usage"]["prompt_tokens"], 3)
        self.assertEqual(answer["usage"]["completion_tokens"], 80)

    def test_the_same_seed_is_the_same_text_and_no_seed_another(self):
        texts = [SERVER.complete(prompt="ab", max_tokens=30, **seed)
                 ["choices"][0]["text"]
                 for seed in ({"seed": 5}, {"seed": 5}, {}, {})]
        self.assertEqual(texts[0], texts[1])
        self.assertEqual(len(set(texts)), 3)

    def test_a_stop_string_ends_the_text_before_it(self):
        whole = SERVER.complete(prompt="ab", max_tokens=60, seed=2,
                                logprobs=0)["choices"][0]
        tokens = whole["logprobs"]["tokens"]
        # A letter after another: of a cut character nothing would be written.
        stop = next(tokens[i] for i in range(10, 60)
                    if len(tokens[i - 1]) == len(tokens[i]) == 1
                    and tokens[i].isprintable() and tokens[i] not in tokens[:i])
        at = whole["text"].index(stop)
        choice = SERVER.complete(prompt="ab", max_tokens=60, seed=2,
                                 stop=stop)["choices"][0]
        self.assertEqual(choice["text"], whole["text"][:at])
        self.assertEqual(choice["finish_reason"], "stop")
        both = SERVER.complete(prompt="ab", max_tokens=60, seed=2,
                               stop=["never to be seen", stop])["choices"][0]
        self.assertEqual(both["text"], choice["text"])

    def test_log_probabilities_are_those_of_the_model(self):
        choice = SERVER.complete(prompt="ab", max_tokens=9, temperature=0,
                                 logprobs=4)["choices"][0]
        told = choice["logprobs"]
        for key in ("tokens", "token_logprobs", "top_logprobs",
                    "text_offset", "token_ids"):
            self.assertEqual(len(told[key]), 9, key)
        for token, logprob, top in zip(told["tokens"],
                                       told["token_logprobs"],
                                       told["top_logprobs"]):
            self.assertEqual(len(top), 4)
            self.assertEqual(max(top, key=top.get), token)
            self.assertAlmostEqual(top[token], logprob)
            self.assertLess(logprob, 0)
        self.assertIsNone(SERVER.complete(prompt="ab")["choices"][0]
                          ["logprobs"])

    def test_tokens_of_a_prompt_have_names(self):
        status, _, answer = SERVER.ask("POST", "/v1/tokens",
                                       {"prompt": "aé"})
        self.assertEqual(status, 200)
        self.assertEqual(answer["tokens"], [97, 0xC3, 0xA9])
        self.assertEqual(answer["names"],
                         ["a", r"bytes:\xC3", r"bytes:\xA9"])

    def test_rounds_may_differ_from_the_models(self):
        texts = {rounds: SERVER.complete(
            prompt="ab" * 40, max_tokens=30, seed=2, rounds=rounds)
            ["choices"][0]["text"] for rounds in (1, 2, 8)}
        expected = SERVER.generated("--prompt", "ab" * 40, "--length", 30,
                                    "--seed", 2, "--rounds", 8)
        self.assertEqual(texts[8], expected[:-1].decode("utf-8", "replace"))

    def test_metrics_count_what_happened(self):
        # An answer is there a moment before its text is counted.
        until(lambda: SERVER.metrics()["reformer_texts_running"] == 0)
        before = SERVER.metrics()
        SERVER.complete(prompt="abcd", max_tokens=6)
        until(lambda: SERVER.metrics()["reformer_texts_running"] == 0)
        after = SERVER.metrics()
        rise = {name: after[name] - before.get(name, 0) for name in after}
        self.assertEqual(rise["reformer_tokens_total"], 6)
        self.assertEqual(rise["reformer_prompt_tokens_total"], 4)
        self.assertEqual(rise["reformer_texts_total"], 1)
        self.assertEqual(rise["reformer_steps_total"], 5)
        self.assertEqual(after["reformer_texts_running"], 0)
        self.assertGreater(after["reformer_cache_bytes_limit"], 0)
        self.assertGreater(after['reformer_responses_total{status="200"}'], 0)


class AttentionTest(unittest.TestCase):
    TOKENS = [(7 * i * i + i) % 256 for i in range(60)]

    def ask(self, **body):
        return SERVER.ask("POST", "/v1/attention",
                          {"tokens": self.TOKENS, **body})

    def test_a_heads_weights_sum_to_one_and_lie_before_the_token(self):
        for head in (0, 1):
            status, _, answer = self.ask(position=50, layer=1, head=head)
            self.assertEqual(status, 200, answer)
            places = [place for place, _, _ in answer["attended"]]
            weights = [weight for _, weight, _ in answer["attended"]]
            self.assertAlmostEqual(sum(weights), 1, places=3)
            self.assertEqual(weights, sorted(weights, reverse=True))
            self.assertEqual(len(places), len(set(places)))
            self.assertTrue(all(-1 <= place < 50 for place in places))

    def test_all_layers_and_heads_are_their_mean(self):
        mean = {}
        for layer in (0, 1):
            for head in (0, 1):
                answer = self.ask(position=40, layer=layer, head=head)[2]
                for place, weight, _ in answer["attended"]:
                    mean[place] = mean.get(place, 0) + weight / 4
        answer = self.ask(position=40)[2]
        self.assertEqual(answer["heads"], 4)
        for place, weight, _ in answer["attended"]:
            self.assertAlmostEqual(weight, mean[place], places=5)

    def test_what_comes_later_changes_nothing(self):
        # 3 rounds: another text than the one that is kept.
        whole = self.ask(position=30, rounds=3)[2]
        cut = SERVER.ask("POST", "/v1/attention", {
            "tokens": self.TOKENS[:31], "position": 30, "rounds": 4})[2]
        self.assertNotEqual(whole, None)
        again = SERVER.ask("POST", "/v1/attention", {
            "tokens": self.TOKENS[:31], "position": 30, "rounds": 3})[2]
        self.assertEqual(again["position"], cut["position"])
        self.assertEqual(len(again["attended"]), len(whole["attended"]))
        for one, other in zip(again["attended"], whole["attended"]):
            self.assertAlmostEqual(one[1], other[1], places=4)

    def test_a_round_shows_what_it_found_in_its_bucket(self):
        answer = self.ask(position=55, layer=0, head=0, round=0,
                          buckets=True)[2]
        buckets = answer["buckets"]
        self.assertEqual(len(buckets), 56)
        self.assertTrue(all(0 <= b < answer["n_buckets"] for b in buckets))
        for place, _, rounds in answer["attended"]:
            self.assertTrue(rounds & 1)
            # The place's own key, or that of the one before it (successor
            # values), fell into the same bucket.
            self.assertIn(buckets[55], (buckets[place + 1], buckets[place]))

    def test_refuses_what_is_not_there(self):
        for body, word in (({"layer": 2}, "layer"), ({"head": 9}, "head"),
                           ({"round": 70}, "round"),
                           ({"buckets": True}, "buckets"),
                           ({"position": 60}, "position"),
                           ({"tokens": [300]}, "300"),
                           ({"tokens": []}, "tokens")):
            status, _, answer = self.ask(**body)
            self.assertEqual(status, 400)
            self.assertIn(word, answer["error"]["message"])


class TranslationTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_folder = serve_support.train_translation(
            PROGRAM, SERVER.folder.name)
        cls.server = Server(PROGRAM, cls.run_folder)

    @classmethod
    def tearDownClass(cls):
        status, error = cls.server.stop()
        assert status == 0, error

    def test_lines_are_what_translate_writes(self):
        lines = ["baba dama", "fafe", "baba dama fafe gape"]
        expected = subprocess.run(
            [PROGRAM, "translate", self.run_folder, "--threads", "1"],
            input="\n".join(lines).encode(), capture_output=True,
            timeout=60).stdout.decode().split("\n")[:3]
        answer = self.server.complete(prompt=lines)
        self.assertEqual([choice["text"] for choice in answer["choices"]],
                         expected)
        events = list(self.server.stream(prompt=lines[0]))
        self.assertEqual(events[0]["choices"][0]["text"], expected[0])

    def test_usage_counts_tokens_in_one_piece_and_in_events(self):
        lines = ["baba dama", "fafe", "", "baba dama fafe gape"]
        whole = self.server.complete(prompt=lines)
        usage = whole["usage"]
        # Of this toy a word is a token.
        self.assertEqual(usage["prompt_tokens"],
                         sum(len(line.split()) for line in lines))
        self.assertEqual(usage["completion_tokens"], sum(
            len(choice["text"].split()) for choice in whole["choices"]))
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"]
                         + usage["completion_tokens"])
        events = list(self.server.stream(
            prompt=lines, stream_options={"include_usage": True}))
        self.assertEqual(len(events), 5)
        self.assertEqual(events[-1]["choices"], [])
        self.assertEqual(events[-1]["usage"], usage)

    def test_refuses_to_draw(self):
        for key, value in (("temperature", 0.7), ("top_p", 0.9),
                           ("top_k", 3), ("repetition_penalty", 1.1)):
            status, _, answer = self.server.ask(
                "POST", "/v1/completions", {"prompt": "fafe", key: value})
            self.assertEqual(status, 400, key)
            self.assertIn(key, answer["error"]["message"])
            self.assertIn("likeliest", answer["error"]["message"])
        self.server.complete(prompt="fafe", temperature=0, top_p=1, seed=3)

    def test_refuses_what_is_for_texts_that_go_on(self):
        for path, body in (("/v1/completions", {"prompt": "a", "n": 2}),
                           ("/v1/completions", {"prompt": [1, 2]}),
                           ("/v1/attention", {"tokens": [1]}),
                           ("/v1/tokens", {"prompt": "a"})):
            status, _, answer = self.server.ask("POST", path, body)
            self.assertEqual(status, 400, path)
            self.assertIn("message", answer["error"])


class ManyTest(unittest.TestCase):
    def test_texts_together_are_what_each_is_alone(self):
        bodies = [dict(prompt="abcde"[:i], max_tokens=20 + 7 * i, seed=i,
                       temperature=0.8) for i in range(6)]
        alone = [SERVER.complete(**body)["choices"] for body in bodies]
        together = [None] * len(bodies)

        def ask(i):
            together[i] = SERVER.complete(**bodies[i])["choices"]
        threads = [threading.Thread(target=ask, args=(i,))
                   for i in range(len(bodies))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(together, alone)

    def begin_stream(self, **body):
        connection = SERVER.connect()
        connection.request("POST", "/v1/completions", json.dumps(
            {"prompt": "a", "max_tokens": 2900, "stream": True, **body}))
        return connection, connection.getresponse()

    def test_a_full_queue_is_said_and_a_client_that_goes_makes_room(self):
        until(lambda: SERVER.metrics()["reformer_texts_running"] == 0)
        before = SERVER.metrics()
        streams = [self.begin_stream() for _ in range(3)]
        for _, answer in streams:
            self.assertTrue(answer.readline().startswith(b"data: "))
        self.assertEqual(SERVER.metrics()["reformer_texts_running"], 3)
        waiting = [self.begin_stream() for _ in range(4)]
        until(lambda: SERVER.metrics()["reformer_texts_waiting"] == 4)
        status, headers, answer = SERVER.ask("POST", "/v1/completions",
                                             {"prompt": "a"})
        self.assertEqual(status, 429)
        self.assertIn("again", answer["error"]["message"])
        self.assertEqual(headers["Retry-After"], "1")
        for connection, answer in streams + waiting:
            answer.close()
            connection.close()
        until(lambda: SERVER.metrics()["reformer_texts_running"] == 0)
        after = SERVER.metrics()
        self.assertEqual(after["reformer_texts_waiting"], 0)
        self.assertEqual(after["reformer_texts_cancelled_total"]
                         - before["reformer_texts_cancelled_total"], 7)
        SERVER.complete(prompt="a")

    def test_a_client_that_does_not_wait_for_its_answer_makes_room(self):
        with socket.create_connection((SERVER.host, SERVER.port)) as s:
            body = b'{"prompt": "a", "max_tokens": 2900}'
            s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                      b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            until(lambda: SERVER.metrics()["reformer_texts_running"] == 1)
        until(lambda: SERVER.metrics()["reformer_texts_running"] == 0)
        self.assertLess(SERVER.metrics()["reformer_texts_waiting"], 1)


class ProgramTest(unittest.TestCase):
    def test_a_port_that_is_taken_is_named(self):
        failed = subprocess.run(
            [PROGRAM, "serve", SERVER.run, "--port", str(SERVER.port)],
            capture_output=True, timeout=60)
        self.assertEqual(failed.returncode, 1)
        self.assertIn(f"port {SERVER.port}", failed.stderr.decode())

    def test_a_folder_without_a_model_is_named(self):
        failed = subprocess.run([PROGRAM, "serve", SERVER.folder.name],
                                capture_output=True, timeout=60)
        self.assertEqual(failed.returncode, 1)
        self.assertIn(SERVER.folder.name, failed.stderr.decode())

    def test_a_stop_ends_what_is_being_written(self):
        server = Server(PROGRAM, SERVER.run, "--context", 50000)
        connection = server.connect()
        connection.request("POST", "/v1/completions", json.dumps(
            {"prompt": "a", "max_tokens": 49000, "stream": True}))
        answer = connection.getresponse()
        answer.readline()
        self.assertEqual(server.stop()[0], 0)
        self.assertIn(b"is being stopped", answer.read())
        connection.close()

    def test_a_stop_waits_for_no_client(self):
        server = Server(PROGRAM, SERVER.run, "--timeout", 3600, "--context",
                        20000)
        body = json.dumps({"prompt": "a", "max_tokens": 12000, "logprobs": 20,
                           "stream": True}).encode()
        head = b"GET /health HTTP/1.1\r\n"
        silent = [socket.create_connection((server.host, server.port))
                  for _ in range(3)]
        with silent[0], silent[1], silent[2], socket.socket() as reads_nothing:
            silent[0].sendall(b"GE")
            silent[1].sendall(head + b"Host: localh")
            silent[2].sendall(b"POST /v1/completions HTTP/1.1\r\n"
                              b"Content-Length: 100\r\n\r\n{")
            reads_nothing.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reads_nothing.connect((server.host, server.port))
            reads_nothing.sendall(
                b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            # All of it is drawn, more than there is room for between the two.
            until(lambda: server.metrics()["reformer_texts_total"] == 1,
                  seconds=300)
            self.assertEqual(server.stop()[0], 0)

    def test_says_what_it_will_take_of_memory(self):
        server = Server(PROGRAM, SERVER.run, "--batch", 2, "--queue", 5)
        status, error = server.stop()
        self.assertEqual(status, 0)
        self.assertRegex(error, "up to 2 texts at once, 5 more wait; texts of "
                                "up to 64 tokens, .* caches of about .* GiB")


if __name__ == "__main__":
    PROGRAM = serve_support.program_of(sys.argv)
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
