"""What scripts/check-browser does: a browser and a server that sends every message back.

No test asks how long something takes. What does not happen at all ends after PATIENCE seconds.
"""

import re
import subprocess
import sys
import threading

from playwright.sync_api import sync_playwright

PATIENCE = 120
FLAGS = [
    "--no-sandbox",
    "--disable-quic",
    # Candidates with plain addresses, those of the loopback interface too.
    "--disable-features=WebRtcHideLocalIpsWithMdns",
    "--allow-loopback-in-peer-connection",
]

# What the tests use in the page: a connection, and waiting for what happens to a channel.
HELPERS = """
window.begin = async (open, options = {}) => {
  const connection = new RTCPeerConnection();
  const incoming = [];
  const waiting = [];
  connection.ondatachannel = ({ channel }) => {
    channel.binaryType = "arraybuffer";
    incoming.push(channel);
    waiting.splice(0).forEach(wake => wake());
  };
  const first = connection.createDataChannel("first", options);
  first.binaryType = "arraybuffer";
  await connection.setLocalDescription();
  const answer = await fetch(`/offer?open=${open}`, { method: "POST", body: connection.localDescription.sdp });
  const text = await answer.text();
  if (!answer.ok) throw new Error(text);
  await connection.setRemoteDescription({ type: "answer", sdp: text });
  await opened(first);
  const come = async count => {
    while (incoming.length < count) await new Promise(wake => waiting.push(wake));
    await Promise.all(incoming.map(opened));
    return incoming;
  };
  return { connection, first, come };
};
window.opened = channel => channel.readyState === "open" ? Promise.resolve() : new Promise((done, failed) => {
  channel.addEventListener("open", done, { once: true });
  channel.addEventListener("close", () => failed(new Error("closed before it was open")), { once: true });
});
// When a channel is closed: by which event.
window.ended = channel => new Promise(done => channel.addEventListener("close", event => done(event.type), { once: true }));
window.create = async (connection, label, options) => {
  const channel = connection.createDataChannel(label, options);
  channel.binaryType = "arraybuffer";
  await opened(channel);
  return channel;
};
window.same = (sent, got) => {
  if (typeof sent === "string" || typeof got === "string") return sent === got;
  const [a, b] = [new Uint8Array(sent), new Uint8Array(got)];
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
};
// Sends all messages and gives how many came back as they were sent; in order, where the channel is.
window.exchange = (channel, messages) => new Promise((done, failed) => {
  let came = 0;
  const left = [...messages];
  channel.onclose = () => failed(new Error(`closed after ${came} of ${messages.length}`));
  channel.onmessage = ({ data }) => {
    const at = channel.ordered ? 0 : left.findIndex(sent => same(sent, data));
    if (at < 0 || !same(left[at], data)) return failed(new Error(`message ${came} is not what was sent`));
    left.splice(at, 1);
    if (++came === messages.length) done(came);
  };
  (async () => {
    channel.bufferedAmountLowThreshold = 1 << 18;
    for (const message of messages) {
      if (channel.bufferedAmount > 1 << 20) {
        await new Promise(low => channel.addEventListener("bufferedamountlow", low, { once: true }));
      }
      channel.send(message);
    }
  })().catch(failed);
});
// A message of so many bytes that tells which it is.
window.pattern = (number, size) => Uint8Array.from({ length: size }, (_, at) => at * 31 + number * 7);
"""


