"""The page in a browser. Called by scripts/check-explore; an argument names a directory for screenshots."""

import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import tomllib
import urllib.error
import urllib.request

from playwright.sync_api import expect, sync_playwright

# A wait fails after this number of seconds, which no correct step takes, even on a busy machine.
PATIENCE = 600

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "target/debug/anabranch"

# One GEO hop of 60 s, TCP beside SCTP.
GEO = """
anabranch = 1
name = "geo"
title = "One GEO satellite hop, TCP and SCTP"

[parameters]
rate = "2 Mbit/s"
delay = "250 ms"
loss = 0.005
buffer = "40 packets"
window = "64 KiB"
profile = "rfc9260"

[world]
duration = "60 s"

[[node]]
name = "tcp-host"
[[node]]
name = "sctp-host"
[[node]]
name = "gateway"
[[node]]
name = "server"

[[link]]
name = "tcp-access"
between = ["tcp-host", "gateway"]
rate = "10 Mbit/s"
delay = "2 ms"
[[link]]
name = "sctp-access"
between = ["sctp-host", "gateway"]
rate = "10 Mbit/s"
delay = "2 ms"
[[link]]
name = "satellite"
between = ["gateway", "server"]
rate = "$rate"
delay = "$delay"
queue = "$buffer"
loss = { forward = { model = "bernoulli", probability = "$loss" } }

[[flow]]
name = "tcp"
from = "tcp-host"
to = "server"
workload = { kind = "bulk" }
transport = { protocol = "tcp", receive_buffer = "$window" }
[[flow]]
name = "sctp"
from = "sctp-host"
to = "server"
workload = { kind = "bulk", message = "1400 B" }
transport = { protocol = "sctp", profile = "$profile", receive_buffer = "$window" }

[[measure]]
metric = "goodput"
flow = "tcp"
[[measure]]
metric = "goodput"
flow = "sctp"
[[measure]]
metric = "timeouts"
flow = "sctp"
[[measure]]
metric = "drops"
link = "satellite"
"""

# Twelve satellites over the equator; a flow crosses three of them.
RING = """
anabranch = 1
name = "ring"
title = "A ring of satellites"
world = { duration = "10 s" }
[[constellation]]
name = "ring"
shells = [{ kind = "walker", planes = 1, satellites = 12, phasing = 0, altitude = 1000, inclination = 0, min_elevation = 10 }]
isl = { rate = "1 Mbit/s", queue = "10 packets" }
up = { rate = "1 Mbit/s", queue = "10 packets" }
down = { rate = "1 Mbit/s", queue = "10 packets" }
[[ground]]
name = "city"
stations = ["0,0", "0,60"]
[[flow]]
name = "f"
from = "city[0]"
to = "city[1]"
transport = { protocol = "sctp" }
workload = { kind = "bulk" }
[[measure]]
metric = "goodput"
flow = "f"
"""


