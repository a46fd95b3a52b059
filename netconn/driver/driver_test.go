package driver

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var chatName = bunch.Name{Index: 300}

// echo sends back what it gets.
type echo struct {
	channel.Nop
	n int
}

func (e *echo) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	e.n++
	b := make([]byte, (in.Bits+7)/8)
	in.Data.ReadBitsTo(b, in.Bits)
	_, _ = ch.SendBunch(&bunch.Out{Data: b, Bits: in.Bits, Reliable: in.Reliable, NoMerge: true})
}

type sink struct {
	channel.Nop
	got []string
}

func (s *sink) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	b := make([]byte, in.Bits/8)
	in.Data.ReadBytes(b)
	s.got = append(s.got, string(b))
}

func chat(h channel.Handler) []channel.Type {
	return []channel.Type{{Name: chatName, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return h }}}
}

// memory is a server and a client on a pair of sockets in memory, ticked by hand.
type memory struct {
	t              *testing.T
	server, client *Driver
	now            time.Time
	sc, cc         *Conn
	sres, cres     *netconn.CloseResult
}

func newMemory(t *testing.T, sc, cc Config) *memory {
	m := &memory{t: t}
	a, b := udp.Pair(netip.MustParseAddrPort("127.0.0.1:7777"), netip.MustParseAddrPort("127.0.0.1:1234"))
	sc.Socket, cc.Socket = a, b
	joined := sc.Joined
	sc.Joined = func(c *Conn) {
		m.sc = c
		if joined != nil {
			joined(c)
		}
	}
	cc.Joined = func(c *Conn) { m.cc = c }
	sc.Closed = func(_ *Conn, r netconn.CloseResult) { m.sres = &r }
	cc.Closed = func(_ *Conn, r netconn.CloseResult) { m.cres = &r }
	var err error
	m.server, err = Listen("", sc)
	require.NoError(t, err)
	m.client, err = Dial("127.0.0.1:7777", cc)
	require.NoError(t, err)
	m.now = m.server.epoch
	t.Cleanup(func() {
		require.NoError(t, m.server.Close())
		require.NoError(t, m.client.Close())
	})
	return m
}

func (m *memory) step() {
	m.now = m.now.Add(16 * time.Millisecond)
	m.server.TickDispatch(m.now)
	m.client.TickDispatch(m.now)
	m.server.TickFlush(m.now)
	m.client.TickFlush(m.now)
}

func (m *memory) until(what string, f func() bool) {
	m.t.Helper()
	for range 10_000 {
		if f() {
			return
		}
		m.step()
	}
	m.t.Fatalf("never: %s; server %+v %v, client %+v %v", what, m.server.Counters, m.sres, m.client.Counters, m.cres)
}

func TestLoginAndEcho(t *testing.T) {
	for _, p := range []struct {
		link  Link
		proto netconn.Protocol
	}{
		{nil, netconn.Protocol{}}, {PlainUnreal51(), netconn.Unreal51()}, {PlainUnreal427(), netconn.Unreal427()},
		{PlainUnreal53(), netconn.Unreal53(true)}, {PlainSalted{ProtocolID: 7}, netconn.Protocol{}},
	} {
		e, got, speed := &echo{}, &sink{}, 0
		m := newMemory(t, Config{Link: p.link, Protocol: p.proto, Channels: chat(e), Server: control.ServerConfig{Map: "yard", NetSpeed: func(n int) { speed = n }}},
			Config{Link: p.link, Protocol: p.proto, Channels: chat(got), Client: control.ClientConfig{URL: "?Name=Ann", NetSpeed: 20_000}})
		m.until("joined", func() bool { return m.sc != nil && m.cc != nil })
		require.Equal(t, "?Name=Ann", m.sc.Login().URL)
		require.Equal(t, "yard", m.cc.Welcome().Map)
		require.Nil(t, m.sc.Welcome())
		require.Equal(t, m.client.LocalAddr(), m.sc.RemoteAddr())
		require.Equal(t, 20_000, speed)
		ch, err := m.cc.Open(chatName, got)
		require.NoError(t, err)
		for i := range 5 {
			_, err = ch.SendBunch(&bunch.Out{Data: fmt.Appendf(nil, "message %d", i), Reliable: true, NoMerge: true})
			require.NoError(t, err)
		}
		m.until("echoed", func() bool { return len(got.got) == 5 })
		require.Equal(t, "message 4", got.got[4])

		m.cc.CloseWithReason("enough")
		m.until("closed", func() bool { return m.sres != nil && m.cres != nil })
		require.Equal(t, netconn.ClosedByPeer, m.sres.Code, m.sres)
		require.Equal(t, "enough", m.sres.Reason)
		require.Equal(t, netconn.ClosedByUs, m.cres.Code)
		require.Zero(t, m.cres.Unacked)
		m.step()
		require.Zero(t, m.server.Len())
	}
}

