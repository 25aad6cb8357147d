#!/usr/bin/env bash
# github.com/google/gopacket 1.1.19 (Go module proxy) treats all bytes after the header of the
# first DATA chunk of an SCTP packet as user data of this chunk.
#
# Senders bundle small messages (RFC 9260 §6.10). For a packet with two DATA chunks gopacket
# returns one SCTPData layer, whose payload is the first message, its padding, and the second
# chunk with its header. The payload of a single DATA chunk has the correct length.
#
# A reader would expect a layer for each chunk, as gopacket has for control chunks.
set -euo pipefail
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"
export GOPATH=$work/go GOFLAGS=-mod=mod
cat > main.go <<'GO'
package main

import (
	"encoding/binary"
	"fmt"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

func data(number uint32, text string) []byte {
	chunk := make([]byte, 16, 32)
	chunk[1] = 3
	binary.BigEndian.PutUint16(chunk[2:], uint16(16+len(text)))
	binary.BigEndian.PutUint32(chunk[4:], number)
	chunk = append(chunk, text...)
	for len(chunk)%4 != 0 {
		chunk = append(chunk, 0)
	}
	return chunk
}

func show(name string, chunks ...[]byte) {
	packet := []byte{0x13, 0x88, 0x13, 0x88, 0, 0, 0, 1, 0, 0, 0, 0}
	for _, chunk := range chunks {
		packet = append(packet, chunk...)
	}
	read := gopacket.NewPacket(packet, layers.LayerTypeSCTP, gopacket.Default)
	fmt.Printf("%s:", name)
	for _, layer := range read.Layers() {
		if data, is := layer.(*layers.SCTPData); is {
			fmt.Printf(" SCTPData with a payload of %d bytes", len(data.LayerPayload()))
		}
	}
	fmt.Println()
}

func main() {
	show("one message of 5 bytes", data(1, "first"))
	show("two messages of 5 bytes", data(1, "first"), data(2, "other"))
}
GO
cat > go.mod <<'GO'
module finding

go 1.21

require github.com/google/gopacket v1.1.19
GO
timeout 300 go mod tidy 2> /dev/null
seen=$(timeout 300 go run .)
echo "$seen"
expected='one message of 5 bytes: SCTPData with a payload of 5 bytes
two messages of 5 bytes: SCTPData with a payload of 29 bytes'
[[ $seen == "$expected" ]] || { echo "gopacket-bundled-data: the output is another one now" >&2; exit 1; }
