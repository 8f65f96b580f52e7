"""serve_browser_test.py PROGRAM [--pictures DIR] [--run DIR]: the page of
`reformer serve` in a real browser.

Pictures are kept in DIR where one is named. A run of one's own is only looked
at: its picture is the README's."""
import argparse
import pathlib
import sys
import tempfile
import unittest

import serve_support
import webdriver
from serve_support import Server

PROGRAM = None  # set below
PICTURES = None
RUN = None
FOLDER = None
BROWSER = None


def setUpModule():
    global FOLDER, BROWSER, PICTURES
    FOLDER = tempfile.TemporaryDirectory()
    PICTURES = PICTURES or pathlib.Path(FOLDER.name) / "pictures"
    BROWSER = webdriver.Browser()


def tearDownModule():
    BROWSER.close()
    FOLDER.cleanup()


class PageTest(unittest.TestCase):
    """One server a class; the page is opened anew for each test."""

    arguments = ()

    @classmethod
    def run_folder(cls):
        raise NotImplementedError

    @classmethod
    def setUpClass(cls):
        cls.server = Server(PROGRAM, cls.run_folder(), *cls.arguments)
        cls.address = f"http://{cls.server.host}:{cls.server.port}/"

    @classmethod
    def tearDownClass(cls):
        status, error = cls.server.stop()
        assert status == 0, error

    def setUp(self):
        BROWSER.resize(1280, 900)
        BROWSER.prefer("light")
        BROWSER.open(self.address)
        BROWSER.faults()
        BROWSER.until("!document.getElementById('main').hidden")

    def tearDown(self):
        self.assertEqual(BROWSER.faults(), [])

    def tokens(self):
        return BROWSER.run("return tokens.map((token) => token.id)")

    def set(self, control, value):
        BROWSER.run(
            "const e = document.getElementById(arguments[0]);"
            "e.value = arguments[1];"
            "e.dispatchEvent(new Event('input', {bubbles: true}));"
            "e.dispatchEvent(new Event('change', {bubbles: true}));",
            control, value)

    def generate(self, prompt="abcabcab", n=120):
        BROWSER.run("document.getElementById('prompt').value = ''")
        BROWSER.type("#prompt", prompt)
        self.set("max", n)
        BROWSER.click("#go")
        BROWSER.until("!running && tokens.length === arguments[0]",
                      len(prompt.encode()) + n)


