package stream

import (
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

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

// TestFIFOGrows: a ring has 1 KiB at first, and twice as much or what is needed each time that it is full, up to its limit, where it stays.
func TestFIFOGrows(t *testing.T) {
	f := fifo{limit: 5000}
	grew := map[int]int{}
	for n := range 5000 {
		require.Equal(t, 1, f.write([]byte{byte(n)}))
		if grew[len(f.b)] == 0 {
			grew[len(f.b)] = n
		}
	}
	require.Equal(t, map[int]int{1024: 1, 2048: 1024, 4096: 2048, 5000: 4096}, grew)
	require.Zero(t, f.write([]byte{1}))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		f.drop(10)
		f.write(make([]byte, 100))
	}), "at its limit")
	for size, want := range map[int]int{1: 1024, 1024: 1024, 1025: 2048, 2048: 2048, 3000: 4096, 4097: 5000, 9000: 5000} {
		p := make([]byte, size)
		require.EqualValues(t, 1, testing.AllocsPerRun(10, func() {
			f = fifo{limit: 5000}
			f.write(p)
		}), "%d bytes at once", size)
		require.Len(t, f.b, want, "%d", size)
		require.Equal(t, min(size, 5000), f.n)
	}
}

// foreign is a Conn that nobody drives, for what a peer may send.
func foreign(window int) *Conn {
	c := &Conn{cfg: Config{Window: window}, credit: InitialCredit, granted: uint64(window)}
	c.wake = sync.NewCond(&c.mu)
	c.in.limit = window
	return c
}

// unrun is a foreign Conn whose work is never done.
func unrun() *Conn {
	c := foreign(InitialCredit)
	c.out.limit, c.scheduled = 10, true
	return c
}

// TestErrorsOfAConn: what Read and Write return in each state, the first of several that counts. What was received before is read, unless this end has closed.
func TestErrorsOfAConn(t *testing.T) {
	closed := func(c *Conn) { require.NoError(t, c.Close()) }
	closedWrite := func(c *Conn) { require.NoError(t, c.CloseWrite()) }
	passed := func(c *Conn) { require.NoError(t, c.SetDeadline(time.Now().Add(-time.Second))) }
	refused := func(c *Conn) { c.refusal = NoListener }
	stopped := func(c *Conn) { require.NoError(t, receive(c, []byte{segStop})) }
	fin := func(c *Conn) { require.NoError(t, receive(c, []byte{segFin})) }
	parting := func(c *Conn) { c.part() }
	ended := func(c *Conn) { c.end() }
	for i, v := range []struct {
		in          []func(c *Conn)
		read, write error // nil: Read would wait
	}{
		{},
		{[]func(c *Conn){closed, stopped, refused, fin, ended}, net.ErrClosed, net.ErrClosed},
		{[]func(c *Conn){closedWrite, ended}, ErrLost, net.ErrClosed},
		{[]func(c *Conn){closedWrite, stopped, ended}, ErrLost, ErrPeerClosed},
		{[]func(c *Conn){closedWrite, fin}, io.EOF, net.ErrClosed},
		{[]func(c *Conn){passed, refused, stopped, fin, ended}, os.ErrDeadlineExceeded, os.ErrDeadlineExceeded},
		{[]func(c *Conn){refused, stopped, fin, ended}, NoListener, NoListener},
		{[]func(c *Conn){stopped}, nil, ErrPeerClosed},
		{[]func(c *Conn){stopped, fin, ended}, io.EOF, ErrPeerClosed},
		{[]func(c *Conn){fin, ended}, io.EOF, ErrLost},
		{[]func(c *Conn){parting}, nil, ErrLost},
		{[]func(c *Conn){ended}, ErrLost, ErrLost},
	} {
		for _, came := range []bool{false, true} {
			c := unrun()
			if came {
				require.NoError(t, receive(c, []byte{segData, 1, 0, 7}))
			}
			for _, f := range v.in {
				f(c)
			}
			n, err := c.Write(make([]byte, 10))
			require.ErrorIs(t, err, v.write, "%d", i)
			require.Equal(t, v.write == nil, n == 10, "%d", i)
			if came && !c.closed && !c.readUntil.passed {
				n, err = c.Read(make([]byte, 10))
				require.NoError(t, err, "%d", i)
				require.Equal(t, 1, n, "%d", i)
			}
			if v.read != nil {
				_, err = c.Read(make([]byte, 10))
				require.ErrorIs(t, err, v.read, "%d", i)
			}
		}
	}
}

