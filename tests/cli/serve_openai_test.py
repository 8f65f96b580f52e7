"""serve_openai_test.py PROGRAM: OpenAI's own client talks to `reformer serve`.

Skipped where Python has no package `openai`."""
import sys
import time
import unittest

import serve_support

try:
    import openai
except ImportError:
    serve_support.skip("Python has no package openai; tools/setup openai "
                       "installs it")

PROGRAM = None  # set below
TOKEN = "sixteen-letters-and-more"


class ClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = serve_support.TextServer(
            PROGRAM, "--batch", 2, "--queue", 2, "--context", 3000, "--token",
            TOKEN)
        cls.client = cls.client_with(TOKEN)

    @classmethod
    def client_with(cls, token):
        return openai.OpenAI(
            base_url=f"http://{cls.server.host}:{cls.server.port}/v1",
            api_key=token, max_retries=0)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.close()

    def complete(self, **body):
        return self.client.completions.create(
            **{"model": "text", "prompt": "ab", "seed": 1, **body})

    def test_lists_the_model(self):
        self.assertEqual([model.id for model in self.client.models.list()],
                         ["text"])

    def test_completes(self):
        answer = self.complete(max_tokens=20, n=2, logprobs=2, top_p=0.9,
                               temperature=0.7, stop=["never to be seen"])
        self.assertEqual(len(answer.choices), 2)
        self.assertEqual(answer.choices[0].finish_reason, "length")
        self.assertEqual(len(answer.choices[0].logprobs.tokens), 20)
        self.assertEqual(answer.usage.completion_tokens, 40)

    def test_streams_the_same_text(self):
        whole = self.complete(max_tokens=40)
        pieces = list(self.complete(max_tokens=40, stream=True,
                                    stream_options={"include_usage": True}))
        self.assertEqual("".join(piece.choices[0].text for piece in pieces
                                 if piece.choices), whole.choices[0].text)
        self.assertEqual(pieces[-1].usage.completion_tokens, 40)

    def test_takes_what_is_ours_beside_the_rest(self):
        self.complete(extra_body={"rounds": 1, "top_k": 5})

    def test_faults_are_the_clients_own_exceptions(self):
        with self.assertRaises(openai.BadRequestError) as raised:
            self.complete(max_tokens=5000)
        self.assertIn("max_tokens", str(raised.exception))
        with self.assertRaises(openai.NotFoundError):
            self.complete(model="another")
        with self.client_with("another-token-of-16") as other:
            with self.assertRaises(openai.AuthenticationError):
                other.models.list()
        with self.assertRaises(openai.NotFoundError) as raised:
            self.client.chat.completions.create(
                model="text", messages=[{"role": "user", "content": "ab"}])
        self.assertIn("does not chat", str(raised.exception))

    def test_a_full_queue_is_its_rate_limit(self):
        streams = [self.complete(max_tokens=2900, stream=True)
                   for _ in range(4)]
        with self.assertRaises(openai.RateLimitError):
            self.complete()
        for stream in streams:
            stream.close()
        headers = {"Authorization": f"Bearer {TOKEN}"}
        while b"reformer_texts_running 0\n" not in self.server.ask(
                "GET", "/metrics", None, headers)[2]:
            time.sleep(0.02)


if __name__ == "__main__":
    PROGRAM = serve_support.program_of(sys.argv)
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