class TextTest(PageTest):
    # So long that no text ends before it is stopped.
    arguments = ("--context", 300000)

    @classmethod
    def run_folder(cls):
        return serve_support.train_text(PROGRAM, FOLDER.name)

    def test_loads_little_and_nothing_of_others(self):
        loaded = BROWSER.run(
            "return performance.getEntriesByType('resource')"
            ".concat(performance.getEntriesByType('navigation'))"
            ".map((e) => [e.name, e.decodedBodySize])")
        # The page, its style, seven scripts, and /v1/models.
        self.assertEqual(len(loaded), 10, loaded)
        for name, _ in loaded:
            self.assertTrue(name.startswith(self.address), name)
        self.assertLess(sum(size for _, size in loaded), 60000)
        self.assertEqual(BROWSER.text("#name"), "text")
        self.assertIn("2 layers, lsh attention", BROWSER.text("#about"))
        self.assertEqual(BROWSER.run(  # lines of settings
            "return new Set([...document.querySelectorAll('#settings label')]"
            ".map((e) => e.offsetTop + e.offsetHeight / 2)).size"), 1)

    def test_what_is_typed_goes_on_as_the_interface_says(self):
        self.set("seed", 5)
        self.generate("héllo", 60)
        expected = self.server.complete(
            prompt="héllo", max_tokens=60, seed=5, temperature=0.8,
            logprobs=0)["choices"][0]["logprobs"]["token_ids"]
        self.assertEqual(self.tokens(), list("héllo".encode()) + expected)
        self.assertEqual(BROWSER.run(
            "return arguments[0].map((name) => readable({name}))",
            ["\n", " ", "\x07", "a", r"bytes:\xC3"]),
            ["↵", "␣", r"\x07", "a", r"\xC3"])
        self.assertRegex(BROWSER.text("#status"),
                         r"60 tokens, [\d,]+ a second; the first after")
        self.assertTrue(BROWSER.text("#text").startswith("héllo"))
        self.assertGreater(BROWSER.run(
            "return document.querySelectorAll('#text .p4').length"), 10)
        BROWSER.picture(PICTURES / "text.png")

    def test_a_text_stops_when_told_to(self):
        BROWSER.type("#prompt", "ab")
        self.set("max", 299000)
        BROWSER.click("#go")
        BROWSER.until("tokens.length > 12")
        self.assertTrue(BROWSER.run("return $('go').disabled"))
        BROWSER.click("#stop")
        BROWSER.until("!running")
        self.assertLess(BROWSER.run("return tokens.length"), 299000)
        self.assertIn("stopped", BROWSER.text("#status"))
        self.generate("ab", 5)  # and another one begins

    def test_a_click_shows_what_a_byte_attended_to(self):
        self.generate()
        before = BROWSER.run("return $('map').toDataURL()")
        BROWSER.click("#t90")
        BROWSER.until("attention !== null")
        told = self.server.ask("POST", "/v1/attention", {
            "tokens": self.tokens(), "position": 90})[2]
        lit = BROWSER.run(
            "return [...document.querySelectorAll('#text i')]"
            ".filter((e) => /a[1-5]/.test(e.className))"
            ".map((e) => Number(e.id.slice(1)))")
        self.assertEqual(lit, sorted(
            place for place, _, _ in told["attended"] if place >= 0))
        self.assertNotEqual(BROWSER.run("return $('map').toDataURL()"), before)
        self.assertIn("mean of 4 heads", BROWSER.text("#summary"))
        self.assertIn("place 90", BROWSER.text("#detail"))
        self.assertEqual(BROWSER.run(
            "return document.querySelectorAll('#detail tr').length"), 5)
        BROWSER.picture(PICTURES / "attention.png")

    def test_layer_head_and_round_change_the_picture(self):
        self.generate()
        BROWSER.click("#t100")
        BROWSER.until("attention !== null")
        pictures = [BROWSER.run("return $('map').toDataURL()")]
        for control, value in (("layer", "1"), ("head", "0"), ("round", "1")):
            seen = BROWSER.run("return asked")
            self.set(control, value)
            BROWSER.until("asked > arguments[0] && attention !== null", seen)
            BROWSER.until("$('map').toDataURL() !== arguments[0]",
                          pictures[-1])
            pictures.append(BROWSER.run("return $('map').toDataURL()"))
        BROWSER.click("#buckets")
        BROWSER.until("attention.buckets")
        colours = BROWSER.run(
            "return [...document.querySelectorAll('#text i')].slice(0, 100)"
            ".map((e) => e.style.backgroundColor)")
        buckets = BROWSER.run("return attention.buckets")
        for i in range(100):
            for j in range(i):
                self.assertEqual(colours[i] == colours[j],
                                 buckets[i + 1] == buckets[j + 1])
        self.assertEqual(BROWSER.run(  # of letters: as on no colour
            "return new Set([...document.querySelectorAll('#text i:not(.hex)')]"
            ".slice(20).map((e) => getComputedStyle(e).color)).size"), 1)
        BROWSER.picture(PICTURES / "buckets.png")

    def test_works_without_a_mouse(self):
        BROWSER.type("#prompt", "abcabcab")
        BROWSER.press("Tab")
        self.assertEqual(BROWSER.run("return document.activeElement.id"),
                         "max")
        BROWSER.run("$('prompt').focus()")
        BROWSER.ask("POST", "/actions", {"actions": [
            {"type": "key", "id": "keyboard", "actions": [
                {"type": "keyDown", "value": webdriver.KEYS["Control"]},
                {"type": "keyDown", "value": webdriver.KEYS["Enter"]},
                {"type": "keyUp", "value": webdriver.KEYS["Enter"]},
                {"type": "keyUp", "value": webdriver.KEYS["Control"]}]}]})
        BROWSER.until("!running && tokens.length === 8 + 256")
        BROWSER.run("$('text').focus()")
        BROWSER.press("End", "Left", "Left", "Enter")
        BROWSER.until("attention !== null")
        self.assertEqual(BROWSER.run("return chosen"), 8 + 256 - 3)
        self.assertEqual(BROWSER.run(
            "return $('text').getAttribute('aria-activedescendant')"),
            f"t{8 + 256 - 3}")
        BROWSER.press("Escape")
        self.assertIsNone(BROWSER.run("return attention"))

    def test_a_fault_is_said(self):
        BROWSER.type("#prompt", "ab")
        self.set("max", 299999)
        BROWSER.click("#go")
        BROWSER.until("!$('fault').hidden")
        self.assertIn("300000 tokens here", BROWSER.text("#fault"))
        BROWSER.picture(PICTURES / "fault.png")
        self.assertEqual(len(BROWSER.faults()), 1)  # the 400 itself

    def test_of_a_long_text_a_part_is_shown_and_the_map_leads_on(self):
        text = "The quick brown fox. " * 250
        BROWSER.run("$('prompt').value = arguments[0]", text)
        self.set("max", 20)
        BROWSER.click("#go")
        BROWSER.until("!running && tokens.length > arguments[0]", len(text))
        self.assertLessEqual(BROWSER.run(
            "return document.querySelectorAll('#text i').length"), 3000)
        self.assertGreater(BROWSER.run("return from"), 1000)
        BROWSER.click("#map")  # the middle of it
        self.assertLess(BROWSER.run("return from"), 2000)
        self.assertIn("of 5,270", BROWSER.text("#range"))
        BROWSER.click("#later")
        self.assertGreater(BROWSER.run("return from"), 2000)
        BROWSER.click("#earlier")
        self.assertLess(BROWSER.run("return from"), 2000)
        BROWSER.picture(PICTURES / "long.png")

    def test_fits_a_phone_and_the_dark(self):
        self.generate()
        BROWSER.click("#t90")
        BROWSER.until("attention !== null")
        light = BROWSER.run(
            "return getComputedStyle(document.body).backgroundColor")
        map_light = BROWSER.run("return $('map').toDataURL()")
        BROWSER.prefer("dark")
        BROWSER.until("$('map').toDataURL() !== arguments[0]", map_light)
        dark = BROWSER.run(
            "return getComputedStyle(document.body).backgroundColor")
        self.assertNotEqual(light, dark)
        BROWSER.picture(PICTURES / "dark.png")
        BROWSER.resize(390, 844, phone=True)
        self.assertLessEqual(BROWSER.run(
            "return document.documentElement.scrollWidth"), 390)
        BROWSER.picture(PICTURES / "phone.png")


    def test_what_a_byte_was_stands_there_while_one_points_at_it(self):
        self.generate()
        BROWSER.click("#t90")
        BROWSER.until("attention !== null")
        for i in (100, 95):
            BROWSER.point_at(f"#t{i}")
            BROWSER.until("$('detail').textContent.includes(arguments[0])",
                          f"place {i}")
        self.assertEqual(BROWSER.run(
            "return document.querySelectorAll('#detail tr').length"), 5)
        self.assertEqual(BROWSER.run("return chosen"), 90)
        BROWSER.point_at("#name")
        BROWSER.until("$('detail').textContent.includes('place 90')")

    def test_the_slider_says_how_many_rounds_there_are(self):
        def made(rounds):
            self.set("rounds", rounds)
            self.set("seed", 2)
            self.generate("ab" * 40, 30)
            return self.tokens()[80:]

        for rounds in (8, 1, 2):
            self.assertEqual(made(rounds), self.server.complete(
                prompt="ab" * 40, max_tokens=30, seed=2, rounds=rounds,
                temperature=0.8, logprobs=0)
                ["choices"][0]["logprobs"]["token_ids"])
        self.set("rounds", 5)
        self.assertEqual(BROWSER.run(
            "return [...$('round').options].map((e) => e.textContent)"),
            ["all", "1", "2", "3", "4", "5"])
        seen = BROWSER.run("return asked")
        BROWSER.click("#t90")
        BROWSER.until("asked > arguments[0] && attention !== null", seen)
        told = self.server.ask("POST", "/v1/attention", {
            "tokens": self.tokens(), "position": 90, "rounds": 5})[2]
        self.assertEqual(
            BROWSER.run("return [...attention.weights]"),
            [[place, weight] for place, weight, _ in told["attended"]])

    def test_works_by_touch(self):
        BROWSER.resize(390, 844, phone=True)
        self.generate()
        BROWSER.touch("#t90")
        BROWSER.until("attention !== null")
        self.assertEqual(BROWSER.run("return chosen"), 90)


