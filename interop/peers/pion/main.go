// pion/sctp as a peer, over plain UDP datagrams between two fixed ports.
package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pion/logging"
	"github.com/pion/sctp"
)

const (
	streams = 10
	header  = 24
	largest = 262144
	// Above the identifiers of WebRTC, because pion always sends messages of DCEP in order.
	ppidBase = 0x10000
)

func fail(format string, values ...any) {
	fmt.Printf("error: "+format+"\n", values...)
	os.Exit(1)
}

// arguments are the arguments that all peers have, as key=value.
type arguments struct {
	connects bool
	text     map[string]string
}

func parse(given []string) arguments {
	a := arguments{text: map[string]string{
		"local": "127.0.0.1", "remote": "127.0.0.1", "transport": "plain", "local-udp": "9899", "remote-udp": "9899",
		"port": "5000", "messages": "10000", "rto-min": "0", "seed": "1", "size": "0", "seconds": "3", "speaks": "none",
		"expects": "0",
	}}
	for _, one := range given {
		key, value, pair := strings.Cut(one, "=")
		_, known := a.text[key]
		switch {
		case one == "connect" || one == "accept":
			a.connects = one == "connect"
		case pair && known:
			a.text[key] = value
		default:
			fail("unknown argument: %s", one)
		}
	}
	if a.text["transport"] != "plain" || a.text["port"] != "5000" {
		fail("this peer has transport=plain port=5000")
	}
	return a
}

func (a arguments) number(key string) uint64 {
	n, err := strconv.ParseUint(a.text[key], 10, 64)
	if err != nil {
		fail("%s: %v", key, err)
	}
	return n
}

// message is a message as described in workload.h.
type message struct {
	index, ordinal, length uint32
	stream                 uint16
	unordered              bool
	state                  uint64
}

