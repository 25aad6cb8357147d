#!/usr/bin/env bash
# werift 0.25.2 (npm) opens data channels on odd streams although it is the DTLS client, if it
# made the offer.
#
# By RFC 8832 §6 the DTLS client opens channels on even streams and the DTLS server on odd
# streams, so that both ends can open channels at the same time. werift uses its role in ICE
# instead: the end that made the offer is controlling, and uses odd streams. Usually the answer
# contains a=setup:active; the end that made the offer is then the DTLS server, and the two rules
# agree. If the answer contains a=setup:passive, which RFC 8842 allows and servers with ICE lite
# send, the rules differ. A peer that follows RFC 8832 refuses the channel; aiortc 1.16.0 (PyPI),
# which answers here, accepts it.
#
# A reader would expect the role in DTLS to decide, because the RFC refers to this role and not to
# ICE.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
timeout 240 venv/bin/pip install --quiet --disable-pip-version-check aiortc==1.16.0
echo '{ "private": true }' > package.json
timeout 120 npm install --silent --no-audit --no-fund werift@0.25.2 > npm.txt 2>&1
cat > answer.py <<'PY'
import asyncio
import json
import sys

from aiortc import RTCPeerConnection, RTCSessionDescription


async def main(role):
    offer = json.loads(sys.stdin.readline())["sdp"].replace("a=setup:actpass", f"a=setup:{role}")
    connection = RTCPeerConnection()
    await connection.setRemoteDescription(RTCSessionDescription(offer, "offer"))
    await connection.setLocalDescription(await connection.createAnswer())
    print(json.dumps({"type": "answer", "sdp": connection.localDescription.sdp}), flush=True)
    await asyncio.sleep(8)


asyncio.run(main(sys.argv[1]))
PY
cat > offer.cjs <<'JS'
const { RTCPeerConnection } = require('werift')
const { spawn } = require('child_process')
const sleep = (time) => new Promise((done) => setTimeout(done, time))
const main = async (role) => {
  const connection = new RTCPeerConnection({ iceServers: [] })
  const channel = connection.createDataChannel('one')
  await connection.setLocalDescription(await connection.createOffer())
  await sleep(500)
  const other = spawn('venv/bin/python', ['answer.py', role], { stdio: ['pipe', 'pipe', 'inherit'] })
  other.stdin.write(JSON.stringify(connection.localDescription) + '\n')
  let text = ''
  for await (const part of other.stdout) {
    text += part
    if (text.includes('\n')) break
  }
  const answer = JSON.parse(text)
  await connection.setRemoteDescription(answer)
  for (let turn = 0; turn < 150 && channel.readyState !== 'open'; turn++) await sleep(100)
  const setup = answer.sdp.match(/a=setup:(\w+)/)[1]
  console.log(`answer ${setup}: DTLS ${connection.sctpTransport.dtlsTransport.role}, stream ${channel.id}`)
  other.kill()
  process.exit()
}
main(process.argv[2])
JS
seen=$(timeout 60 node offer.cjs actpass && timeout 60 node offer.cjs active)
echo "$seen"
expected='answer active: DTLS server, stream 1
answer passive: DTLS client, stream 1'
[[ $seen == "$expected" ]] || { echo "werift-stream-parity: the output is another one now" >&2; exit 1; }