class ImportedTest(PageTest):
    """A model as `reformer import` makes them of Hugging Face's: two tokens
    before the bytes, and their attention."""

    arguments = ("--context", 300)

    @classmethod
    def run_folder(cls):
        return serve_support.train_text(
            PROGRAM, FOLDER.name, "imported", "task.byte_offset=2",
            "model.vocabulary=258", "model.successor_fraction=0",
            "model.attention=local_separate_qk,lsh_huggingface",
            "model.short_convolution=0", "lsh.hashed_heads=all",
            "lsh.more_rounds=union", "model.bucket_factors=4",
            "lsh.local_window=0")

    def test_bytes_stand_behind_tokens_that_are_none(self):
        self.set("seed", 5)
        self.generate("hé\n", 90)
        given = self.server.ask("POST", "/v1/tokens", {"prompt": "hé\n"})[2]
        expected = self.server.complete(
            prompt=given["tokens"], max_tokens=90, seed=5, temperature=0.8,
            logprobs=0)["choices"][0]["logprobs"]["token_ids"]
        self.assertEqual(self.tokens(), given["tokens"] + expected)
        self.assertTrue(BROWSER.text("#text").startswith("hé↵\n"))
        BROWSER.click("#t0")
        self.assertIn("h · byte 104 (68)", BROWSER.text("#detail"))
        self.assertEqual(BROWSER.run(
            "return faces([0, 1, 2, 34, 0xC5, 0xAB, 0xC5, 129]"
            ".map((id) => ({id, name: id === 34 ? ' ' : ''})))"
            ".map((face) => face.text)"),
            ["[0]", "[1]", "00", " ", "é", "", "c3", "7f"])

    def test_a_click_shows_what_their_attention_saw(self):
        self.generate("abcabcab", 60)
        self.set("layer", 1)
        BROWSER.run("$('t50').click()")  # which may show nothing
        BROWSER.until("attention !== null")
        self.assertIn("places; ", BROWSER.text("#summary"))
        told = self.server.ask("POST", "/v1/attention", {
            "tokens": self.tokens(), "position": 50, "layer": 1})[2]
        self.assertEqual(
            BROWSER.run("return [...attention.weights]"),
            [[place, weight] for place, weight, _ in told["attended"]])


