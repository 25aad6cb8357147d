"""What scripts/check-browser does: a browser and a server that sends every message back.

No test asks how long something takes. What does not happen at all ends after PATIENCE seconds.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import threading

from playwright.sync_api import sync_playwright

PATIENCE = 600
FLAGS = [
    "--no-sandbox",
    "--disable-quic",
    # Candidates with plain addresses, those of the loopback interface too.
    "--disable-features=WebRtcHideLocalIpsWithMdns",
    "--allow-loopback-in-peer-connection",
]

# Chromium speaks I-DATA (RFC 8260) when it is told to.
INTERLEAVING = "--force-fieldtrials=WebRTC-DataChannelMessageInterleaving/Enabled/"

# What the tests use in the page: a connection, and waiting for what happens to a channel.
HELPERS = """
// What there is, to be told where something does not happen.
window.made = { connections: [], channels: [] };
window.state = () => [
  ...made.connections.map(it => `connection ${it.connectionState}, ICE ${it.iceConnectionState}`),
  ...made.channels.filter(it => it.readyState !== "closed")
    .map(it => `${it.id} "${it.label}" ${it.readyState}, ${it.bufferedAmount} bytes buffered, ${it.received ?? 0} messages received`),
].slice(0, 40).join("\\n");
window.within = (work, patience) => Promise.race([
  work(),
  new Promise((_, failed) => setTimeout(() => failed(new Error(`not done in ${patience} s:\\n${state()}`)), patience * 1000)),
]);
window.adopt = channel => {
  channel.binaryType = "arraybuffer";
  channel.addEventListener("message", () => { channel.received = (channel.received ?? 0) + 1; });
  made.channels.push(channel);
  return channel;
};
window.pause = milliseconds => new Promise(done => setTimeout(done, milliseconds));
// `delay`: through a path with losses, and with this delay each way.
window.begin = async (open, options = {}, delay = null) => {
  const connection = new RTCPeerConnection();
  made.connections.push(connection);
  const incoming = [];
  const waiting = [];
  connection.ondatachannel = ({ channel }) => {
    incoming.push(adopt(channel));
    waiting.splice(0).forEach(wake => wake());
  };
  const first = adopt(connection.createDataChannel("first", options));
  await connection.setLocalDescription();
  const answer = await fetch(`/offer?open=${open}`, { method: "POST", body: connection.localDescription.sdp });
  let text = await answer.text();
  if (!answer.ok) throw new Error(text);
  if (delay !== null) {
    const [, before, port] = text.match(/(a=candidate:1 1 udp \\d+ \\S+ )(\\d+)/);
    text = text.replace(before + port, before + await lossyPath(Number(port), delay));
  }
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
  const channel = adopt(connection.createDataChannel(label, options));
  await opened(channel);
  return channel;
};
window.same = (sent, got) => {
  if (typeof sent === "string" || typeof got === "string") return sent === got;
  const [a, b] = [new Uint8Array(sent), new Uint8Array(got)];
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
};
// Bytes that wait to be sent, less those that `room` found to be gone.
window.buffered = channel => {
  channel.gone = Math.min(channel.gone ?? 0, channel.bufferedAmount);
  return channel.bufferedAmount - channel.gone;
};
// When more may be sent: the browser says so; or all that was sent has come back, so that nothing waits, whatever `bufferedAmount` says.
// On a busy machine Chromium 156 sometimes does not say so (docs/DATACHANNEL.md); then `channel.untold` has what `bufferedAmount` was.
window.room = channel => new Promise(done => {
  const low = () => {
    channel.allBack = null;
    done();
  };
  channel.addEventListener("bufferedamountlow", low, { once: true });
  channel.allBack = async () => {
    // An event that is under way comes first.
    await pause(1000);
    if (channel.allBack === null) return;
    channel.removeEventListener("bufferedamountlow", low);
    channel.gone = channel.bufferedAmount;
    (channel.untold ??= []).push(channel.gone);
    low();
  };
});
// Sends all messages and gives how many came back as they were sent; in order, where the channel is.
window.exchange = (channel, messages) => new Promise((done, failed) => {
  let [given, came] = [0, 0];
  const left = [...messages];
  channel.onclose = () => failed(new Error(`closed after ${came} of ${messages.length}`));
  channel.onmessage = ({ data }) => {
    const at = channel.ordered ? 0 : left.findIndex(sent => same(sent, data));
    if (at < 0 || !same(left[at], data)) return failed(new Error(`message ${came} is not what was sent`));
    left.splice(at, 1);
    if (++came === given) channel.allBack?.();
    if (came === messages.length) done(came);
  };
  (async () => {
    channel.bufferedAmountLowThreshold = 1 << 18;
    for (const message of messages) {
      if (buffered(channel) > 1 << 20) await room(channel);
      channel.send(message);
      given++;
    }
  })().catch(failed);
});
// A message of so many bytes that tells which it is.
window.pattern = (number, size) => Uint8Array.from({ length: size }, (_, at) => at * 31 + number * 7);
// Sends numbered messages one by one, each when nothing waits, on a channel that may lose any; then has the other side close it.
// Gives the numbers that came back.
window.trickle = async (channel, count, size) => {
  const message = number => {
    const bytes = pattern(number, size);
    new DataView(bytes.buffer).setUint32(0, number);
    return bytes;
  };
  const came = [];
  const wrong = [];
  channel.onmessage = ({ data }) => {
    const number = new DataView(data).getUint32(0);
    (same(message(number), data) ? came : wrong).push(number);
  };
  let open = true;
  const over = ended(channel).then(() => { open = false; });
  for (let number = 0; number < count; number++) {
    channel.send(message(number));
    do await pause(0); while (channel.bufferedAmount > 0);
  }
  // Each of these may be lost as well.
  while (open) {
    if (channel.readyState === "open") channel.send("/close");
    await Promise.race([over, pause(50)]);
  }
  return { came, wrong };
};
// Not a function, which would be called.
null;
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


