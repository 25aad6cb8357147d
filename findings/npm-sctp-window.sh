#!/usr/bin/env bash
# SCTP in JavaScript (npm: sctp 1.0.0) never delivers a message of 20,000 bytes, which is larger
# than its receive window of 16 KiB, nor any later message of the association.
#
# It announces an a_rwnd of 16384 and delivers whole messages only. When the fragments of a
# message fill the window, the window closes, and the message can never be completed. For this
# case RFC 9260 §6.9 has partial delivery, so that a message of any size can be received. Neither
# end reports an error.
#
# A reader would expect that a limit on messages is announced or reported, or that a larger
# message is delivered in parts.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo '{ "private": true }' > package.json
timeout 120 npm install --silent --no-audit --no-fund sctp@1.0.0 > npm.txt 2>&1
cat > case.cjs <<'JS'
const sctp = require('sctp')
const dgram = require('dgram')
const [near, far] = [dgram.createSocket('udp4'), dgram.createSocket('udp4')]
const end = (own, other, more) => sctp.connect({
  localPort: 5000, port: 5000, udpTransport: own,
  udpPeer: { host: '127.0.0.1', port: other.address().port }, ...more,
})
near.bind(0, '127.0.0.1', () => far.bind(0, '127.0.0.1', () => {
  const reader = end(far, near, { passive: true })
  reader.on('data', (data) => console.log('received', data.length))
  reader.on('error', (error) => console.log('reader:', error.message))
  const writer = end(near, far, {})
  writer.on('error', (error) => console.log('writer:', error.message))
  writer.on('connect', () => {
    for (const size of process.argv.slice(2)) writer.write(Buffer.alloc(+size))
  })
}))
setTimeout(() => process.exit(), 8000)
JS
seen=$(echo "5 15000 5:" && timeout 30 node case.cjs 5 15000 5 && echo "5 20000 5:" &&
  timeout 30 node case.cjs 5 20000 5)
echo "$seen"
expected='5 15000 5:
received 5
received 15000
received 5
5 20000 5:
received 5'
[[ $seen == "$expected" ]] || { echo "npm-sctp-window: the output is another one now" >&2; exit 1; }
