#!/usr/bin/env bash
# gopacket reads the Gap Ack Blocks of a SACK as if each block had two bytes. This concerns the
# maintained fork github.com/gopacket/gopacket 1.7.7 and github.com/google/gopacket 1.1.19.
#
# A block has a start and an end of 16 bits each (RFC 9260 §3.3.4). gopacket reads as many 16-bit
# numbers as there are blocks, and treats the remaining bytes as duplicate TSNs. For the blocks 2
# to 3 and 5 to 7 it lists 2 and 3, and reports a duplicate TSN of 327687, which is the second
# block. A SACK with duplicate TSNs and without blocks is read correctly.
#
# A reader would expect start and end of every block, or a fork in which the fault is fixed.
set -euo pipefail
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"
export GOPATH=$work/go GOFLAGS=-mod=mod
cat > main.go <<'GO'
package main

import (
	"fmt"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	oldpacket "github.com/google/gopacket"
	oldlayers "github.com/google/gopacket/layers"
)

func main() {
	packet := []byte{
		0x13, 0x88, 0x13, 0x88, 0, 0, 0, 1, 0, 0, 0, 0,
		3, 0, 0, 28, 0, 0, 0, 99, 0, 1, 0, 0, 0, 2, 0, 1,
		0, 2, 0, 3, 0, 5, 0, 7, // the blocks
		0, 0, 0, 98, // the duplicate
	}
	fork := gopacket.NewPacket(packet, layers.LayerTypeSCTP, gopacket.Default)
	sack := fork.Layer(layers.LayerTypeSCTPSack).(*layers.SCTPSack)
	fmt.Println("1.7.7:", sack.NumGapACKs, "blocks", sack.GapACKs, "duplicates", sack.DuplicateTSNs)
	old := oldpacket.NewPacket(packet, oldlayers.LayerTypeSCTP, oldpacket.Default)
	before := old.Layer(oldlayers.LayerTypeSCTPSack).(*oldlayers.SCTPSack)
	fmt.Println("1.1.19:", before.NumGapACKs, "blocks", before.GapACKs, "duplicates", before.DuplicateTSNs)
}
GO
cat > go.mod <<'GO'
module finding

go 1.24

require (
	github.com/google/gopacket v1.1.19
	github.com/gopacket/gopacket v1.7.7
)
GO
timeout 300 go mod tidy 2> /dev/null
seen=$(timeout 300 go run .)
echo "$seen"
expected='1.7.7: 2 blocks [2 3] duplicates [327687]
1.1.19: 2 blocks [2 3] duplicates [327687]'
[[ $seen == "$expected" ]] || { echo "gopacket-sack: the output is another one now" >&2; exit 1; }
