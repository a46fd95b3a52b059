//go:build !js

package web

import (
	"net"
	"net/http/httptest"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/session"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/udp/udptest"
)

// silent is the address of a socket that never answers.
func silent(t testing.TB) netip.AddrPort {
	s, err := udp.Listen("127.0.0.1:0", udp.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s.LocalAddr()
}

func (g *game) climb(cfg LadderConfig) (*player, *Ladder) {
	cfg.Dial.CertificateHash = g.door.hash
	l, err := DialBest(g.t.Context(), cfg)
	require.NoError(g.t, err)
	return g.dialOver(l, driver.Config{}), l
}

// TestLadder: a client comes by the best way that answers, with one connect token, and says why.
func TestLadder(t *testing.T) {
	const head = 50 * time.Millisecond
	for want, set := range map[Way]func(g *game) LadderConfig{
		UDP: func(g *game) LadderConfig {
			return LadderConfig{UDP: g.srv.LocalAddr(), URL: g.door.url, HeadStart: 10 * time.Second}
		},
		WebTransport: func(g *game) LadderConfig {
			return LadderConfig{UDP: silent(t), URL: g.door.url, HeadStart: head}
		},
		WebSocket: func(g *game) LadderConfig { // a firewall that lets TCP through alone
			site := httptest.NewUnstartedServer(g.door.Server)
			cert, hash, err := NewCertificate(time.Now())
			require.NoError(t, err)
			site.TLS = tlsOf(cert)
			site.StartTLS()
			t.Cleanup(site.Close)
			g.door.hash = hash
			return LadderConfig{UDP: silent(t), URL: site.URL, HeadStart: head}
		},
	} {
		t.Run(want.String(), func(t *testing.T) {
			g := newGame(t, driver.Config{}, ServerConfig{})
			p, l := g.climb(set(g))
			g.until("joined", func() bool { return p.conn != nil && len(g.lamps) == 1 })
			way, ok := l.Way()
			require.True(t, ok)
			require.Equal(t, want, way)
			for c := range g.srv.Conns {
				require.Equal(t, want, WayOf(c.RemoteAddr()))
			}
			eventually(t, "the others were given up", func() bool { // each was begun a moment after the one before, up to the one that answered
				return len(l.Attempts()) == int(want)
			})
			for _, a := range l.Attempts() {
				if a.Way == want {
					require.NoError(t, a.Err)
				} else {
					require.Error(t, a.Err)
				}
			}
			g.until("it plays", func() bool { return p.own() != nil })
		})
	}
}

// TestDownTheLadder: when the path of UDP dies, a Redialer is back by WebTransport, as the same player.
func TestDownTheLadder(t *testing.T) {
	g := newGame(t, driver.Config{Link: driver.Netcode{Key: gameKey, TakeOver: true}}, ServerConfig{})
	joined := 0
	r, err := session.NewRedialer(session.RedialConfig{Dial: func() (*driver.Driver, error) {
		l, err := DialBest(t.Context(), LadderConfig{UDP: g.srv.LocalAddr(), URL: g.door.url, HeadStart: 50 * time.Millisecond, Dial: DialConfig{CertificateHash: g.door.hash}})
		if err != nil {
			return nil, err
		}
		return driver.Dial(g.srv.LocalAddr().String(), driver.Config{Socket: l, Link: driver.Netcode{Token: g.token(7)}, Joined: func(*driver.Conn) { joined++ },
			Channels: newWorld(t, false).ChannelTypes()})
	}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	g.also = func(now time.Time) {
		r.TickDispatch(now)
		r.TickFlush(now)
	}
	way := func() (ways []Way) {
		for c := range g.srv.Conns {
			if c.Joined() {
				require.EqualValues(t, 7, c.ClientID())
				ways = append(ways, WayOf(c.RemoteAddr()))
			}
		}
		return ways
	}
	g.until("it plays by UDP", func() bool { return slices.Equal(way(), []Way{UDP}) && joined == 1 })
	g.gate.shut = true
	g.until("it is back by WebTransport", func() bool { return slices.Equal(way(), []Way{WebTransport}) && joined == 2 })
	require.ErrorIs(t, g.ended[0].Err, driver.ErrReplaced)
	require.NoError(t, r.Err())
}

// TestLadderEnds: when no way answers the error says what went wrong with each; Close ends attempts that are under way.
func TestLadderEnds(t *testing.T) {
	d := newDoor(t, ServerConfig{})
	bad := d.hash
	bad[0]++
	l, err := DialBest(t.Context(), LadderConfig{URL: d.url, HeadStart: time.Hour, Dial: DialConfig{CertificateHash: bad}})
	require.NoError(t, err)
	in := []udp.Message{{Buf: make([]byte, maxDatagram)}}
	require.NoError(t, l.SetReadDeadline(time.Now().Add(patience)))
	_, err = l.ReadBatch(in)
	require.ErrorIs(t, err, ErrNoSession)
	require.ErrorContains(t, err, "webtransport: ")
	require.ErrorContains(t, err, "websocket: ")
	require.ErrorContains(t, err, "certificate")
	_, ok := l.Way()
	require.False(t, ok)
	require.NoError(t, l.Close())
	_, err = l.TryReadBatch(in)
	require.ErrorIs(t, err, net.ErrClosed)

	l, err = DialBest(t.Context(), LadderConfig{UDP: silent(t), URL: d.url})
	require.NoError(t, err)
	require.NoError(t, l.Close())
	for _, cfg := range []LadderConfig{{}, {URL: "http://x/"}, {URL: "https://x/", HeadStart: -1}, {UDP: d.LocalAddr(), Ways: []Way{WebSocket}}, {URL: "https://x/", Ways: []Way{9}}} {
		_, err = DialBest(t.Context(), cfg)
		require.ErrorIs(t, err, ErrConfig)
	}
}

// TestLadderConformance runs the test of sockets over a ladder.
func TestLadderConformance(t *testing.T) {
	for _, way := range []Way{UDP, WebTransport, WebSocket} {
		t.Run(way.String(), func(t *testing.T) {
			udptest.Run(t, func(t *testing.T) (a, b udp.Socket) {
				d := newDoor(t, ServerConfig{})
				s, err := udp.Listen("127.0.0.1:0", udp.Config{})
				require.NoError(t, err)
				j := udp.Join(Answer(s), d.Server)
				if way == UDP {
					stop := readProbes(t, j)
					defer stop()
				}
				l, err := DialBest(t.Context(), LadderConfig{UDP: s.LocalAddr(), URL: d.url, Ways: []Way{way}, Dial: DialConfig{CertificateHash: d.hash}})
				require.NoError(t, err)
				eventually(t, "it answers", func() bool { _, ok := l.Way(); return ok })
				return l, j
			})
		})
	}
}

// readProbes reads a socket in place of a driver, until stop.
func readProbes(t *testing.T, s udp.Socket) (stop func()) {
	done, ended := make(chan bool), make(chan bool)
	go func() {
		defer close(ended)
		in := []udp.Message{{Buf: make([]byte, maxDatagram)}}
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				if _, err := s.TryReadBatch(in); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	return func() { close(done); <-ended }
}

// TestAnswer: probes are answered with as many bytes, and who reads sees only what isn't one; what is almost one isn't.
func TestAnswer(t *testing.T) {
	a, b := udp.Pair(netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:2"))
	s := Answer(a)
	ask := append(append([]byte{probeAsk}, probeName...), make([]byte, 16)...)
	answer := append([]byte{probeAnswer}, ask[1:]...)
	almost := [][]byte{answer, ask[:len(ask)-1], append(append([]byte{}, ask...), 0), append([]byte{probeAsk}, make([]byte, probeBytes-1)...), {probeAsk}, []byte("a datagram")}
	for _, p := range almost {
		for _, q := range [][]byte{ask, p, ask} {
			_, err := b.WriteBatch([]udp.Message{{Buf: q, Addr: a.LocalAddr()}})
			require.NoError(t, err)
		}
	}
	in := make([]udp.Message, 4)
	for i := range in {
		in[i].Buf = make([]byte, maxDatagram)
	}
	var got [][]byte
	for {
		n, err := s.TryReadBatch(in)
		require.NoError(t, err)
		if n == 0 {
			break
		}
		for _, m := range in[:n] {
			got = append(got, append([]byte{}, m.Data()...))
		}
	}
	require.Equal(t, almost, got)
	for range 2 * len(almost) {
		n, err := b.TryReadBatch(in[:1])
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, answer, in[0].Data())
	}
	n, err := b.TryReadBatch(in)
	require.NoError(t, err)
	require.Zero(t, n)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, _ = b.WriteBatch([]udp.Message{{Buf: ask, Addr: a.LocalAddr()}})
		_, _ = s.TryReadBatch(in)
		_, _ = b.TryReadBatch(in)
	}))
}
