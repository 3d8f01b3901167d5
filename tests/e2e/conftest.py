"""The command line in this process, a table for it, and a headless Chromium for the report."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from equipoise.cli.app import main
from support.command_line import Done

AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1280,900",
)


@pytest.fixture
def run(capsys, monkeypatch):
    """Run the command line in this process, in a folder."""

    def run_in(*arguments, cwd="."):
        monkeypatch.chdir(cwd)
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        written = capsys.readouterr()
        return Done(left.value.code, written.out, written.err)

    return run_in


@pytest.fixture
def loans(tmp_path):
    """Applicants of two groups approved at 70% and 45%."""
    rng = np.random.default_rng(5)
    n = 600
    sex = np.where(np.arange(n) % 2, "M", "F")
    approved = (rng.random(n) < np.where(sex == "M", 0.7, 0.45)).astype(int)
    repaid = (rng.random(n) < 0.6).astype(int)
    score = np.round(rng.random(n), 3)
    lines = [f"{a},{b},{c},{d}" for a, b, c, d in zip(sex, approved, repaid, score, strict=True)]
    file = tmp_path / "loans.csv"
    file.write_text("sex,approved,repaid,credit_score\n" + "\n".join(lines) + "\n")
    return file


class Browser:
    """A page, what it wrote to the console and what it asked the network for."""

    def __init__(self, driver):
        from selenium.webdriver.support.wait import WebDriverWait

        self.driver = driver
        self._wait = WebDriverWait(driver, 60)

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def open(self, path):
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.driver.get(Path(path).as_uri())
        # With scripts off the driver cannot tell that a page is complete; the footer is its end.
        self._wait.until(lambda driver: driver.find_elements("css selector", "body > footer p"))

    def console(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        messages = [
            json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")
        ]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]

    def media(self, name):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": name})

    def resize(self, width, height, *, dark=False):
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        scheme = "dark" if dark else "light"
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
        )

    def scripts(self, *, on):
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not on})

    def violations(self):
        """Serious and critical accessibility violations that axe-core finds."""
        if not AXE.exists():
            pytest.skip(f"axe-core is absent: run `npm install` in {AXE.parents[2]}")
        self.driver.execute_cdp_cmd(
            "Runtime.evaluate", {"expression": AXE.read_text(encoding="utf-8")}
        )
        report = self.driver.execute_async_script(
            "const done = arguments[arguments.length - 1]; axe.run().then(done)"
        )
        return [
            (found["id"], [node["html"][:200] for node in found["nodes"][:3]])
            for found in report["violations"]
            if found["impact"] in ("serious", "critical")
        ]


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("chromium or chromium-driver is not installed (Debian packages)")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in FLAGS:
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('chromium')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(executable_path=driver)
    session = webdriver.Chrome(options=options, service=service)
    yield Browser(session)
    session.quit()


@pytest.fixture
def browser(chromium):
    """A browser at desktop width, light colours, scripts on."""
    chromium.scripts(on=True)
    chromium.resize(1280, 900)
    return chromium
