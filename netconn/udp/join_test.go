//go:build !wasm

package udp

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLocalDialsAnyAddress: a server at an unspecified address is reached in memory by every address that the host's client may dial, and
// answers from that.
func TestLocalDialsAnyAddress(t *testing.T) {
	s, other := Pair(netip.MustParseAddrPort("[::]:7777"), netip.MustParseAddrPort("10.0.0.2:2"))
	both, own := WithLocal(s, local)
	in := messages(4)
	for _, dialed := range []string{"127.0.0.1:7777", "[::1]:7777", "192.0.2.1:7777"} {
		to := netip.MustParseAddrPort(dialed)
		_, err := own.WriteBatch([]Message{{Buf: []byte("hi"), Addr: to}})
		require.NoError(t, err)
		_, err = other.WriteBatch([]Message{{Buf: []byte("hi too"), Addr: s.LocalAddr()}})
		require.NoError(t, err)
		n, err := both.TryReadBatch(in)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		require.ElementsMatch(t, []netip.AddrPort{local, other.LocalAddr()}, []netip.AddrPort{in[0].Addr, in[1].Addr})
		_, err = both.WriteBatch([]Message{{Buf: []byte("ho"), Addr: other.LocalAddr()}, {Buf: []byte("ho"), Addr: local}, {Buf: []byte("ho"), Addr: other.LocalAddr()}})
		require.NoError(t, err)
		n, err = own.TryReadBatch(in)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, to, in[0].Addr)
		n, err = other.TryReadBatch(in)
		require.NoError(t, err)
		require.Equal(t, 2, n)
	}
}

// TestLocalBound: what nobody reads is lost beyond 1024 datagrams, and neither a player in memory nor the others wait for more than one batch
// while the other side floods.
func TestLocalBound(t *testing.T) {
	s, other := Pair(netip.MustParseAddrPort("[::]:7777"), netip.MustParseAddrPort("10.0.0.2:2"))
	both, own := WithLocal(s, local)
	for range 2000 {
		_, err := other.WriteBatch([]Message{{Buf: []byte("flood"), Addr: s.LocalAddr()}})
		require.NoError(t, err)
	}
	for range 2000 {
		_, err := own.WriteBatch([]Message{{Buf: []byte("flood"), Addr: s.LocalAddr()}})
		require.NoError(t, err)
	}
	in, batches := messages(64), map[netip.AddrPort]int{}
	for turn := range 32 {
		n, err := both.TryReadBatch(in)
		require.NoError(t, err)
		require.Equal(t, 64, n)
		batches[in[0].Addr]++
		require.Equal(t, turn/2+1, batches[in[0].Addr], "each has every second batch")
		require.Equal(t, in[0].Addr, in[63].Addr)
	}
	require.Equal(t, map[netip.AddrPort]int{local: 16, other.LocalAddr(): 16}, batches)
	n, err := both.TryReadBatch(in)
	require.NoError(t, err)
	require.Zero(t, n)
}

// reads is a socket with one datagram to be read: lent, or copied as a socket of another package does.
type reads struct {
	far
	p    string
	lend bool
}

func (r *reads) TryReadBatch(msgs []Message) (int, error) {
	if r.p == "" {
		return 0, nil
	}
	if r.lend {
		msgs[0].Lend([]byte(r.p))
	} else {
		msgs[0].N = copy(msgs[0].Buf, r.p)
	}
	r.p = ""
	return 1, nil
}

// TestLentThenCopied: what one socket lent isn't read again as the datagram that another copies later.
func TestLentThenCopied(t *testing.T) {
	main, side := &reads{}, &reads{p: "lent", lend: true}
	j, in := Join(main, side), messages(1)
	for _, want := range []string{"lent", "copied"} {
		n, err := j.TryReadBatch(in)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, want, string(in[0].Data()))
		main.p = "copied"
	}
}

// TestJoinedOrder: in a batch to peers of both sides those of the main socket come together, in order, and a refusal loses only what is refused.
func TestJoinedOrder(t *testing.T) {
	main := &fussy{}
	j := Join(main, &far{port: 1}, &far{port: 2})
	var batch []Message
	for i := range 9 {
		batch = append(batch, Message{Buf: []byte{byte(i)}, Addr: netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), uint16(i%3))})
	}
	for len(batch) > 0 {
		n, err := j.WriteBatch(batch)
		if batch = batch[n:]; err != nil {
			require.ErrorIs(t, err, errFussy)
			batch = batch[1:]
		}
	}
	require.Equal(t, [][]byte{{0, 3, 6}, {6}}, main.got, "one batch, up to what is refused, and the rest")
	require.Equal(t, []byte{1, 4, 7}, j.(*joined).sides[0].(*far).got)
	require.Equal(t, []byte{2, 5, 8}, j.(*joined).sides[1].(*far).got)
}

var errFussy = errors.New("refused")