class Server:
    """The server, and what it says."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.lines = []
        self.news = threading.Condition()
        threading.Thread(target=self.read, daemon=True).start()
        self.url = self.line(r"listening: (\S+)").group(1)

    def read(self):
        for line in self.process.stdout:
            with self.news:
                self.lines.append(line.rstrip())
                self.news.notify_all()

    def line(self, pattern, start=0):
        """Waits for a line from the `start`th on that fits."""
        def look():
            found = (re.search(pattern, line) for line in self.lines[start:])
            return next(filter(None, found), None)
        with self.news:
            found = self.news.wait_for(look, PATIENCE)
        assert found, f"no line {pattern!r} in:\n" + "\n".join(self.lines[start:])
        return found

    def end(self):
        self.process.terminate()
        assert self.process.wait(PATIENCE) in (0, -15), self.process.returncode


TESTS = []


def test(function):
    TESTS.append(function)
    return function


@test
def the_page_itself(page, server):
    """Its buttons connect, open a channel, and send on all of them."""
    page.fill("#open", "2")
    page.click("#connect")
    page.wait_for_function("document.querySelectorAll('#channels tr').length === 3")
    page.click("#create")
    states = "[...document.querySelectorAll('#channels tr')].map(row => row.cells[2].textContent)"
    page.wait_for_function(f"{states}.join() === 'open,open,open,open'")
    page.click("#send")
    received = "[...document.querySelectorAll('#channels tr')].map(row => row.cells[4].textContent)"
    page.wait_for_function(f"{received}.join() === '1,1,1,1'")


@test
def channels_from_either_side(page, server):
    """The page is the DTLS client and has even streams, the server odd ones (RFC 8832 section 6)."""
    found = page.evaluate("""async () => {
        const { connection, first, come } = await begin(3);
        const second = await create(connection, "näme", { protocol: "some" });
        const theirs = await come(3);
        for (const channel of [first, second, ...theirs]) {
            await exchange(channel, ["hällo", "", new Uint8Array(0), new Uint8Array([0]), "last"]);
        }
        return { ours: [first.id, second.id], theirs: theirs.map(it => [it.id, it.label, it.ordered]) };
    }""")
    assert found["ours"] == [0, 2], found
    theirs = [[2 * number + 1, f"from the server {number}", True] for number in range(3)]
    assert sorted(found["theirs"]) == theirs, found
    server.line("channel 2 \"näme\" up")


@test
def ten_thousand_messages(page, server):
    """On ten channels, five opened by either side, from nothing to 256 KiB, each way."""
    came = page.evaluate("""async () => {
        const { connection, first, come } = await begin(5);
        const ours = [first];
        while (ours.length < 5) ours.push(await create(connection, "more"));
        const channels = [...ours, ...await come(5)];
        const sizes = number => number % 250 === 0 ? 262144 : number % 50 === 1 ? 16384 : number * 13 % 1200;
        const message = number => number % 3 === 0 ? "text".repeat(number % 300) : pattern(number, sizes(number));
        const messages = at => Array.from({ length: 1000 }, (_, number) => message(number + at));
        const counts = await Promise.all(channels.map((channel, at) => exchange(channel, messages(at))));
        const left = channels.map(channel => channel.bufferedAmount);
        return { all: counts.reduce((a, b) => a + b), left };
    }""")
    assert came == {"all": 10_000, "left": [0] * 10}, came


@test
def kinds_of_channels(page, server):
    """Unordered and partially reliable ones; with so much patience everything arrives."""
    came = page.evaluate("""async () => {
        const { connection } = await begin(0);
        const kinds = [
            { ordered: false },
            { maxRetransmits: 20 },
            { maxPacketLifeTime: 60000 },
            { ordered: false, maxRetransmits: 20, protocol: "p" },
        ];
        const messages = Array.from({ length: 200 }, (_, number) => pattern(number, number * 10));
        const counts = [];
        for (const kind of kinds) counts.push(await exchange(await create(connection, "kind", kind), messages));
        return counts;
    }""")
    assert came == [200] * 4, came


@test
def a_channel_agreed_on_beforehand(page, server):
    """With negotiated ids the server knows no channel, and says so when the connection ends."""
    start = len(server.lines)
    page.evaluate("""async () => {
        const { connection, first } = await begin(0);
        const channel = await create(connection, "unknown", { negotiated: true, id: 100 });
        channel.send("nobody reads this");
        await exchange(first, ["one", "two"]);
        connection.close();
    }""")
    server.line("connection ended", start)
    server.line("thrown away: 1 for NoChannel", start)


@test
def three_hundred_channels(page, server):
    came = page.evaluate("""async () => {
        const { connection, come } = await begin(150);
        const ours = [];
        for (let number = 0; number < 149; number++) ours.push(create(connection, `number ${number}`));
        const channels = [...await Promise.all(ours), ...await come(150)];
        const ids = new Set(channels.map(channel => channel.id));
        const counts = await Promise.all(channels.map((channel, at) => exchange(channel, [`${at}`, pattern(at, at)])));
        return [ids.size, counts.reduce((a, b) => a + b)];
    }""")
    assert came == [299, 598], came


@test
def channels_are_closed_from_either_side(page, server):
    """Both sides hear of it, what was sent before arrives, and the id is used again (RFC 8831 section 6.7)."""
    start = len(server.lines)
    found = page.evaluate("""async () => {
        const { connection, first, come } = await begin(2);
        const [one, two] = await come(2);
        const messages = Array.from({ length: 100 }, (_, number) => pattern(number, number * 20));
        const turns = [];
        for (let turn = 0; turn < 6; turn++) {
            const channel = await create(connection, `turn ${turn}`);
            const over = ended(channel);
            const id = channel.id;
            let came = 0;
            if (turn % 2 === 0) {
                came = await exchange(channel, messages);
                channel.close();
            } else {
                // The other side closes behind what it sends back.
                channel.onmessage = () => came++;
                messages.forEach(message => channel.send(message));
                channel.send("/close");
            }
            turns.push([id, await over, channel.readyState, came]);
        }
        const ends = [one, two].map(ended);
        one.close();
        two.send("/close");
        await Promise.all(ends);
        return { turns, first: await exchange(first, ["a", "b"]) };
    }""")
    assert found["first"] == 2, found
    assert len(found["turns"]) == 6, found
    for turn in found["turns"]:
        assert turn == [2, "close", "closed", 100], found
    for number in range(6):
        server.line(f'channel 2 "turn {number}" closed: 100 messages, 99000 bytes', start)
    for number in range(2):
        server.line(f'channel {2 * number + 1} "from the server {number}" closed: 0 messages', start)


@test
def three_hundred_channels_are_closed(page, server):
    """At once and from both sides; then as many are opened again."""
    came = page.evaluate("""async () => {
        const { connection, first, come } = await begin(150);
        let channels = await come(150);
        const ids = [];
        for (let turn = 0; turn < 2; turn++) {
            const more = [];
            for (let number = 0; number < 149; number++) more.push(create(connection, `number ${number}`));
            const ours = await Promise.all(more);
            ids.push(ours.map(it => it.id).sort((a, b) => a - b).join());
            channels = [...channels, ...ours];
            const over = channels.map(ended);
            channels.forEach((channel, at) => at % 2 ? channel.close() : channel.send("/close"));
            await Promise.all(over);
            channels = [];
        }
        return [ids[0] === ids[1], await exchange(first, ["still there"])];
    }""")
    assert came == [True, 1], came


@test
def a_page_that_is_loaded_again(page, server):
    start = len(server.lines)
    page.evaluate("async () => { const { first } = await begin(1); await exchange(first, ['one']); }")
    page.reload()
    page.evaluate(HELPERS)
    came = page.evaluate("async () => exchange((await begin(1)).first, ['one', 'two'])")
    assert came == 2
    server.line("connection ended", start)


@test
def a_page_that_dies(page, server):
    """The process of the page ends at once. The server finds out, and others are served."""
    start = len(server.lines)
    page.evaluate("async () => { const { first } = await begin(1); await exchange(first, ['one']); }")
    crashed = threading.Event()
    page.on("crash", lambda _: crashed.set())
    try:
        page.goto("chrome://crash")
    except Exception:  # the page is gone, as it should
        pass
    server.line("connection ended: the peer no longer asks", start)


def main():
    server = Server(sys.argv[1:])
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
            print(f"check-browser: chromium {browser.version}")
            for function in TESTS:
                page = browser.new_page()
                page.set_default_timeout(PATIENCE * 1000)
                page.goto(server.url)
                page.evaluate(HELPERS)
                try:
                    function(page, server)
                except BaseException:
                    print("\n".join(["the server said:", *server.lines[-30:]]), file=sys.stderr)
                    raise
                print(f"check-browser: passed {function.__name__}", flush=True)
                page.close()
            browser.close()
    finally:
        server.end()


main()