func TestLoginRefused(t *testing.T) {
	m := newMemory(t, Config{Server: control.ServerConfig{Authorize: func(*control.Login) error { return errors.New("banned") }}}, Config{})
	m.until("refused", func() bool { return m.sres != nil && m.cres != nil })
	require.Nil(t, m.sc)
	require.Contains(t, m.cres.String(), "banned")
}

func TestNobodyAnswers(t *testing.T) {
	m := newMemory(t, Config{}, Config{Timeout: 3 * time.Second})
	m.server.socket.Close()
	for range 400 {
		m.now = m.now.Add(16 * time.Millisecond)
		m.client.TickDispatch(m.now)
		m.client.TickFlush(m.now)
	}
	require.NotNil(t, m.cres)
	require.Equal(t, netconn.TimedOut, m.cres.Code)
}

// TestSaltedEnds: a server that closes, a full one, and one that doesn't answer.
func TestSaltedEnds(t *testing.T) {
	m := newMemory(t, Config{Link: PlainSalted{}}, Config{Link: PlainSalted{}})
	m.until("joined", func() bool { return m.sc != nil && m.cc != nil })
	m.sc.CloseWithReason("maintenance")
	m.until("closed", func() bool { return m.sres != nil && m.cres != nil })
	require.Equal(t, netconn.ClosedByPeer, m.cres.Code)
	require.Equal(t, "maintenance", m.cres.Reason)

	m = newMemory(t, Config{Link: PlainSalted{ProtocolID: 1}}, Config{Link: PlainSalted{ProtocolID: 2}})
	m.until("given up", func() bool { return m.cres != nil })
	require.Equal(t, netconn.TimedOut, m.cres.Code)
	require.Zero(t, m.server.Counters.Accepted)
}

// TestNetcode joins over an encrypted link, and is refused with a token of another key.
func TestNetcode(t *testing.T) {
	for _, good := range []bool{true, false} {
		key := netcode.Key{1, 2, 3}
		cfg := netcode.TokenConfig{ProtocolID: 9, ClientID: 42, Create: uint64(time.Now().Unix()), Expire: uint64(time.Now().Unix()) + 60, Timeout: 3,
			Servers: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:7777")}, PrivateKey: key}
		if !good {
			cfg.PrivateKey = netcode.Key{9}
		}
		token, err := netcode.GenerateConnectToken(cfg)
		require.NoError(t, err)
		e, got := &echo{}, &sink{}
		m := newMemory(t, Config{Link: Netcode{ProtocolID: 9, Key: key}, Channels: chat(e)}, Config{Link: Netcode{ProtocolID: 9, Token: token}, Channels: chat(got)})
		if !good {
			m.until("refused", func() bool { return m.cres != nil })
			require.Zero(t, m.server.Counters.Accepted)
			continue
		}
		m.until("joined", func() bool { return m.sc != nil && m.cc != nil })
		require.EqualValues(t, 42, m.sc.ClientID())
		ch, err := m.cc.Open(chatName, got)
		require.NoError(t, err)
		_, err = ch.SendBunch(&bunch.Out{Data: []byte("a secret"), Reliable: true})
		require.NoError(t, err)
		m.until("echoed", func() bool { return len(got.got) == 1 })
		m.sc.CloseWithReason("done")
		m.until("closed", func() bool { return m.sres != nil && m.cres != nil })
		require.Equal(t, "done", m.cres.Reason)
	}
}

func TestRealSockets(t *testing.T) {
	e := &echo{}
	srv, err := Listen("127.0.0.1:0", Config{Channels: chat(e)})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx, nil) }()

	got := &sink{}
	var ch *channel.Channel
	cl, err := Dial(srv.LocalAddr().String(), Config{Channels: chat(got), Joined: func(c *Conn) {
		ch, err = c.Open(chatName, got)
		if err == nil {
			_, err = ch.SendBunch(&bunch.Out{Data: []byte("over UDP"), Reliable: true})
		}
	}})
	require.NoError(t, err)
	cctx, stop := context.WithCancel(ctx)
	require.NoError(t, cl.Run(cctx, func(time.Time) {
		if len(got.got) > 0 {
			stop()
		}
	}))
	require.NoError(t, err)
	require.Equal(t, []string{"over UDP"}, got.got)
	cancel()
	require.NoError(t, <-done)
}