// fussy notes batches, and refuses the datagram 3.
type fussy struct {
	Socket
	got [][]byte
}

func (f *fussy) WriteBatch(msgs []Message) (int, error) {
	var all []byte
	for i := range msgs {
		all = append(all, msgs[i].Buf[0])
	}
	f.got = append(f.got, all)
	if i := bytes.IndexByte(all, 3); i >= 0 {
		return i, errFussy
	}
	return len(msgs), nil
}

// far has the peers of one port.
type far struct {
	Socket
	port uint16
	got  []byte
}

func (f *far) Has(a netip.AddrPort) bool { return a.Port() == f.port }
func (f *far) OnArrival(func())          {}
func (f *far) WriteBatch(msgs []Message) (int, error) {
	for i := range msgs {
		f.got = append(f.got, msgs[i].Buf[0])
	}
	return len(msgs), nil
}

func TestAllocsMemory(t *testing.T) {
	s, _ := Pair(netip.MustParseAddrPort("[::]:7777"), netip.MustParseAddrPort("10.0.0.2:2"))
	both, own := WithLocal(s, local)
	there, back, in := messages(8), messages(8), messages(8)
	for i := range there {
		there[i].Buf, there[i].Addr, back[i].Buf, back[i].Addr = there[i].Buf[:100], s.LocalAddr(), back[i].Buf[:100], local
	}
	round := func() {
		if _, err := own.WriteBatch(there); err != nil {
			t.Error(err)
		}
		if _, err := both.WriteBatch(back); err != nil {
			t.Error(err)
		}
		for _, s := range []Socket{own, both} {
			if _, err := s.TryReadBatch(in); err != nil {
				t.Error(err)
			}
		}
	}
	round()
	require.Zero(t, testing.AllocsPerRun(200, round))
	require.NoError(t, both.SetReadDeadline(time.Unix(1, 0)))
	require.Zero(t, testing.AllocsPerRun(200, func() {
		if _, err := both.ReadBatch(in); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
	}), "a deadline that has passed")
}

// TestLocalStress: a reader that waits gets all that comes from both sides, while deadlines are set by others, and Close ends it.
func TestLocalStress(t *testing.T) {
	const each = 100
	for name, cfg := range kinds {
		s, err := Listen("127.0.0.1:0", cfg)
		require.NoError(t, err)
		other, err := Listen("127.0.0.1:0", cfg)
		require.NoError(t, err)
		both, own := WithLocal(s, local)
		got, ended := make(chan netip.AddrPort, 1), make(chan error)
		go func() {
			in := messages(16)
			for {
				n, err := both.ReadBatch(in)
				for i := range in[:n] {
					got <- in[i].Addr
				}
				if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
					ended <- err
					return
				}
			}
		}()
		stop, stopped := make(chan bool), make(chan bool)
		go func() {
			defer close(stopped)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := both.SetReadDeadline([]time.Time{{}, time.Now().Add(time.Hour), time.Unix(1, 0), time.Now().Add(time.Millisecond)}[i%4]); err != nil {
					t.Error(err)
				}
			}
		}()
		for range each { // one of each is under way, so that none is lost
			for _, from := range []Socket{own, other} {
				_, err := from.WriteBatch([]Message{{Buf: []byte("x"), Addr: s.LocalAddr()}})
				require.NoError(t, err, name)
				require.Equal(t, from.LocalAddr(), <-got, name)
			}
		}
		close(stop)
		<-stopped
		require.NoError(t, both.SetReadDeadline(time.Time{}))
		require.NoError(t, both.Close())
		require.ErrorIs(t, <-ended, net.ErrClosed, name)
		require.NoError(t, errors.Join(own.Close(), other.Close()))
	}
}

// TestLocalWakes: what comes in memory ends a read that waits for the others, whatever deadlines are set meanwhile.
func TestLocalWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, other := Pair(netip.MustParseAddrPort("10.0.0.1:7777"), netip.MustParseAddrPort("10.0.0.2:2"))
		both, own := WithLocal(s, local)
		defer both.Close()
		got := make(chan netip.AddrPort, 1)
		go func() {
			defer close(got)
			for in := messages(1); ; {
				n, err := both.ReadBatch(in)
				if errors.Is(err, net.ErrClosed) {
					return
				}
				if err != nil {
					n, _ = both.TryReadBatch(in)
				}
				if n > 0 {
					got <- in[0].Addr
				}
			}
		}()
		begin := time.Now()
		for range 300 {
			for _, from := range []Socket{own, other, own} {
				synctest.Wait() // it waits
				_, err := from.WriteBatch([]Message{{Buf: []byte("x"), Addr: s.LocalAddr()}})
				require.NoError(t, err)
				require.NoError(t, both.SetReadDeadline(time.Now().Add(time.Hour)))
				require.Equal(t, from.LocalAddr(), <-got)
			}
		}
		require.Zero(t, time.Since(begin), "nothing waits for the deadline")
	})
}