class PiecesTest(PageTest):
    @classmethod
    def run_folder(cls):
        folder = pathlib.Path(FOLDER.name)
        words = folder / "words"
        words.write_text(
            "the quick brown fox jumps over the lazy dog and away\n" * 300)
        serve_support.check([PROGRAM, "tokenizer", "train", words, "--out",
                             folder / "words.model", "--vocabulary", "300"])
        return serve_support.train_text(
            PROGRAM, FOLDER.name, "pieces", f"task.data={words}",
            f"task.tokenizer={folder / 'words.model'}", "model.vocabulary=300")

    def test_pieces_are_text_and_rare_characters_their_bytes(self):
        prompt = "the quick ł fox"
        BROWSER.type("#prompt", prompt)
        self.set("max", 40)
        BROWSER.click("#go")
        BROWSER.until("!running && tokens.length === given + 40")
        given = self.server.ask("POST", "/v1/tokens", {"prompt": prompt})[2]
        self.assertEqual(self.tokens()[:len(given["tokens"])],
                         given["tokens"])
        self.assertIn(r"bytes:\xC5", given["names"])  # of the rare one
        self.assertTrue(BROWSER.text("#text").startswith(prompt))
        self.assertNotIn("bytes:", BROWSER.text("#text"))
        self.assertLess(len(given["tokens"]), len(prompt.encode()))
        BROWSER.click(f"#t{len(given['tokens']) + 10}")
        BROWSER.until("attention !== null")
        self.assertRegex(BROWSER.text("#detail"), r" · token \d+ · place ")
        self.assertEqual(BROWSER.run(
            r"return faces(['a', 'bytes:\\xC5', 'bytes:\\x82\\x62', 'bytes:\\xFF',"
            r" 'c', '\x07'].map((name) => ({id: 9, name})))"
            r".map((face) => face.text)"), ["a", "łb", "", "ff", "c", "07"])
        BROWSER.picture(PICTURES / "pieces.png")