class LossyPaths:
    """Emulators of lossy.toml between the page and the server."""

    def __init__(self, program):
        self.program = program
        self.running = []

    def begin(self, port, delay):
        """Begins one towards a port of the server, and gives the port for the page."""
        spec = pathlib.Path(__file__).with_name("lossy.toml")
        command = [self.program, "emulate", spec, "--interval", "0", "--set", f"delay={delay}",
                   "--listen", "127.0.0.1:0", "--to", f"127.0.0.1:{port}"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.running.append(process)
        line = process.stdout.readline()
        return int(re.search(r"from 127\.0\.0\.1:(\d+) ", line).group(1))

    def end(self):
        for process in self.running:
            process.terminate()
            process.communicate()
        self.running.clear()


def run(page, script):
    """What an async function in the page gives, or where it stands when patience ends."""
    return page.evaluate(f"() => within({script}, {PATIENCE})")


TESTS = []
# Those that are run with I-DATA, too.
INTERLEAVED = []


def test(function):
    TESTS.append(function)
    return function


def interleaved(function):
    INTERLEAVED.append(function)
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
@interleaved
def channels_from_either_side(page, server):
    """The page is the DTLS client and has even streams, the server odd ones (RFC 8832 section 6)."""
    start = len(server.lines)
    found = run(page, """async () => {
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
    print(f"check-browser: {server.line('connection up.*', start).group()}")


@test
@interleaved
def ten_thousand_messages(page, server):
    """On ten channels, five opened by either side, from nothing to 256 KiB, each way."""
    came = run(page, """async () => {
        const { connection, first, come } = await begin(5);
        const ours = [first];
        while (ours.length < 5) ours.push(await create(connection, "more"));
        const channels = [...ours, ...await come(5)];
        const sizes = number => number % 250 === 0 ? 262144 : number % 50 === 1 ? 16384 : number * 13 % 1200;
        const message = number => number % 3 === 0 ? "text".repeat(number % 300) : pattern(number, sizes(number));
        const messages = at => Array.from({ length: 1000 }, (_, number) => message(number + at));
        const counts = await Promise.all(channels.map((channel, at) => exchange(channel, messages(at))));
        const untold = channels.flatMap(channel => channel.untold ?? []);
        return { all: counts.reduce((a, b) => a + b), left: channels.map(buffered), untold };
    }""")
    untold = came.pop("untold")
    if untold:
        print(f"check-browser: Chromium counted bytes as buffered that had arrived: {untold}")
    assert came == {"all": 10_000, "left": [0] * 10}, came


@test
def kinds_of_channels(page, server):
    """Without loss everything arrives on a reliable channel. On a partially reliable one Chromium gives up messages now and then, on a busy
    machine and with patience left: what comes back is whole, in order where the channel has one, and comes once."""
    reliable, partial = run(page, """async () => {
        const { connection } = await begin(0);
        const messages = Array.from({ length: 200 }, (_, number) => pattern(number, number * 10));
        const reliable = await exchange(await create(connection, "reliable", { ordered: false }), messages);
        const kinds = [
            { maxRetransmits: 20 },
            { maxPacketLifeTime: 60000 },
            { ordered: false, maxRetransmits: 20, protocol: "p" },
        ];
        const partial = [];
        for (const kind of kinds) partial.push([kind, await trickle(await create(connection, "kind", kind), 200, 1500)]);
        return [reliable, partial];
    }""")
    assert reliable == 200, reliable
    for kind, found in partial:
        came = found["came"]
        assert not found["wrong"], found
        assert len(set(came)) == len(came) > 0, (kind, came)
        if kind.get("ordered", True):
            assert came == sorted(came), (kind, came)


@test
def a_channel_agreed_on_beforehand(page, server):
    """With negotiated ids the server knows no channel, and says so when the connection ends."""
    start = len(server.lines)
    run(page, """async () => {
        const { connection, first } = await begin(0);
        const channel = await create(connection, "unknown", { negotiated: true, id: 100 });
        channel.send("nobody reads this");
        await exchange(first, ["one", "two"]);
        connection.close();
    }""")
    server.line("connection ended", start)
    server.line("thrown away: 1, message without a channel", start)


@test
def three_hundred_channels(page, server):
    came = run(page, """async () => {
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
@interleaved
def channels_are_closed_from_either_side(page, server):
    """Both sides hear of it, what was sent before arrives, and the id is used again (RFC 8831 section 6.7)."""
    start = len(server.lines)
    found = run(page, """async () => {
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
    came = run(page, """async () => {
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


def lossy_channels(page, server, delay, kinds, count):
    """Sends on a channel of each kind at once, through 5 % loss; gives for each what came back, and what the server counted."""
    start = len(server.lines)
    found = run(page, """async () => {
        const { connection, first } = await begin(0, {}, "%s");
        const messages = Array.from({ length: 100 }, (_, number) => pattern(number, number * 10));
        const reliable = exchange(first, messages);
        const kinds = %s;
        const channels = await Promise.all(kinds.map((kind, at) => create(connection, `kind ${at}`, kind)));
        const counts = await Promise.all(channels.map(channel => trickle(channel, %d, 1000)));
        return { reliable: await reliable, counts };
    }""" % (delay, json.dumps(kinds), count))
    assert found["reliable"] == 100, found["reliable"]
    results = []
    for at, (kind, counts) in enumerate(zip(kinds, found["counts"])):
        line = server.line(rf'"kind {at}" closed: (\d+) messages, \d+ bytes, (\d+) given up', start)
        arrived, given_up = map(int, line.groups())
        came = counts["came"]
        print(f"check-browser: {kind}: {count} sent, {arrived} arrived, {len(came)} came back, {given_up} of them given up")
        assert counts["wrong"] == [], counts["wrong"]
        assert len(set(came)) == len(came), "a message came twice"
        if kind.get("ordered", True):
            assert came == sorted(came), came
        # What did not come back was told to be given up. More may have been: what came, and its acknowledgement was lost.
        assert count >= arrived >= len(came) and len(came) + given_up >= arrived >= given_up
        results.append((arrived, len(came)))
    return results


@test
@interleaved
def no_retransmission_at_five_percent_loss(page, server):
    """Each message is one packet and is sent once: some 25 are lost each way, and fewer than two with a chance below 1e-8. An end
    gives up more when its timer expires too early, as it may on a busy machine; Chromium does so on an idle one (docs/DATACHANNEL.md)."""
    kinds = [{"maxRetransmits": 0}, {"maxRetransmits": 0, "ordered": False}]
    for arrived, came in lossy_channels(page, server, "5 ms", kinds, 500):
        assert 500 - 2 >= arrived, arrived
        assert arrived - 2 >= came > 0, (arrived, came)


@test
def lifetime_at_five_percent_loss(page, server):
    """A round trip takes longer than the lifetime: nothing is sent twice, so not all can come. How much more is given up
    before it is sent depends on the machine."""
    for arrived, came in lossy_channels(page, server, "30 ms", [{"maxPacketLifeTime": 50}], 300):
        assert 0 < came <= 300 - 3, (arrived, came)


@test
def a_page_that_is_loaded_again(page, server):
    start = len(server.lines)
    run(page, "async () => { const { first } = await begin(1); await exchange(first, ['one']); }")
    page.reload()
    page.evaluate(HELPERS)
    came = run(page, "async () => exchange((await begin(1)).first, ['one', 'two'])")
    assert came == 2
    server.line("connection ended", start)


@test
def a_page_that_dies(page, server):
    """The process of the page ends at once. The server finds out, and others are served."""
    start = len(server.lines)
    run(page, "async () => { const { first } = await begin(1); await exchange(first, ['one']); }")
    crashed = threading.Event()
    page.on("crash", lambda _: crashed.set())
    try:
        page.goto("chrome://crash")
    except Exception:  # the page is gone, as it should
        pass
    server.line("connection ended: the peer no longer asks", start)


def check(playwright, more, functions, server, paths):
    """Runs tests in a browser with more flags."""
    more = more + os.environ.get("BROWSER_FLAGS", "").split()
    browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS + more, timeout=PATIENCE * 1000)
    print(f"check-browser: chromium {browser.version}", *more)
    wanted = os.environ.get("BROWSER_TESTS", "")
    for function in (it for it in functions if wanted in it.__name__):
        page = browser.new_page()
        page.set_default_timeout(PATIENCE * 1000)
        page.expose_function("lossyPath", paths.begin)
        page.goto(server.url)
        page.evaluate(HELPERS)
        try:
            function(page, server)
        except BaseException:
            print("\n".join(["the server said:", *server.lines[-30:]]), file=sys.stderr)
            raise
        finally:
            page.close()
            paths.end()
        print(f"check-browser: passed {function.__name__}", flush=True)
    browser.close()


def main():
    paths = LossyPaths(sys.argv[1])
    server = Server(sys.argv[2:])
    try:
        with sync_playwright() as playwright:
            for more, functions in [([], TESTS), ([INTERLEAVING], INTERLEAVED)]:
                check(playwright, more, functions, server, paths)
    finally:
        paths.end()
        server.end()


main()