// TestCreditOfAClosedConn: a stream that is closed allows its peer what an open one does at first, so that it can send its end, and nothing more.
func TestCreditOfAClosedConn(t *testing.T) {
	for _, closed := range []bool{false, true} {
		for _, more := range []uint64{0, 1} {
			c := unrun()
			c.closed, c.creditDue, c.granted = closed, true, InitialCredit+more
			seg := c.next()
			if closed && more > 0 {
				require.Nil(t, seg)
				continue
			}
			require.Equal(t, []byte{segCredit, 0, InitialCredit >> 8, 0, 0, 0, 0, 0, 0}, seg)
		}
	}
}

// TestNothingIsHeldInVain: what comes for a stream that is closed is thrown away and counts as taken; what was written is let go of with the stream's end, whatever ends it.
func TestNothingIsHeldInVain(t *testing.T) {
	c := unrun()
	require.NoError(t, c.Close())
	require.NoError(t, receive(c, []byte{segData, 3, 0, 7, 8, 9, segFin}))
	require.Empty(t, c.in.b)
	require.EqualValues(t, 3, c.taken)
	require.True(t, c.peerFin, "what follows the data is read")
	for _, end := range []func(c *Conn){(*Conn).end, func(c *Conn) { c.did([]byte{segFin}) }} {
		c := unrun()
		c.ch = new(channel.Channel)
		_, err := c.Write([]byte{1})
		require.NoError(t, err)
		end(c)
		require.Empty(t, c.out.b)
		require.Zero(t, c.out.n)
		require.Equal(t, c.ended, c.ch == nil)
	}
}

// TestWaitersAreWoken: whoever waits in Read or Write is told at once when this end closes, or a deadline is set that has passed, and at a deadline that is set meanwhile.
func TestWaitersAreWoken(t *testing.T) {
	for i, v := range []struct {
		wake        func(c *Conn) error
		read, write error // nil: it waits on
		after       time.Duration
	}{
		{(*Conn).Close, net.ErrClosed, net.ErrClosed, 0},
		{(*Conn).CloseWrite, nil, net.ErrClosed, 0},
		{func(c *Conn) error { return c.SetDeadline(time.Now()) }, os.ErrDeadlineExceeded, os.ErrDeadlineExceeded, 0},
		{func(c *Conn) error { return c.SetReadDeadline(time.Now().Add(-time.Second)) }, os.ErrDeadlineExceeded, nil, 0},
		{func(c *Conn) error { return c.SetWriteDeadline(time.Now().Add(-time.Second)) }, nil, os.ErrDeadlineExceeded, 0},
		{func(c *Conn) error { return c.SetDeadline(time.Now().Add(time.Second)) }, os.ErrDeadlineExceeded, os.ErrDeadlineExceeded, time.Second},
		{func(c *Conn) error { c.part(); return nil }, nil, ErrLost, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := unrun()
			read, write := make(chan error, 1), make(chan error, 1)
			go func() {
				_, err := c.Read(make([]byte, 1))
				read <- err
			}()
			go func() {
				_, err := c.Write(make([]byte, 100))
				write <- err
			}()
			time.Sleep(time.Second)
			require.NoError(t, v.wake(c))
			begin := time.Now()
			for what, told := range map[chan error]error{read: v.read, write: v.write} {
				if told != nil {
					require.ErrorIs(t, <-what, told, "%d", i)
					require.Equal(t, v.after, time.Since(begin), "%d", i)
					continue
				}
				synctest.Wait()
				require.Empty(t, what, "%d", i)
			}
			c.end()
		})
	}
}

// TestClosedKeepsNothing: a stream that is closed leaves no timer behind that would keep it, neither does a deadline that was replaced; what wasn't read is thrown away, and its memory
// given back.
func TestClosedKeepsNothing(t *testing.T) {
	for i, later := range []func(c *Conn) error{
		(*Conn).Close,
		func(c *Conn) error { return c.SetDeadline(time.Time{}) },
		func(c *Conn) error { return c.SetDeadline(time.Now().Add(-time.Second)) },
	} {
		var all []weak.Pointer[Conn]
		for range 10 {
			c := unrun()
			require.NoError(t, receive(c, []byte{segData, 2, 0, 7, 8}))
			require.NoError(t, c.SetDeadline(time.Now().Add(time.Hour)))
			require.NoError(t, later(c))
			if c.closed {
				require.Empty(t, c.in.b)
				require.EqualValues(t, 2, c.taken)
				require.ErrorIs(t, c.CloseWrite(), net.ErrClosed)
				require.ErrorIs(t, c.SetDeadline(time.Time{}), net.ErrClosed)
			}
			all = append(all, weak.Make(c))
		}
		runtime.GC()
		kept := 0
		for _, p := range all {
			if p.Value() != nil {
				kept++
			}
		}
		require.LessOrEqual(t, kept, 2, "%d", i) // the stack may have some
	}
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
