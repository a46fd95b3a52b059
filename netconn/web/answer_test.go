//go:build !js

package web

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/internal/readwait"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// queued is a socket with the datagrams that next makes. With lends they lie in its own memory until the next read.
type queued struct {
	udp.Socket
	next    func() []byte // nil: nothing waits
	lends   bool
	memory  []byte
	reads   int
	answers int
}

func (q *queued) TryReadBatch(msgs []udp.Message) (int, error) {
	q.reads++
	for i := range q.memory {
		q.memory[i] = 0xee
	}
	q.memory = q.memory[:0]
	for i := range msgs {
		p := q.next()
		if p == nil {
			return i, nil
		}
		msgs[i].Addr = netip.MustParseAddrPort("192.0.2.9:999")
		if !q.lends {
			msgs[i].Lend(msgs[i].Buf[:copy(msgs[i].Buf, p)])
			continue
		}
		at := len(q.memory)
		q.memory = append(q.memory, p...)
		msgs[i].Lend(q.memory[at:len(q.memory):len(q.memory)])
	}
	return len(msgs), nil
}

func (q *queued) ReadBatch(msgs []udp.Message) (int, error) { return q.TryReadBatch(msgs) }

func (q *queued) WriteBatch(msgs []udp.Message) (int, error) {
	for i := range msgs {
		if isProbe(msgs[i].Buf, probeAnswer) {
			q.answers++
		}
	}
	return len(msgs), nil
}

func (q *queued) BatchSize() int                  { return 64 }
func (q *queued) LocalAddr() netip.AddrPort       { return netip.MustParseAddrPort("127.0.0.1:7777") }
func (q *queued) SetReadDeadline(time.Time) error { return nil }
func (q *queued) Close() error                    { return nil }

// sifting is both ends' sockets, and what each takes out.
var sifting = []struct {
	name   string
	probe  byte
	socket func(s udp.Socket) udp.Socket
}{
	{"server", probeAsk, Answer},
	{"client", probeAnswer, func(s udp.Socket) udp.Socket { return &Ladder{wait: readwait.New(), chosen: s, stop: func() {}} }},
}

// TestProbesWithoutEnd: probes that come faster than they are answered, and answers that come late, alone or with other datagrams, keep no tick from ending.
func TestProbesWithoutEnd(t *testing.T) {
	for _, end := range sifting {
		for _, other := range []int{0, 2, 10, 64, 1000} { // one in so many is no probe
			n := 0
			q := &queued{next: func() []byte {
				if n++; other > 0 && n%other == 0 {
					return []byte("nothing")
				}
				return newProbe(end.probe)
			}}
			const most = 2048
			d, err := driver.Listen("", driver.Config{Socket: end.socket(q), Link: driver.PlainSalted{}, MaxDatagrams: most})
			require.NoError(t, err)
			now := time.Now()
			for range 10 {
				before := q.reads
				now = now.Add(time.Second / 60)
				d.TickDispatch(now)
				d.TickFlush(now)
				require.LessOrEqual(t, q.reads-before, most/64+maxSifted, "%s, %d", end.name, other)
			}
			require.Equal(t, end.probe == probeAsk, q.answers > 0)
			require.NoError(t, d.Close())
		}
	}
}

// TestProbesTakeNoPlaces: a few probes, or late answers, among what waits leave none of it for the next tick, and all of it as it was.
func TestProbesTakeNoPlaces(t *testing.T) {
	for _, end := range sifting {
		for _, lends := range []bool{false, true} {
			for _, every := range []int{2, 7, 50, 64, 1000} {
				for _, wait := range []bool{false, true} {
					n, sent, probes := 0, 0, 0
					q := &queued{lends: lends, memory: make([]byte, 0, 64*probeBytes), next: func() []byte {
						if n++; n > 500 {
							return nil
						}
						if n%every == 0 {
							probes++
							return newProbe(end.probe)
						}
						sent++
						return binary.LittleEndian.AppendUint16(bytes.Repeat([]byte{7}, 20), uint16(sent))
					}}
					s := end.socket(q)
					read := s.TryReadBatch
					if wait {
						read = s.ReadBatch
					}
					msgs := make([]udp.Message, 64)
					for i := range msgs {
						msgs[i].Buf = make([]byte, 1500)
					}
					came := 0
					for got := len(msgs); got == len(msgs); {
						var err error
						got, err = read(msgs)
						require.NoError(t, err)
						for i := range got {
							came++
							p := msgs[i].Data()
							require.Equal(t, bytes.Repeat([]byte{7}, 20), p[:20])
							require.EqualValues(t, came, binary.LittleEndian.Uint16(p[20:]))
						}
					}
					require.Greater(t, n, 500, "%s, %d: nothing waits any more", end.name, every)
					require.Equal(t, sent, came)
					if end.probe == probeAsk {
						require.Equal(t, probes, q.answers)
					}
				}
			}
		}
	}
}