class Served:
    """A server of a spec, which is ended like by a user."""

    def __init__(self, *arguments):
        command = [str(PROGRAM), "explore", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line.startswith("open http://127.0.0.1:"), line + self.process.stderr.read()
        self.url = line.split()[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        out, error = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0 and error == "", (self.process.returncode, out, error)


class Browser:
    """A page whose console must have no output. Conditions to wait for are functions, because the policy of the page forbids evaluation of text."""

    def __init__(self, chromium, url, **options):
        self.context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE * 1000)
        self.said = []
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        self.page.on("request", lambda request: self.outside(request.url, url))
        self.page.goto(url)

    def outside(self, found, url):
        host = url.split("/")[2]
        if not found.startswith((f"http://{host}/", "data:", "blob:")):
            self.said.append(f"asked elsewhere: {found}")

    def done(self, runs=1):
        """Waits until at least this number of runs were drawn completely."""
        self.page.wait_for_function("count => performance.getEntriesByName('redraw').length >= count", arg=runs)

    def runs(self):
        return self.page.evaluate("performance.getEntriesByName('redraw').length")

    def drawn(self, pane=0, chart=0):
        """The first line of a chart in plotly.js."""
        script = "([pane, chart]) => document.querySelectorAll('.pane')[pane].querySelectorAll('.chart')[chart].data[0].y"
        return self.page.evaluate(script, [pane, chart])

    def reach(self, pane=0):
        """Times at which the lines of window, queue and sequence end in the data of plotly.js, and the end of the axis."""
        script = """pane => [...document.querySelectorAll('.pane')[pane].querySelectorAll('.chart')].slice(0, 3).flatMap(it =>
            it.calcdata.filter(points => points[0].trace.mode === 'lines').map(points => [points.at(-1).x, it.layout.xaxis.range[1]]))"""
        return self.page.evaluate(script, pane)

    def close(self):
        assert self.said == [], self.said
        self.context.close()


def slider(page, key, pane=0):
    return page.locator(".pane").nth(pane).locator(f"input[type=range][data-key='{key}']")


def moves(browser):
    """A move of a slider should change the picture and the numbers next to it."""
    page = browser.page
    browser.done()
    before, first = browser.drawn(), page.locator("#measures").inner_text()
    rate = slider(page, "rate")
    rate.focus()
    runs = browser.runs()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    browser.done(runs + 1)
    expect(rate).to_have_attribute("aria-valuetext", "4 Mbit/s")
    page.wait_for_function("() => !document.querySelector('[aria-busy]')")
    assert browser.drawn() != before
    assert page.locator("#measures").inner_text() != first
    expect(page.locator(".summary").first).to_contain_text("60 s simulated")
    assert "rate%3D4+Mbit%2Fs" in page.evaluate("new Promise(done => setTimeout(() => done(location.hash), 600))")


def timed(browser):
    """Time from a move of a slider until its run is drawn, ms; it is printed but not checked."""
    page = browser.page
    browser.page.evaluate("performance.clearMeasures()")
    slider(page, "loss").focus()
    for count in range(20):
        page.keyboard.press("ArrowRight" if count % 4 < 2 else "ArrowLeft")
        browser.done(count + 1)
        page.wait_for_timeout(60)
    entries = page.evaluate("performance.getEntriesByName('redraw').map(it => [it.duration, 1000 * it.detail.took])")
    redraws = sorted(duration for duration, _ in entries)
    took = statistics.median(took for _, took in entries)
    print(f"check-explore: 60 s GEO run redrawn after a move in {statistics.median(redraws):.0f} ms"
          f" (least {redraws[0]:.0f}, most {redraws[-1]:.0f}; the run itself {took:.0f} ms)")


def mistakes(browser):
    """A wrong value should give the error message of the command and mark the field; a subsequent right value should be drawn."""
    page = browser.page
    field = page.locator("input[type=text][data-key='rate']")
    field.fill("5 Mbits")
    field.press("Enter")
    problem = page.get_by_role("alert").first
    expect(problem).to_contain_text('did you mean "Mbit/s"?')
    expect(field).to_have_attribute("aria-invalid", "true")
    field.fill("5 Mbit/s")
    field.press("Enter")
    expect(problem).to_be_hidden()
    other = page.get_by_label("Any other value").first
    other.fill("link.satellite.quue=5 packets")
    other.press("Enter")
    expect(problem).to_contain_text("did you mean `queue`?")
    page.get_by_role("button", name="Drop link.satellite.quue").click()
    expect(problem).to_be_hidden()


def typed(browser):
    """A slider should have steps around a typed value, and continue from it."""
    page = browser.page
    field = page.locator("input[type=text][data-key='rate']")
    field.fill("900 Mbit/s")
    field.press("Enter")
    rate = slider(page, "rate")
    expect(rate).to_have_attribute("aria-valuetext", "900 Mbit/s")
    page.wait_for_function("it => Number(it.value) > 0 && it.value !== it.max", arg=rate.element_handle())
    rate.press("ArrowRight")
    expect(rate).to_have_attribute("aria-valuetext", "1 Gbit/s")
    field.fill("5 Mbit/s")
    field.press("Enter")
    page.wait_for_function("() => !document.querySelector('[aria-busy]')")


def long(browser):
    """An endless run should be drawn while it is computed. It can be stopped, and the next move should end it."""
    page = browser.page
    other = page.get_by_label("Any other value").first
    drawn = "document.querySelector('.chart').data[0]?.x.at(-1) > 1000"
    for ended in ["stopped", "moved"]:
        other.fill("world.duration=1000000 s")
        other.press("Enter")
        page.wait_for_function(f"() => {drawn}")
        if ended == "stopped":
            page.get_by_role("button", name="Stop this run").click()
            expect(page.locator(".summary").first).to_contain_text("Stopped")
        page.evaluate("document.querySelectorAll('.controls details').forEach(it => { it.open = true; })")
        back = page.get_by_role("button", name="duration: back to 60 s")
        back.click()
        page.wait_for_function(f"() => !({drawn})")
        page.wait_for_function("() => !document.querySelector('[aria-busy]')")


def dragged(browser):
    """A slider that is dragged back and forth faster than runs are computed should end with the picture of its final value."""
    page = browser.page
    delay = slider(page, "delay")
    field = page.locator("input[type=text][data-key='delay']")

    def rest():
        page.wait_for_function("() => !document.querySelector('[aria-busy]')")
        page.wait_for_timeout(100)
        page.wait_for_function("() => !document.querySelector('[aria-busy]')")
        return browser.drawn()

    was = field.input_value()
    delay.scroll_into_view_if_needed()
    box = delay.bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 2, y)
    page.mouse.down()
    for step in range(120):
        page.mouse.move(box["x"] + box["width"] * (0.1 + 0.8 * abs((step % 60) - 30) / 30), y)
    page.mouse.up()
    quick, stands = rest(), field.input_value()
    # The same value alone.
    for value in ["111 ms", stands]:
        field.fill(value)
        field.press("Enter")
        slow = rest()
        assert (slow == quick) == (value == stands), (value, stands)
    field.fill(was)
    field.press("Enter")
    rest()


