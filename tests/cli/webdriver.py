"""A browser as a person uses it: W3C's WebDriver protocol, spoken to Debian's
chromedriver by Python's own library."""
import base64
import http.client
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the protocol's name for one
KEYS = {"Enter": "\ue007", "Left": "\ue012", "Right": "\ue014",
        "Up": "\ue013", "Down": "\ue015", "Home": "\ue011", "End": "\ue010",
        "Escape": "\ue00c", "Tab": "\ue004", "Control": "\ue009",
        "Null": "\ue000"}


def missing():
    """Why there is no browser here; None: there is one."""
    for program, package in (("chromium", "chromium"),
                             ("chromedriver", "chromium-driver")):
        if not shutil.which(program):
            return f"no {program} (Debian's package {package}); " \
                   "`make test-browser` installs it"
    return None


class Browser:
    def __init__(self, width=1280, height=900):
        self.profile = tempfile.TemporaryDirectory()
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL)
        port = None
        while port is None:
            line = self.driver.stdout.readline().decode()
            assert line, "chromedriver ended before it began"
            found = re.search(r"started successfully on port (\d+)", line)
            port = found and int(found[1])
        self.connection = http.client.HTTPConnection("127.0.0.1", port,
                                                     timeout=300)
        self.session = None
        answer = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": {
            "goog:loggingPrefs": {"browser": "ALL"},
            "goog:chromeOptions": {
                "binary": shutil.which("chromium"),
                "args": ["--headless=new", "--no-sandbox", "--disable-gpu",
                         "--disable-dev-shm-usage", "--hide-scrollbars",
                         f"--user-data-dir={self.profile.name}",
                         f"--window-size={width},{height}"]}}}})
        self.session = answer["sessionId"]
        # Machines may be busy: no time decides a test.
        self.ask("POST", "/timeouts", {"script": 240000, "pageLoad": 240000})
        # The window's own border is no part of the page.
        self.resize(width, height)

    def ask(self, method, path, body=None):
        prefix = f"/session/{self.session}" if self.session else ""
        self.connection.request(
            method, prefix + path,
            None if method == "GET" else json.dumps(body or {}),
            {"Content-Type": "application/json"})
        value = json.loads(self.connection.getresponse().read())["value"]
        if isinstance(value, dict) and "error" in value:
            raise AssertionError(value["error"] + ": " + value["message"])
        return value

    def close(self):
        try:
            self.ask("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()
            self.driver.stdout.close()
            self.profile.cleanup()

    def open(self, address):
        self.ask("POST", "/url", {"url": address})

    def run(self, script, *arguments):
        return self.ask("POST", "/execute/sync",
                        {"script": script, "args": list(arguments)})

    def find(self, selector):
        return self.ask("POST", "/element", {
            "using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self.ask("POST", f"/element/{self.find(selector)}/click")

    def move(self, kind, selector, *then):
        """A pointer, "mouse" or "touch", to the middle of an element."""
        where = {ELEMENT: self.find(selector)}
        self.ask("POST", "/actions", {"actions": [
            {"type": "pointer", "id": kind, "parameters": {"pointerType": kind},
             "actions": [{"type": "pointerMove", "origin": where, "x": 0,
                          "y": 0}, *then]}]})

    def point_at(self, selector):
        self.move("mouse", selector)

    def touch(self, selector):
        self.move("touch", selector, {"type": "pointerDown", "button": 0},
                  {"type": "pointerUp", "button": 0})

    def type(self, selector, text):
        self.ask("POST", f"/element/{self.find(selector)}/value",
                 {"text": text})

    def press(self, *keys):
        """Keys to whatever has the focus, one after the other."""
        actions = [{"type": kind, "value": KEYS.get(key, key)}
                   for key in keys for kind in ("keyDown", "keyUp")]
        self.ask("POST", "/actions", {"actions": [
            {"type": "key", "id": "keyboard", "actions": actions}]})

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0])"
                        ".textContent", selector)

    def devtools(self, command, **parameters):
        return self.ask("POST", "/goog/cdp/execute",
                        {"cmd": command, "params": parameters})

    def resize(self, width, height, phone=False):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width,
                      height=height, deviceScaleFactor=1, mobile=phone)

    def prefer(self, scheme):
        self.devtools("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": scheme}])

    def faults(self):
        """What the browser complained about since it was last asked."""
        return [entry["message"] for entry in self.ask(
            "POST", "/se/log", {"type": "browser"})
            if entry["level"] in ("SEVERE", "WARNING")]

    def picture(self, path):
        data = self.ask("GET", "/screenshot")
        path = pathlib.Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(data))

    def until(self, script, *arguments, seconds=240):
        """Until the expression is true; returns it."""
        end = time.monotonic() + seconds
        while True:
            value = self.run("return " + script, *arguments)
            if value:
                return value
            if time.monotonic() > end:
                raise AssertionError(f"it did not come to pass: {script}")
            time.sleep(0.05)