class NumbersTest(PageTest):
    @classmethod
    def run_folder(cls):
        out = pathlib.Path(FOLDER.name) / "numbers"
        serve_support.train(PROGRAM, "duplication-small", out)
        return out

    def test_a_word_to_repeat_is_there_already(self):
        prompt = BROWSER.run("return $('prompt').value")
        numbers = [int(word) for word in prompt.split()]
        self.assertEqual(len(numbers), 33)
        self.assertEqual((numbers[0], numbers[-1]), (0, 0))
        BROWSER.click("#go")
        BROWSER.until("!running && tokens.length === 33 + 31")
        expected = self.server.complete(
            prompt=numbers, max_tokens=31, temperature=0, logprobs=0)
        self.assertEqual(self.tokens(), numbers + expected["choices"][0]
                         ["logprobs"]["token_ids"])
        self.assertEqual(
            [int(word) for word in BROWSER.text("#text").split()],
            self.tokens())
        BROWSER.click("#t40")
        BROWSER.until("attention !== null")
        BROWSER.picture(PICTURES / "numbers.png")


class TokenTest(PageTest):
    token = "sixteen-letters-and-more"
    arguments = ("--token", token)

    @classmethod
    def run_folder(cls):
        out = pathlib.Path(FOLDER.name) / "text"
        return out if out.exists() else serve_support.train_text(
            PROGRAM, FOLDER.name)

    def setUp(self):
        BROWSER.open(self.address)
        BROWSER.run("sessionStorage.clear()")

    def test_asks_for_the_token(self):
        BROWSER.open(self.address)
        BROWSER.until("!document.getElementById('token-form').hidden")
        BROWSER.type("#token", self.token + "\n")
        BROWSER.until("!document.getElementById('main').hidden")
        self.generate("ab", 10)
        BROWSER.faults()  # the 401 of the first try

    def test_takes_it_from_the_address_and_removes_it_there(self):
        BROWSER.open("about:blank")
        BROWSER.open(self.address + "#token=" + self.token)
        BROWSER.until("!document.getElementById('main').hidden")
        self.assertEqual(BROWSER.run("return location.href"), self.address)
        BROWSER.faults()