def contrast(browser):
    """Text and drawings should have enough contrast with the background: WCAG 2.2, 1.4.3 and 1.4.11."""
    ratio = """([one, two]) => {
        const light = name => {
            const value = getComputedStyle(document.documentElement).getPropertyValue(name).trim().slice(1);
            const [r, g, b] = [0, 2, 4].map(at => parseInt(value.slice(at, at + 2), 16) / 255)
                .map(it => it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
        };
        const [a, b] = [light(one), light(two)];
        return Math.max(a, b) / Math.min(a, b);
    }"""
    text = [(ink, paper) for ink in ["--ink", "--faint"] for paper in ["--paper", "--panel", "--moved", "--bad-paper"]]
    drawn = [(f"--c{at}", "--paper") for at in range(8)] + [("--edge", "--paper"), ("--edge", "--moved"), ("--link", "--panel"), ("--bad", "--paper")]
    for pairs, least in [(text, 4.5), (drawn, 3)]:
        for pair in pairs:
            found = browser.page.evaluate(ratio, list(pair))
            assert found >= least, (pair, found)


def beside(browser):
    """Two settings should be shown next to each other, each with its values and with the same axes."""
    page = browser.page
    runs = browser.runs()
    page.get_by_label("Two settings side by side").check()
    browser.done(runs + 1)
    runs = browser.runs()
    field = page.locator(".pane").nth(1).locator("input[type=text][data-key='buffer']")
    field.fill("5 packets")
    field.press("Enter")
    browser.done(runs + 1)
    expect(page.locator("#measures thead")).to_contain_text("B to A")
    same = "[0, 1].map(at => document.querySelectorAll('.pane')[at].querySelectorAll('.chart')[1].layout.yaxis.range[1])"
    page.wait_for_function(f"() => (([a, b]) => a === b)({same})")
    assert browser.drawn(0, 1) != browser.drawn(1, 1)


def ladder(browser):
    """The ladder should open, have packets, and zoom by its buttons."""
    page = browser.page
    first = page.locator(".ladder").first
    first.locator("summary").click()
    told = first.locator(".told")
    expect(told).to_contain_text("transmissions")
    expect(told).to_contain_text("0 to 2 s")
    first.get_by_role("button", name="Zoom in").click()
    expect(told).to_contain_text("0.5 to 1.5 s")
    first.get_by_role("button", name="Later").click()
    expect(told).to_contain_text("1 to 2 s")
    expect(first.locator(".picture")).to_have_attribute("aria-label", told.inner_text())


