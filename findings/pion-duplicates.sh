#!/usr/bin/env bash
# pion/sctp 1.12.1 (Go module proxy) never lists a duplicate TSN in a SACK.
#
# By RFC 9260 §6.2 a receiver SHOULD report each TSN that arrives again. Here one DATA chunk is
# sent twice, and both SACKs have the same cumulative TSN and no duplicate TSN. With pion as the
# receiver, a sender that uses duplicate TSNs to undo an unnecessary reduction of its window (RFC
# 3708) therefore gets no information.
#
# A reader would expect the list, because pion's SACK chunk has a field for it, and because
# usrsctp, aiortc and werift send it.
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
	"hash/crc32"
	"net"
	"time"

	"github.com/pion/logging"
	"github.com/pion/sctp"
)

type conn struct {
	*net.UDPConn
	peer *net.UDPAddr
}

func (c conn) Read(b []byte) (int, error)  { n, _, err := c.ReadFromUDP(b); return n, err }
func (c conn) Write(b []byte) (int, error) { return c.WriteToUDP(b, c.peer) }

func listen() *net.UDPConn {
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		panic(err)
	}
	return socket
}

var own, pions = listen(), listen()

// Sends one chunk, and returns the first chunk of the given type that comes.
func exchange(tag uint32, kind, flags byte, value []byte, wanted byte) []byte {
	packet := make([]byte, 16)
	binary.BigEndian.PutUint16(packet, 5000)
	binary.BigEndian.PutUint16(packet[2:], 5000)
	binary.BigEndian.PutUint32(packet[4:], tag)
	packet[12], packet[13] = kind, flags
	binary.BigEndian.PutUint16(packet[14:], uint16(4+len(value)))
	packet = append(packet, value...)
	binary.LittleEndian.PutUint32(packet[8:], crc32.Checksum(packet, crc32.MakeTable(crc32.Castagnoli)))
	if _, err := own.WriteTo(packet, pions.LocalAddr()); err != nil {
		panic(err)
	}
	for {
		answer := make([]byte, 2000)
		_ = own.SetReadDeadline(time.Now().Add(5 * time.Second))
		length, err := own.Read(answer)
		if err != nil {
			panic(err)
		}
		if answer[12] == wanted {
			return answer[16:length]
		}
	}
}

func main() {
	go func() {
		association, err := sctp.Server(sctp.Config{
			NetConn: conn{pions, own.LocalAddr().(*net.UDPAddr)}, LoggerFactory: logging.NewDefaultLoggerFactory(),
		})
		if err != nil {
			panic(err)
		}
		for {
			if _, err := association.AcceptStream(); err != nil {
				return
			}
		}
	}()
	// Tag 1, window 65536, 10 streams each way, TSN 7.
	answer := exchange(0, 1, 0, []byte{0, 0, 0, 1, 0, 1, 0, 0, 0, 10, 0, 10, 0, 0, 0, 7}, 2)
	tag := binary.BigEndian.Uint32(answer)
	var cookie []byte
	for at := 16; at+4 <= len(answer); {
		size := int(binary.BigEndian.Uint16(answer[at+2:]))
		if binary.BigEndian.Uint16(answer[at:]) == 7 {
			cookie = answer[at+4 : at+size]
		}
		at += (size + 3) / 4 * 4
	}
	exchange(tag, 10, 0, cookie, 11)
	for _, name := range []string{"first", "again"} {
		// TSN 7, stream 1, number 0, PPID 51.
		sack := exchange(tag, 0, 3, []byte{0, 0, 0, 7, 0, 1, 0, 0, 0, 0, 0, 51, 'f', 'o', 'u', 'r'}, 3)
		fmt.Printf("%s: cumulative TSN %d, %d blocks, %d duplicates\n", name, binary.BigEndian.Uint32(sack),
			binary.BigEndian.Uint16(sack[8:]), binary.BigEndian.Uint16(sack[10:]))
	}
}
GO
cat > go.mod <<'GO'
module finding

go 1.24

require (
	github.com/pion/logging v0.2.4
	github.com/pion/sctp v1.12.1
)
GO
timeout 300 go mod tidy 2> /dev/null
seen=$(timeout 300 go run .)
echo "$seen"
expected='first: cumulative TSN 7, 0 blocks, 0 duplicates
again: cumulative TSN 7, 0 blocks, 0 duplicates'
[[ $seen == "$expected" ]] || { echo "pion-duplicates: the output is another one now" >&2; exit 1; }