func draw(state *uint64) uint64 {
	*state += 0x9e3779b97f4a7c15
	z := *state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func drawnLength(index uint32, kind, r uint64) uint32 {
	kind %= 100
	switch {
	case index == 0:
		return largest
	case index == 1:
		return header
	case index < 402:
		return 1100 + index
	case kind < 60:
		return uint32(header + r%177)
	case kind < 90:
		return uint32(200 + r%1801)
	case kind < 99:
		return uint32(2000 + r%18001)
	}
	return uint32(20000 + r%242145)
}

// plan: with `ordered` no message is unordered.
func plan(seed uint64, index uint32, ordered bool, ordinals *[streams]uint32) message {
	m := message{index: index, state: seed ^ (uint64(index)+1)*0xd1b54a32d192ed03}
	kind, r, where := draw(&m.state), draw(&m.state), draw(&m.state)
	m.length = drawnLength(index, kind, r)
	m.stream = uint16(where % streams)
	m.unordered = (where>>32)%4 == 0 && !ordered
	if !m.unordered {
		m.ordinal = ordinals[m.stream]
		ordinals[m.stream]++
	}
	return m
}

func hash(body []byte) uint64 {
	h := fnv.New64a()
	h.Write(body)
	return h.Sum64()
}

func (m message) compose() []byte {
	out := make([]byte, (m.length+7)/8*8)
	for at := header; at < len(out); at += 8 {
		binary.LittleEndian.PutUint64(out[at:], draw(&m.state))
	}
	out = out[:m.length]
	binary.BigEndian.PutUint32(out, m.index)
	binary.BigEndian.PutUint16(out[4:], m.stream)
	if m.unordered {
		out[7] = 1
	}
	binary.BigEndian.PutUint32(out[8:], m.ordinal)
	binary.BigEndian.PutUint32(out[12:], m.length)
	binary.BigEndian.PutUint64(out[16:], hash(out[header:]))
	return out
}

// checker checks the received messages. pion does not report whether a message was unordered, so the flag in the message is used.
type checker struct {
	sync.Mutex
	expected, count uint32
	bytes           uint64
	seen            []bool
	// With partial reliability: number of messages that must arrive, and how many of them have arrived.
	partial                 bool
	reliable, reliableCount uint32
	next                    [streams]uint32
	all                     chan struct{}
}

func (c *checker) check(stream uint16, ppid uint32, data []byte) {
	c.Lock()
	defer c.Unlock()
	if len(data) < header {
		fail("message of %d bytes, shorter than its header", len(data))
	}
	index, ordinal := binary.BigEndian.Uint32(data), binary.BigEndian.Uint32(data[8:])
	switch sent := binary.BigEndian.Uint32(data[12:]); {
	case index >= c.expected:
		fail("message %d of %d", index, c.expected)
	case int(sent) != len(data):
		fail("message %d: %d bytes, sent %d", index, len(data), sent)
	case binary.BigEndian.Uint16(data[4:]) != stream:
		fail("message %d: on stream %d", index, stream)
	case ppid != index+ppidBase:
		fail("message %d: payload protocol identifier %d", index, ppid)
	case binary.BigEndian.Uint64(data[16:]) != hash(data[header:]):
		fail("message %d: another hash", index)
	case c.seen[index]:
		fail("message %d: twice", index)
	}
	if data[7]&1 == 0 {
		passesOver := c.partial && expendable(stream) && ordinal > c.next[stream]
		if ordinal != c.next[stream] && !passesOver {
			fail("message %d: ordinal %d on stream %d, expected %d", index, ordinal, stream, c.next[stream])
		}
		c.next[stream] = ordinal + 1
	}
	c.seen[index] = true
	c.count++
	c.bytes += uint64(len(data))
	if c.count == c.expected/4 {
		fmt.Println("quarter")
	}
	if c.partial {
		if !expendable(stream) {
			c.reliableCount++
			if c.reliableCount == c.reliable {
				close(c.all)
			}
		}
	} else if c.count == c.expected {
		fmt.Printf("received messages=%d bytes=%d\n", c.count, c.bytes)
		close(c.all)
	}
}

// complete reports whether all required messages have arrived.
func (c *checker) complete() bool {
	if c.partial {
		return c.reliableCount == c.reliable
	}
	return c.count == c.expected
}

// conclude prints at the end which messages have arrived, with partial reliability.
func (c *checker) conclude() {
	c.Lock()
	defer c.Unlock()
	if c.partial {
		fmt.Printf("received messages=%d bytes=%d reliable=%d\n", c.count, c.bytes, c.reliableCount)
	}
}

// expendable messages are never retransmitted in cases with partial reliability: messages of streams with odd numbers.
func expendable(stream uint16) bool { return stream%2 == 1 }

// read reads the messages of one stream until the stream ends, by a reset or with the association.
func (c *checker) read(s *sctp.Stream, ended func()) {
	defer ended()
	buffer := make([]byte, largest)
	for {
		n, ppid, err := s.ReadSCTP(buffer)
		if err != nil {
			return
		}
		c.check(s.StreamIdentifier(), uint32(ppid), buffer[:n])
	}
}

// readAnew reads the messages of each stream after its reset, when all messages before the reset are read.
func (c *checker) readAnew(association *sctp.Association, first [streams]chan struct{}, ended *sync.WaitGroup) {
	for {
		s, err := association.AcceptStream()
		if err != nil {
			return
		}
		ended.Add(1)
		go func() {
			<-first[s.StreamIdentifier()]
			c.read(s, ended.Done)
		}()
	}
}

// peerOnly is a UDP socket with one peer, which may not have started yet.
type peerOnly struct {
	*net.UDPConn
	peer *net.UDPAddr
}

func (p peerOnly) Read(b []byte) (int, error) {
	n, _, err := p.ReadFromUDP(b)
	return n, err
}

func (p peerOnly) Write(b []byte) (int, error) { return p.WriteToUDP(b, p.peer) }

func (p peerOnly) RemoteAddr() net.Addr { return p.peer }

func dial(a arguments) net.Conn {
	local, err := net.ResolveUDPAddr("udp", net.JoinHostPort(a.text["local"], a.text["local-udp"]))
	if err != nil {
		fail("%v", err)
	}
	remote, err := net.ResolveUDPAddr("udp", net.JoinHostPort(a.text["remote"], a.text["remote-udp"]))
	if err != nil {
		fail("%v", err)
	}
	socket, err := net.ListenUDP("udp", local)
	if err != nil {
		fail("%v", err)
	}
	_ = socket.SetReadBuffer(4 << 20)
	return peerOnly{socket, remote}
}

func associate(a arguments) *sctp.Association {
	log := logging.NewDefaultLoggerFactory()
	log.DefaultLogLevel = logging.LogLevelDisabled
	flood := a.number("size") > 0
	config := sctp.Config{
		NetConn: dial(a), LoggerFactory: log, BlockWrite: !flood, MaxReceiveBufferSize: 2 << 20, MaxMessageSize: largest, RTOMax: 10000,
	}
	if flood {
		config.MTU = 1472 // that of Ethernet, like the other peers
	}
	// pion always offers interleaving and partial reliability.
	fmt.Println("ready")
	open := sctp.Server
	if a.connects {
		open = sctp.Client
	}
	association, err := open(config)
	if err != nil {
		fail("%v", err)
	}
	fmt.Println("established")
	return association
}

func send(a arguments, association *sctp.Association, out []*sctp.Stream) {
	var ordinals [streams]uint32
	count := uint32(a.number("messages"))
	partial := a.text["speaks"] == "partial"
	for i := range count {
		// pion processes the stream numbers of a FORWARD TSN only while it sends ordered messages on that stream itself.
		m := plan(a.number("seed"), i, partial, &ordinals)
		s := out[m.stream]
		kind := sctp.ReliabilityTypeReliable
		if partial && expendable(m.stream) {
			kind = sctp.ReliabilityTypeRexmit
		}
		s.SetReliabilityParams(m.unordered, kind, 0)
		if _, err := s.WriteSCTP(m.compose(), sctp.PayloadProtocolIdentifier(m.index+ppidBase)); err != nil {
			fail("send of message %d: %v", i, err)
		}
	}
	fmt.Printf("sent messages=%d\n", count)
}

// flood sends messages of one size for a time, with at most 1 MiB queued, and shuts down.
func flood(a arguments, association *sctp.Association, s *sctp.Stream) {
	message := make([]byte, a.number("size"))
	low := make(chan struct{}, 1)
	s.SetBufferedAmountLowThreshold(1 << 19)
	s.OnBufferedAmountLow(func() {
		select {
		case low <- struct{}{}:
		default:
		}
	})
	end := time.Now().Add(time.Duration(a.number("seconds")) * time.Second)
	for i := 0; i%64 != 0 || time.Now().Before(end); i++ {
		if _, err := s.WriteSCTP(message, 0); err != nil {
			fail("send: %v", err)
		}
		for s.BufferedAmount() > 1<<20 {
			<-low
		}
	}
	if err := association.Shutdown(context.Background()); err != nil {
		fail("shutdown: %v", err)
	}
}

// A flood also ends after a silence: if the last packets of a shutdown are lost, the other end has gone and the association stays. A new
// deadline costs a goroutine, so it is renewed at intervals and not for each message.
const (
	silence = 60 * time.Second
	renewal = 5 * time.Second
)

// tally counts the messages of a flood until it ends.
func tally(s *sctp.Stream) {
	buffer := make([]byte, largest)
	var messages, bytes int
	var first, last, set time.Time
	for {
		if messages > 0 && last.Sub(set) > renewal {
			set = last
			if err := s.SetReadDeadline(set.Add(silence + renewal)); err != nil {
				fail("deadline: %v", err)
			}
		}
		n, _, err := s.ReadSCTP(buffer)
		if err != nil {
			break
		}
		last = time.Now()
		if messages == 0 {
			first = last
		}
		messages++
		bytes += n
	}
	fmt.Printf("rate messages=%d bytes=%d seconds=%.6f\n", messages, bytes, last.Sub(first).Seconds())
}

func main() {
	a := parse(os.Args[1:])
	association := associate(a)
	if a.number("size") > 0 {
		s, err := association.OpenStream(0, 0)
		if err != nil {
			fail("stream: %v", err)
		}
		if a.connects {
			flood(a, association, s)
		} else {
			tally(s)
		}
		fmt.Println("closed")
		select {}
	}
	count := uint32(a.number("messages"))
	c := &checker{expected: count, seen: make([]bool, count), all: make(chan struct{})}
	c.partial, c.reliable = a.text["speaks"] == "partial", uint32(a.number("expects"))
	out := make([]*sctp.Stream, streams)
	var ended sync.WaitGroup
	ended.Add(streams)
	resets := a.text["speaks"] == "resets"
	var first [streams]chan struct{}
	for i := range out {
		var err error
		if out[i], err = association.OpenStream(uint16(i), 0); err != nil {
			fail("stream %d: %v", i, err)
		}
		first[i] = make(chan struct{})
		go c.read(out[i], func() {
			close(first[i])
			ended.Done()
		})
	}
	if resets {
		ended.Add(1)
		go func() {
			c.readAnew(association, first, &ended)
			ended.Done()
		}()
	}
	go func() {
		ended.Wait()
		c.Lock()
		defer c.Unlock()
		if !c.complete() {
			fail("over after %d messages of %d", c.count, c.expected)
		}
	}()
	send(a, association, out)
	if resets {
		// Only one stream is reset, at the end: pion does not report when a reset is done, and no stream may be reset before that.
		if err := out[0].Close(); err != nil {
			fail("reset: %v", err)
		}
	}
	<-c.all
	if a.connects {
		patience, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		defer cancel()
		if err := association.Shutdown(patience); err != nil {
			fail("shutdown: %v", err)
		}
	} else if !resets {
		// Until the association ends. Data that arrived before a stream was opened here has opened that stream, which is ours too.
		for {
			s, err := association.AcceptStream()
			if err != nil {
				break
			}
			if s.StreamIdentifier() >= streams {
				fail("stream %d, that nobody opened", s.StreamIdentifier())
			}
		}
	}
	ended.Wait()
	c.conclude()
	fmt.Println("closed")
	select {} // until it is ended
}