def saved(browser, folder):
    """The saved files should be tables and a spec that the command runs."""
    page = browser.page

    def save(name):
        with page.expect_download() as download:
            page.get_by_role("button", name=name).first.click()
        path = folder / download.value.suggested_filename
        download.value.save_as(path)
        return path

    spec = save("Save spec")
    assert tomllib.loads(spec.read_text())["parameters"]["rate"] == "5 Mbit/s"
    made = subprocess.run([PROGRAM, "run", spec, "--out", folder / "again"], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    again = (folder / "again/measures.csv").read_text()
    measures = save("Save measures").read_text().splitlines()
    assert measures[0] == "series,metric,value,unit"
    for line in measures[1:]:
        series, metric, value, _ = line.split(",")
        assert any(f"{series},{metric}," in row and f",{value}," in row for row in again.splitlines()), (line, again)
    samples = save("Save samples").read_text().splitlines()
    assert samples[0] == "series,member,probe,unit,index,time,value" and len(samples) > 10_000, len(samples)


def named(browser):
    """Every control should have a name, and the tab key should reach the first control of each kind."""
    page = browser.page
    nameless = page.evaluate("""[...document.querySelectorAll('button, input, select, [role=img]')].filter(it => it.checkVisibility()).filter(it =>
        !(it.textContent.trim() || it.getAttribute('aria-label') || it.labels?.length)).map(it => it.outerHTML)""")
    assert nameless == [], nameless
    page.locator("body").focus()
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("`${document.activeElement.tagName} ${document.activeElement.type ?? ''}`"))
    assert {"INPUT range", "INPUT text", "INPUT checkbox", "BUTTON button", "SUMMARY "} <= reached, reached


def by_keys(browser):
    """With the keyboard alone a slider should be reached, moved and moved back; then the picture should be as before."""
    page = browser.page
    page.evaluate("document.activeElement.blur()")
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.key === 'rate' && document.activeElement.type === 'range'"):
            break
    else:
        raise AssertionError("the tab key does not reach the slider")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none", "the focus is not seen"
    pictures = [browser.drawn()]
    for key in ["ArrowRight", "ArrowLeft"]:
        runs = browser.runs()
        page.keyboard.press(key)
        browser.done(runs + 1)
        page.wait_for_function("() => !document.querySelector('[aria-busy]')")
        pictures.append(browser.drawn())
    assert pictures[0] == pictures[2] != pictures[1]


def narrow(browser):
    """All content should fit a narrow page."""
    width = browser.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width[0] <= width[1], width


def refused(url):
    """A request without the token, for another origin, or by another name should get no answer."""
    host = url.split("/")[2]
    tries = [
        (f"http://{host}/", {}),
        (f"http://{host}/{'0' * 32}/", {}),
        (url, {"Host": "evil.example"}),
        (url + "spec", {"Origin": "http://evil.example"}),
    ]
    for address, headers in tries:
        try:
            urllib.request.urlopen(urllib.request.Request(address, headers=headers))
        except urllib.error.HTTPError as error:
            assert error.code == 403, (address, error.code)
        else:
            raise AssertionError(f"{address} {headers} was answered")


def other_page(chromium, url):
    """A page of another origin should get nothing, even with the token."""
    context = chromium.new_context()
    page = context.new_page()
    page.set_default_timeout(PATIENCE * 1000)
    page.route("http://elsewhere.test/", lambda route: route.fulfill(body="<!doctype html><title>elsewhere</title>", content_type="text/html"))
    page.goto("http://elsewhere.test/")
    script = "url => fetch(url).then(it => it.text(), error => `failed: ${error}`)"
    got = page.evaluate(script, url + "spec")
    assert got.startswith("failed"), got
    context.close()


def papers(chromium, pictures):
    """The spec of each paper should be explored by its name, and another point should give another picture."""
    listed = subprocess.run([PROGRAM, "papers"], capture_output=True, text=True, check=True).stdout
    names = [line.split()[0] for line in listed.splitlines() if line[:1].isalpha() and any(it.isdigit() for it in line.split()[0])]
    assert len(names) >= 5, listed
    for name in names:
        with Served("--paper", name) as served:
            browser = Browser(chromium, served.url)
            browser.done()
            page = browser.page
            page.wait_for_function("() => !document.querySelector('[aria-busy]')")
            if name == "kassing2020":  # its first experiments are of UDP, which has no window
                runs = browser.runs()
                page.get_by_label("Experiment").select_option(index=3)  # flows
                browser.done(runs + 1)
                page.wait_for_function("() => !document.querySelector('[aria-busy]')")
            before = browser.drawn()
            assert page.get_by_label("Experiment").locator("option").count() > 1, name
            point = page.get_by_label("Point")
            assert point.locator("option").count() > 1, name
            runs = browser.runs()
            point.select_option(index=point.locator("option").count() - 1)
            browser.done(runs + 1)
            assert browser.drawn() != before, name
            # The drawing is complete although it was made in pieces: the last value continues to the end.
            page.wait_for_function("() => !document.querySelector('[aria-busy]')")
            reach = browser.reach()
            assert reach and all(drawn == end for drawn, end in reach), (name, reach)
            expect(page.locator("#title")).not_to_be_empty()
            if pictures:
                page.screenshot(path=pictures / f"{name}.png", full_page=True)
            browser.close()


