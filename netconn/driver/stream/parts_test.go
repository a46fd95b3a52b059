package stream

import (
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// TestFIFO compares the ring with a slice.
func TestFIFO(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	f, model := fifo{limit: 5000}, []byte{}
	for i := range 20_000 {
		if rng.IntN(2) == 0 {
			p := make([]byte, rng.IntN(1500))
			for j := range p {
				p[j] = byte(rng.Uint32())
			}
			n := f.write(p)
			require.Equal(t, min(len(p), 5000-len(model)), n, "seed %d step %d", seed, i)
			model = append(model, p[:n]...)
		} else {
			p := make([]byte, rng.IntN(1500))
			n := f.read(p)
			require.Equal(t, model[:min(len(p), len(model))], p[:n], "seed %d step %d", seed, i)
			model = model[n:]
		}
		require.Equal(t, len(model), f.n)
		require.LessOrEqual(t, len(f.b), 5000)
	}
}

// foreign is a Conn that nobody drives, for what a peer may send.
func foreign(window int) *Conn {
	c := &Conn{cfg: Config{Window: window}, credit: InitialCredit, granted: uint64(window)}
	c.wake = sync.NewCond(&c.mu)
	c.in.limit = window
	return c
}

func receive(c *Conn, p []byte) error {
	in := bunch.In{Header: bunch.Header{Reliable: true, Bits: len(p) * 8}}
	in.Data.Reset(p, len(p)*8)
	return c.receive(&in)
}

func TestForeignSegments(t *testing.T) {
	data := func(n int) []byte { return append([]byte{segData, byte(n), byte(n >> 8)}, make([]byte, n)...) }
	for _, x := range []struct {
		what string
		p    []byte
		want error
	}{
		{"nothing", nil, nil},
		{"data and credit in one bunch", append(data(5), segCredit, 1, 0, 0, 0, 0, 0, 0, 0), nil},
		{"all that is allowed", data(InitialCredit), nil},
		{"a byte more", data(InitialCredit + 1), ErrCredit},
		{"cut data", data(9)[:8], ErrFormat},
		{"no data", data(0), ErrFormat},
		{"a cut length", []byte{segData, 1}, ErrFormat},
		{"a cut credit", []byte{segCredit, 1, 2, 3}, bitio.ErrShort},
		{"an unknown kind", []byte{5}, ErrFormat},
		{"two fins", []byte{segFin, segFin}, ErrFormat},
		{"data behind a fin", append([]byte{segFin}, data(1)...), ErrFormat},
		{"credit and stop behind a fin", []byte{segFin, segCredit, 1, 0, 0, 0, 0, 0, 0, 0, segStop}, nil},
		{"fin and stop", []byte{segStop, segFin}, nil},
	} {
		err := receive(foreign(InitialCredit), x.p)
		if x.want == nil {
			require.NoError(t, err, x.what)
		} else {
			require.ErrorIs(t, err, x.want, x.what)
		}
	}
	unreliable := bunch.In{}
	require.ErrorIs(t, foreign(InitialCredit).receive(&unreliable), ErrFormat)
}

func FuzzReceive(f *testing.F) {
	f.Add([]byte{segData, 2, 0, 7, 8, segFin}, []byte{segStop})
	f.Add([]byte{segCredit, 255, 255, 255, 255, 255, 255, 255, 255}, []byte{segData, 255, 255})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		c := foreign(InitialCredit)
		for _, p := range [][]byte{a, b} {
			_ = receive(c, p)
			require.LessOrEqual(t, c.in.n, InitialCredit)
			require.LessOrEqual(t, len(c.in.b), InitialCredit)
			require.GreaterOrEqual(t, c.credit, uint64(InitialCredit))
		}
	})
}

// looped is a client and a server on loopback, ticked by hand, and a stream's two ends.
func looped(t testing.TB) (step func(), c *Conn, s net.Conn) {
	l := Listen(name, Config{})
	server, err := driver.Listen("127.0.0.1:0", driver.Config{NetSpeed: 100_000_000, Channels: []channel.Type{l.Type()}})
	require.NoError(t, err)
	client, err := driver.Dial(server.LocalAddr().String(), driver.Config{NetSpeed: 100_000_000, Channels: []channel.Type{Type(name)}})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		require.NoError(t, client.Close())
	})
	now := time.Now()
	step = func() {
		now = now.Add(time.Second / 60)
		client.TickDispatch(now)
		client.TickFlush(now)
		server.TickDispatch(now)
		server.TickFlush(now)
	}
	for client.Server() == nil || !client.Server().Joined() {
		step()
	}
	c, err = Open(client.Server(), name, Config{})
	require.NoError(t, err)
	for len(l.waiting) == 0 {
		step()
	}
	s, err = l.Accept()
	require.NoError(t, err)
	return step, c, s
}

// TestRoomIsToldByHalves: a stream tells its peer of room when half of the window was read since, not at each read, and not to a peer that sends no more.
func TestRoomIsToldByHalves(t *testing.T) {
	c := &Conn{cfg: Config{Window: 100}, granted: 100, scheduled: true}
	for range 3 {
		c.take(49)
		require.False(t, c.creditDue)
		c.take(1)
		require.True(t, c.creditDue)
		c.granted, c.creditDue = c.taken+100, false
	}
	c.peerFin = true
	c.take(100)
	require.False(t, c.creditDue)
}

// TestAllocs: bytes written, carried and read cost no allocation.
func TestAllocs(t *testing.T) {
	step, c, s := looped(t)
	p, buf := make([]byte, 700), make([]byte, 1000)
	round := func() {
		if n, err := c.Write(p); n != len(p) || err != nil {
			t.Error(n, err)
		}
		step()
		for s.(*Conn).in.n == 0 {
			step()
		}
		if n, err := s.Read(buf); n != len(p) || err != nil {
			t.Error(n, err)
		}
	}
	for range 5000 { // rings and pools grow to their size
		round()
	}
	require.Zero(t, testing.AllocsPerRun(500, round))
}

// BenchmarkStream is the cost of carrying 64 KiB, both ends and the system's loopback included.
func BenchmarkStream(b *testing.B) {
	step, c, s := looped(b)
	p, buf := make([]byte, 64<<10), make([]byte, 64<<10)
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	for b.Loop() {
		_, err := c.Write(p)
		require.NoError(b, err)
		for n := 0; n < len(p); {
			step()
			for s.(*Conn).in.n > 0 {
				m, err := s.Read(buf)
				require.NoError(b, err)
				n += m
			}
		}
	}
}
