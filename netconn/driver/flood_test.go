package driver

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/udp"
)

// flooded is a socket that is never empty: behind what peers send, there is always more of strangers'.
type flooded struct {
	udp.Socket
	from  netip.AddrPort
	read  int // datagrams of strangers since the last reset
	limit int // fails the test above that many: the tick has no end
	t     *testing.T
}

func (f *flooded) TryReadBatch(msgs []udp.Message) (int, error) {
	n, err := f.Socket.TryReadBatch(msgs)
	if err != nil {
		return n, err
	}
	for i := n; i < len(msgs); i++ {
		msgs[i].N, msgs[i].Addr = len(msgs[i].Buf[:1078]), f.from
		clear(msgs[i].Buf[:16])
	}
	if f.read += len(msgs) - n; f.read > f.limit {
		f.t.Fatalf("%d datagrams read in one tick", f.read)
	}
	return len(msgs), nil
}

func (f *flooded) ReadBatch(msgs []udp.Message) (int, error) { return f.TryReadBatch(msgs) }

// TestFloodEndsNoTick: a server whose socket is never empty reads MaxDatagrams in a tick, says so, and loses no client.
func TestFloodEndsNoTick(t *testing.T) {
	for name, link := range links() {
		for _, bound := range []int{0, 200} {
			var log bytes.Buffer
			m := newMemory(t, Config{Link: link, Channels: chat(&echo{}), MaxDatagrams: bound, Logger: slog.New(slog.NewTextHandler(&log, nil))},
				Config{Link: link, Channels: chat(&echo{})})
			f := &flooded{Socket: m.server.socket, from: netip.MustParseAddrPort("192.0.2.9:9"), t: t}
			m.server.socket = f
			if bound == 0 {
				bound = minDatagrams
			}
			f.limit = bound + 64 // the batch in which it is reached
			for range 100 {
				f.read = 0
				m.step()
			}
			f.limit *= 1000 // in all the ticks that follow
			m.talk(40)
			require.Nil(t, m.sres, name)
			require.Greater(t, m.server.Counters.ReadsBounded, uint64(100), name)
			require.Contains(t, log.String(), "MaxDatagrams", name)
		}
	}
}

// TestBoundLeavesNothing: what a tick leaves, the next ones take in.
func TestBoundLeavesNothing(t *testing.T) {
	a, b := udp.Pair(netip.MustParseAddrPort("127.0.0.1:7777"), netip.MustParseAddrPort("127.0.0.1:1234"))
	d, err := Listen("", Config{Socket: a, Link: PlainSalted{}, MaxDatagrams: 64})
	require.NoError(t, err)
	defer d.Close()
	out := make([]udp.Message, 200)
	for i := range out {
		out[i] = udp.Message{Buf: []byte{1, 2, 3}, Addr: a.LocalAddr()}
	}
	_, err = b.WriteBatch(out)
	require.NoError(t, err)
	now := d.epoch
	for i, want := range []uint64{64, 128, 192, 200, 200} {
		now = now.Add(time.Second / 60)
		d.TickDispatch(now)
		d.TickFlush(now)
		require.Equal(t, want, d.Counters.DatagramsIn, "tick %d", i)
	}
	require.EqualValues(t, 3, d.Counters.ReadsBounded)
}

// TestRunTicksUnderFlood: Run's ticks and Do's calls come, with Prompt and without, though the socket is never empty.
func TestRunTicksUnderFlood(t *testing.T) {
	for _, prompt := range []bool{false, true} {
		a, _ := udp.Pair(netip.MustParseAddrPort("127.0.0.1:7777"), netip.MustParseAddrPort("127.0.0.1:1234"))
		f := &flooded{Socket: a, from: netip.MustParseAddrPort("192.0.2.9:9"), limit: math.MaxInt, t: t}
		clock := time.Unix(1000, 0)
		d, err := Listen("", Config{Socket: f, Link: PlainSalted{}, Prompt: prompt, Clock: func() time.Time {
			clock = clock.Add(100 * time.Microsecond) // each look at the clock takes that long
			return clock
		}})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(context.Background())
		ticks, called := 0, false
		began := clock
		require.NoError(t, d.Run(ctx, func(now time.Time) {
			if ticks++; ticks == 30 {
				d.Do(func() { called = true })
			}
			if ticks == 60 {
				stop()
			}
		}))
		require.True(t, called)
		require.Less(t, clock.Sub(began), 1200*time.Millisecond, "60 ticks of 1/60 s, prompt %v", prompt)
		require.ErrorIs(t, d.Rebind(f), net.ErrClosed)
	}
}