def mapped(chromium, folder, pictures):
    """A constellation should have a map of successive times, or of the first time only if reduced motion is preferred."""
    (folder / "ring.toml").write_text(RING)
    visible = "() => [...document.querySelectorAll('.sky g')].filter(it => getComputedStyle(it).visibility === 'visible').length"
    with Served(str(folder / "ring.toml")) as served:
        for scheme, motion in [("light", "no-preference"), ("dark", "reduce")]:
            browser = Browser(chromium, served.url, color_scheme=scheme, reduced_motion=motion, viewport={"width": 400, "height": 860})
            browser.done()
            page = browser.page
            page.get_by_text("Map of the constellation").first.click()
            expect(page.locator(".sky svg")).to_be_visible()
            assert page.locator(".sky g").count() == 10
            page.wait_for_function(f"{visible} === 1")
            expect(page.locator(".drawing").first).to_contain_text("Ten times in turn")
            narrow(browser)
            if pictures:
                page.locator(".map").first.screenshot(path=pictures / f"map-{scheme}-400.png")
            browser.close()


def main():
    pictures = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else None
    if pictures:
        pictures.mkdir(parents=True, exist_ok=True)

    def picture(browser, name, **options):
        if pictures:
            browser.page.screenshot(path=pictures / f"{name}.png", **options)

    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        folder = pathlib.Path(scratch)
        (folder / "geo.toml").write_text(GEO)
        expect.set_options(timeout=PATIENCE * 1000)
        chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"], timeout=PATIENCE * 1000)
        with Served(str(folder / "geo.toml")) as served:
            refused(served.url)
            other_page(chromium, served.url)
            browser = Browser(chromium, served.url, accept_downloads=True)
            browser.done()
            first = browser.page.evaluate("performance.getEntriesByName('redraw').map(it => it.startTime + it.duration)")[0]
            weight = browser.page.evaluate("performance.getEntriesByType('resource').reduce((sum, it) => sum + it.decodedBodySize, 0)")
            print(f"check-explore: {weight / 1e6:.1f} MB, first picture after {first:.0f} ms")
            picture(browser, "first")
            named(browser)
            moves(browser)
            timed(browser)
            for key, presses in [("loss", 4), ("delay", -3)]:
                for _ in range(abs(presses)):
                    slider(browser.page, key).press("ArrowRight" if presses > 0 else "ArrowLeft")
            browser.page.wait_for_function("() => !document.querySelector('[aria-busy]')")
            browser.page.wait_for_timeout(900)
            picture(browser, "moved")
            mistakes(browser)
            typed(browser)
            dragged(browser)
            by_keys(browser)
            long(browser)
            saved(browser, folder)
            beside(browser)
            picture(browser, "two")
            ladder(browser)
            picture(browser, "two-all", full_page=True)
            link = browser.page.evaluate("new Promise(done => setTimeout(() => done(location.href), 600))")
            browser.close()
            for scheme in ["light", "dark"]:
                for width in [1280, 400]:
                    browser = Browser(chromium, link, color_scheme=scheme, viewport={"width": width, "height": 860})
                    browser.done(2)
                    expect(browser.page.locator("#compare")).to_be_checked()
                    expect(browser.page.locator(".pane").nth(1).locator("input[type=text][data-key='buffer']")).to_have_value("5 packets")
                    expect(browser.page.locator(".told").nth(1)).to_contain_text("transmissions")
                    narrow(browser)
                    contrast(browser)
                    picture(browser, f"{scheme}-{width}")
                    picture(browser, f"{scheme}-{width}-all", full_page=True)
                    browser.close()
        mapped(chromium, folder, pictures)
        papers(chromium, pictures)
        chromium.close()
    print("check-explore: passed")


main()