class ImageTest(PageTest):
    @classmethod
    def run_folder(cls):
        import struct
        import zlib
        folder = pathlib.Path(FOLDER.name) / "images"
        folder.mkdir()
        for i in range(12):
            rows = b"".join(b"\0" + bytes([i * 20, y * 30, 128] * 8)
                            for y in range(8))

            def chunk(name, data):
                return (struct.pack(">I", len(data)) + name + data
                        + struct.pack(">I", zlib.crc32(name + data)))
            (folder / f"{i}.png").write_bytes(
                b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(
                    ">IIBBBBB", 8, 8, 8, 2, 0, 0, 0))
                + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
        out = pathlib.Path(FOLDER.name) / "image"
        serve_support.train(PROGRAM, "images-small", out,
                            f"task.data={folder}", "task.image_size=8",
                            "train.length=192", "model.axial_shape=8,8,3",
                            "model.axial_dims=6,6,4")
        return out

    def test_an_image_is_painted_while_it_fills(self):
        # What the server sends, a quarter at a time.
        BROWSER.run("""
            window.painted = [];
            const paint = drawImage;
            drawImage = () => { painted.push(tokens.length); paint(); };
            const really = ask;
            ask = async (path, body, signal) => {
              const answer = await really(path, body, signal);
              if (path !== 'v1/completions') return answer;
              const bytes = new Uint8Array(await answer.arrayBuffer());
              const quarter = Math.ceil(bytes.length / 4);
              let at = 0;
              return {body: new ReadableStream({pull: async (to) => {
                if (at >= bytes.length) return to.close();
                await new Promise((go) => setTimeout(go, 150));
                to.enqueue(bytes.slice(at, at += quarter));
              }}, {highWaterMark: 0})};
            };""")
        BROWSER.click("#go")
        BROWSER.until("!running && tokens.length === 192")
        painted = BROWSER.run("return painted")
        self.assertEqual((painted[0], painted[-1]), (96, 192))
        self.assertEqual(painted, sorted(painted))
        self.assertGreaterEqual(len(set(painted)), 4, painted)

    def test_half_an_image_fills_and_a_pixel_shows_where_it_looked(self):
        self.assertEqual(len(self.tokens()), 96)
        self.assertEqual(BROWSER.run(
            "return document.querySelector('output[for=given]').value"), "50%")
        half = BROWSER.run("return $('image').toDataURL()")
        BROWSER.click("#go")
        BROWSER.until("!running && tokens.length === 192")
        whole = BROWSER.run("return $('image').toDataURL()")
        self.assertNotEqual(half, whole)
        BROWSER.click("#image")  # its middle
        BROWSER.until("attention !== null")
        chosen = BROWSER.run("return chosen")
        self.assertIn(chosen, [(y * 8 + x) * 3 for y in (3, 4)
                               for x in (3, 4)])
        self.assertNotEqual(BROWSER.run("return $('image').toDataURL()"),
                            whole)
        BROWSER.run("$('image').focus()")
        BROWSER.press("Right", "Down", "Enter")
        BROWSER.until("chosen === arguments[0]", chosen + (1 + 8) * 3)
        BROWSER.picture(PICTURES / "image.png")


class TranslationTest(PageTest):
    @classmethod
    def run_folder(cls):
        return serve_support.train_translation(PROGRAM, FOLDER.name)

    def test_sentences_are_translated(self):
        self.assertTrue(BROWSER.run("return $('right').hidden"))
        BROWSER.type("#prompt", "baba dama\nfafe")
        BROWSER.click("#go")
        BROWSER.until("!running && $('translation').textContent")
        expected = self.server.complete(prompt=["baba dama", "fafe"])
        self.assertEqual(BROWSER.text("#translation"), "\n".join(
            choice["text"] for choice in expected["choices"]))
        nothing = not any(choice["text"] for choice in expected["choices"])
        self.assertEqual("with nothing" in BROWSER.text("#status"), nothing)
        BROWSER.picture(PICTURES / "translation.png")


class OwnRun(PageTest):
    """A picture of a trained model's page."""

    @classmethod
    def run_folder(cls):
        return RUN

    def test_picture(self):
        BROWSER.resize(1100, 800)
        self.set("seed", 3)
        self.generate("He turned to the window and ", 220)
        BROWSER.click("#t160")
        BROWSER.until("attention !== null")
        BROWSER.run("scrollTo(0, 0); detail(chosen)")
        BROWSER.picture(PICTURES / "own.png")


def load_tests(loader, tests, pattern):
    chosen = [OwnRun] if RUN else [TextTest, ImportedTest, PiecesTest,
                                   NumbersTest, TokenTest, ImageTest,
                                   TranslationTest]
    return unittest.TestSuite(
        loader.loadTestsFromTestCase(case) for case in chosen)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--pictures", type=pathlib.Path)
    parser.add_argument("--run", type=pathlib.Path)
    options, rest = parser.parse_known_args()
    if reason := webdriver.missing():
        serve_support.skip(reason)
    PROGRAM = serve_support.program_of([None, options.program])
    PICTURES, RUN = options.pictures, options.run
    unittest.main(argv=sys.argv[:1] + rest)
