package driver

import (
	"bytes"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestForgottenTypesAreTold: a channel that an end ignores, as its type, the right to open it or its handler was forgotten there, is counted by
// reason and told to the Logger of that end, also when its connection has ended.
func TestForgottenTypesAreTold(t *testing.T) {
	for _, c := range []struct {
		reason string
		types  []channel.Type
	}{
		{"unknown_type", nil},
		{"may_not_open", []channel.Type{{Name: chatName, ServerOpen: true}}},
		{"no_handler", []channel.Type{{Name: chatName, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return nil }}}},
		{"no_handler", []channel.Type{{Name: chatName, ClientOpen: true}}},
	} {
		var log bytes.Buffer
		m := newMemory(t, Config{Channels: c.types, Logger: slog.New(slog.NewTextHandler(&log, nil))}, Config{Channels: chat(&sink{})})
		m.until("joined", func() bool { return m.sc != nil && m.cc != nil })
		ch, err := m.cc.Open(chatName, &sink{})
		require.NoError(t, err)
		_, err = ch.SendBunch(&bunch.Out{Data: []byte("hello"), Reliable: true})
		require.NoError(t, err)
		count := func() (n uint64) {
			for reason, of := range m.server.Refusals {
				if reason == c.reason {
					n = of
				}
			}
			return n
		}
		m.until("it is counted", func() bool { return count() == 1 })
		m.cc.CloseWithReason("enough")
		m.until("closed", func() bool { return m.sres != nil && m.cres != nil })
		for range 100 {
			m.step()
		}
		require.EqualValues(t, 1, count(), "those who left are counted still")
		require.Contains(t, log.String(), c.reason+"=1")
	}
}

// TestForgottenLinkAndCoding: of two ends with different Links, or of which one lacks Coding, the one that can't read the other's packets says which setting to look at.
func TestForgottenLinkAndCoding(t *testing.T) {
	key := netcode.Key{1}
	for _, c := range []struct {
		server, client Config
		teller         int // 0: the server
		hint           string
	}{
		{Config{Link: Netcode{Key: key}}, Config{Link: PlainSalted{}, Rand: rand.NewChaCha8([32]byte{1})}, 0, "(bad_type|bad_sequence|bad_size): give both ends the same Link"},
		{Config{Link: PlainSalted{}}, Config{Link: Netcode{Key: key}}, 0, "bad_checksum: give both ends the same Link and ProtocolID"},
		{Config{Link: PlainSalted{}, Coding: netconn.Coding{Repairs: 1}}, Config{Link: PlainSalted{}}, 1, "packet: give both ends the same Protocol and Coding"},
		{Config{Link: Netcode{Key: key}}, Config{Link: Netcode{Key: key}, Coding: netconn.Coding{Repairs: 1}}, 0, "packet: give both ends the same Protocol and Coding"},
	} {
		var logs [2]bytes.Buffer
		c.server.Logger, c.client.Logger = slog.New(slog.NewTextHandler(&logs[0], nil)), slog.New(slog.NewTextHandler(&logs[1], nil))
		m := newMemory(t, c.server, c.client)
		for range 120 {
			m.step()
		}
		require.Regexp(t, `hint="[^"]*`+c.hint, logs[c.teller].String(), "%T", c.server.Link)
	}
}

// TestNoRefusalIsSilent: whatever two Links and releases of Unreal the ends have, where the client doesn't join, the server logs that it refused something, or the client what to do.
func TestNoRefusalIsSilent(t *testing.T) {
	all := map[string]Config{"netcode": {Link: Netcode{Key: netcode.Key{1}}}, "salted": {Link: PlainSalted{}}, "unreal": {Link: PlainUnreal51()},
		"4.27": Unreal427(Config{}), "5.1": Unreal51(Config{}), "5.3": Unreal53(true, Config{})}
	for ours, server := range all {
		for theirs, client := range all {
			var server, client = server, client
			var logs [2]bytes.Buffer
			server.Logger, client.Logger = slog.New(slog.NewTextHandler(&logs[0], nil)), slog.New(slog.NewTextHandler(&logs[1], nil))
			client.Timeout = 3 * time.Second
			w := newTown(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, server)
			c := w.dial(client)
			for end := w.now.Add(6 * time.Second); w.now.Before(end); {
				w.step()
			}
			require.Equal(t, ours == theirs, c.joined, "server %s, client %s", ours, theirs)
			if !c.joined && errors.Is(c.result.Err, ErrNoAnswer) {
				said := strings.Contains(logs[0].String(), "msg=refused") || strings.Contains(logs[0].String(), "stray packets") || strings.Contains(logs[1].String(), "hint=")
				require.True(t, said, "server %s, client %s: %v", ours, theirs, c.result)
			}
		}
	}
}

// TestForgottenHalfOfATick: a driver of which a game calls only TickDispatch, or only TickFlush, stands still, and its Logger is told so
// once. It isn't told when both are called.
func TestForgottenHalfOfATick(t *testing.T) {
	for _, c := range []struct {
		name            string
		dispatch, flush bool
		want            string
	}{
		{"TickFlush", true, false, "TickDispatch is called without TickFlush: nothing is sent"},
		{"TickDispatch", false, true, "TickFlush is called without TickDispatch: nothing is received"},
		{"none", true, true, ""},
	} {
		var log bytes.Buffer
		m := newMemory(t, Config{}, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		for range 200 {
			m.now = m.now.Add(16 * time.Millisecond)
			if c.dispatch {
				m.client.TickDispatch(m.now)
			}
			if c.flush {
				m.client.TickFlush(m.now)
			}
		}
		if c.want == "" {
			require.NotContains(t, log.String(), "without", c.name)
		} else {
			require.Equal(t, 1, strings.Count(log.String(), c.want), c.name)
		}
	}
	var log bytes.Buffer
	m := newMemory(t, Config{}, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range 20 { // a game that polls more often than it sends
		for range 50 {
			m.now = m.now.Add(2 * time.Millisecond)
			m.client.TickDispatch(m.now)
		}
		m.client.TickFlush(m.now)
	}
	require.NotContains(t, log.String(), "without")
}

// TestAnEndIsNoWarning: packets that arrive after a connection has ended, as the last ones of its link do, aren't told as a warning. With PlainUnreal they make the
// server ask for a restart.
func TestAnEndIsNoWarning(t *testing.T) {
	for name, end := range map[string]func(m *memory){
		"client": func(m *memory) { m.cc.CloseWithReason("enough") },
		"server": func(m *memory) { m.sc.CloseWithError(ErrKicked) },
		"both":   func(m *memory) { m.sc.CloseWithReason("one"); m.cc.CloseWithReason("two") },
	} {
		for _, cfg := range []Config{{}, {Link: PlainSalted{}}, Unreal51(Config{}), Unreal53(true, Config{})} {
			var log bytes.Buffer
			logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			cfg.Logger = logger
			m := newMemory(t, cfg, cfg)
			m.until("joined", func() bool { return m.sc != nil && m.cc != nil })
			log.Reset()
			end(m)
			m.until("closed", func() bool { return m.sres != nil && m.cres != nil })
			for range 200 {
				m.step()
			}
			require.Empty(t, log.String(), "%s, %T", name, cfg.Link)
		}
	}
}

// TestImpossibleSettings: settings that no connection can have are an error of Listen and Dial that names them, and not of each
// connection.
func TestImpossibleSettings(t *testing.T) {
	for want, cfg := range map[string]Config{
		"registered twice": {Channels: append(chat(nil), chat(nil)...)},
		"MaxMemory":        {MaxMemory: 1},
		"MaxChannels":      {MaxChannels: 99999},
		"KeepAlive":        {KeepAlive: -1},
		"AckDelay":         {AckDelay: -time.Second},
		"NetSpeed":         {NetSpeed: -5},
		"Copies":           {Redundancy: netconn.Redundancy{Copies: -1}},
		"Repairs":          {Coding: netconn.Coding{Repairs: 4}},
		"PlainUnreal":      {Coding: netconn.Coding{Repairs: 1}, Link: PlainUnreal51()},
		"control channel":  {Channels: []channel.Type{{Name: chatName, Static: true}}},
		"MaxConns":         {MaxConns: -1},
		"TickRate":         {TickRate: -1},
		"LoginTimeout":     {LoginTimeout: -1},
		"MaxDatagrams":     {MaxDatagrams: -1},
		"MaxPacket 1201 is more than the 1200 bytes that Netcode carries":     {Protocol: packetsOf(1201)},
		"MaxPacket 8192 is more than the 1439 bytes that PlainSalted carries": {Protocol: packetsOf(8192), Link: &PlainSalted{}},
		"MaxPacket 1497 is more than the 1496 bytes that PlainUnreal carries": {Protocol: packetsOf(1497), Link: PlainUnreal51()},
	} {
		_, err := Listen("127.0.0.1:0", cfg)
		require.ErrorContains(t, err, want)
		_, err = Dial("127.0.0.1:9", cfg)
		require.ErrorContains(t, err, want)
	}
}

// TestImpossibleLogin: settings of the login that can't be sent are an error of the end that they are for, and not of each login.
func TestImpossibleLogin(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for want, cfg := range map[string]control.ServerConfig{"Challenge": {Challenge: long}, "Map": {Map: long}, "GameMode": {GameMode: long}, "MaxNetSpeed": {MaxNetSpeed: -1}} {
		_, err := Listen("127.0.0.1:0", Config{Server: cfg})
		require.ErrorContains(t, err, want)
	}
	for want, cfg := range map[string]control.ClientConfig{"Token": {Token: long}, "URL": {URL: long}, "UniqueID": {UniqueID: make([]byte, 300)}, "Platform": {Platform: long}, "NetSpeed": {NetSpeed: -1}} {
		_, err := Dial("127.0.0.1:9", Config{Client: cfg})
		require.ErrorContains(t, err, want)
	}
}

// TestEndsThatDiffer: two ends with settings that must be the same, and aren't, say which ones where they notice, and the client isn't told an empty reason.
func TestEndsThatDiffer(t *testing.T) {
	for want, edit := range map[string]func(c *Config){
		"Protocol": func(c *Config) { c.Protocol.Bunch.SequenceBits, c.Protocol.ReliableBuffer = 12, 2048 },
		"gave no reason": func(c *Config) {
			c.Server.Features = true
		},
		"MaxChannels is 8 at this end": func(c *Config) { c.MaxChannels = 8 },
	} {
		cfg := Config{Link: PlainSalted{}, Protocol: netconn.Bunchnet(), Channels: chat(&sink{})}
		var said string
		other := cfg
		other.Closed = func(_ *Conn, r netconn.CloseResult) { said += r.String() }
		edit(&other)
		w := newTown(t, 1, netsim.Settings{}, other)
		cfg.Joined = func(c *Conn) {
			for range 5 {
				ch, err := c.Open(chatName, nil)
				require.NoError(t, err)
				_, err = ch.SendBunch(&bunch.Out{Data: []byte("hello"), Reliable: true})
				require.NoError(t, err)
			}
		}
		c := w.dial(cfg)
		w.until(want, func() bool { return c.result != nil })
		require.Contains(t, said+c.result.String(), want)
	}
}

// TestOtherProtocolIsTold: a client that the server can't read, or that can't read the server, learns that both must have the same Protocol, also where the link's word comes first.
func TestOtherProtocolIsTold(t *testing.T) {
	larger := netconn.Bunchnet()
	larger.Bunch.MaxPacket = 1200
	protocols := []netconn.Protocol{netconn.Bunchnet(), larger, netconn.Unreal51(), netconn.Unreal53(true)}
	for name, link := range links() {
		for i, server := range protocols {
			for j, client := range protocols {
				if i == j || server.Unreal && client.Unreal || name == "unreal" && max(i, j) == 3 {
					continue // their first packets are the same
				}
				w := newTown(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, Config{Link: link, Protocol: server})
				c := w.dial(Config{Link: link, Protocol: client})
				for end := w.now.Add(20 * time.Second); c.result == nil && w.now.Before(end); {
					w.step()
				}
				if i < 2 && j < 2 && c.result == nil {
					continue // small packets are the same
				}
				require.NotNil(t, c.result, "%s, %d and %d", name, i, j)
				require.Contains(t, c.result.String(), "both ends must have the same Protocol", "%s, %d and %d", name, i, j)
			}
		}
	}
}

// TestNetSpeedOutlivesLogin: without more settings a login leaves both ends the rate that they have as NetSpeed, and a controller of the game's as it is.
func TestNetSpeedOutlivesLogin(t *testing.T) {
	const speed = 5_000_000
	buckets := 0
	for name, cfg := range map[string]Config{"NetSpeed": {NetSpeed: speed}, "Controller": {Controller: func() congestion.Controller {
		buckets++
		return congestion.NewTokenBucket(speed)
	}}} {
		cfg.Link = PlainSalted{}
		w := newTown(t, 1, netsim.Settings{}, cfg)
		c := w.dial(cfg)
		w.until("joined", func() bool { return c.joined })
		for range 10 {
			w.step()
		}
		w.server.Conns(func(conn *Conn) bool {
			require.Greater(t, conn.Budget(), speed/50, "%s: the credit of a tick or two", name)
			return true
		})
		require.Greater(t, c.Server().Budget(), speed/50, name)
	}
	require.Equal(t, 2, buckets)
}

// TestDialWithoutHost: an address without a host is this machine's, as for net.Dial; one without a port can't be dialed.
func TestDialWithoutHost(t *testing.T) {
	for addr, want := range map[string]string{":7777": "127.0.0.1:7777", "0.0.0.0:7777": "127.0.0.1:7777", "[::]:7777": "127.0.0.1:7777",
		"[::ffff:10.0.0.1]:7777": "10.0.0.1:7777", "[::1]:7777": "[::1]:7777"} {
		to, err := resolve(addr)
		require.NoError(t, err)
		require.Equal(t, want, to.String())
	}
	for _, addr := range []string{"", ":0", "127.0.0.1:0"} {
		_, err := Dial(addr, Config{Link: Netcode{Key: netcode.Key{1}}})
		require.ErrorContains(t, err, "no port")
	}
}

// TestSpareSenderThatSendsNothing: a sender that says that it sent, and didn't, ends no tick in a loop.
func TestSpareSenderThatSendsNothing(t *testing.T) {
	cfg := Config{Link: PlainSalted{}}
	w := newTown(t, 1, netsim.Settings{}, cfg)
	c := w.dial(cfg)
	w.until("joined", func() bool { return c.joined })
	again := 0
	var send func() int
	send = func() int {
		again++
		require.Less(t, again, 10_000, "in one tick")
		c.Server().SendSpare(send) // to be asked again in the next tick
		return 0
	}
	send()
	w.step()
	require.Positive(t, again)
	calls := 0
	c.Server().SendSpare(func() int {
		calls++
		require.Less(t, calls, 10_000, "in one tick")
		return 1000
	})
	for range 10 {
		calls = 0
		w.step()
		require.Positive(t, calls)
	}
}

func packetsOf(bytes int) netconn.Protocol {
	p := netconn.Bunchnet()
	p.Bunch.MaxPacket = bytes
	return p
}

// TestLargestPackets: the largest packets that each link carries arrive, and its errors say how large they are.
func TestLargestPackets(t *testing.T) {
	for _, v := range []struct {
		link  Link
		bytes int
	}{{Netcode{}, 1200}, {PlainSalted{}, 1439}, {PlainUnreal51(), 1496}} {
		got, clock := false, time.Unix(1_700_000_000, 0)
		cfg := Config{Link: v.link, Protocol: packetsOf(v.bytes), Checksum: true, Clock: func() time.Time { return clock },
			Channels: chat(counting{count: func() { got = true }})}
		srv, err := Listen("127.0.0.1:0", cfg)
		require.NoError(t, err)
		cl, err := Dial(srv.LocalAddr().String(), cfg)
		require.NoError(t, err)
		sent := false
		for range 10_000 {
			clock = clock.Add(time.Millisecond)
			srv.TickDispatch(clock)
			cl.TickDispatch(clock)
			if c := cl.Server(); c != nil && c.Joined() && !sent {
				ch, err := c.Open(chatName, channel.Nop{})
				require.NoError(t, err)
				_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 20_000), Reliable: true})
				require.NoError(t, err)
				sent = true
			}
			srv.TickFlush(clock)
			cl.TickFlush(clock)
			if got {
				break
			}
		}
		require.True(t, got, "%T", v.link)
		require.Zero(t, cl.Counters.SendErrors)
		require.NoError(t, cl.Close())
		require.NoError(t, srv.Close())
	}
}

// TestLongTimeoutsAreAccepted: durations that don't fit 32 bits in nanoseconds are settings as good as any.
func TestLongTimeoutsAreAccepted(t *testing.T) {
	for _, limit := range []time.Duration{3 * time.Second, 15 * time.Second, time.Hour} {
		d, err := Listen("127.0.0.1:0", Config{LoginTimeout: limit})
		require.NoError(t, err, limit)
		require.NoError(t, d.Close())
	}
}

// TestSlotsFollowMaxConns: a link with slots has as many as MaxConns unless it says otherwise.
func TestSlotsFollowMaxConns(t *testing.T) {
	key := netcode.Key{1}
	for _, v := range []struct {
		link Link
		want int
	}{{Netcode{Key: key}, 300}, {PlainSalted{}, 300}, {Netcode{Key: key, Slots: 2}, 2}, {PlainSalted{Slots: 2}, 2}} {
		d, err := Listen("127.0.0.1:0", Config{Link: v.link, MaxConns: 300})
		require.NoError(t, err)
		switch s := d.server.(type) {
		case *saltedServer:
			require.Len(t, s.conns, v.want)
		case *netcodeServer:
			require.Len(t, s.conns, v.want)
		}
		require.NoError(t, d.Close())
	}
}

// TestUselessSettings: a type that the peer may open and nothing accepts, a Redundancy without Copies, and a Coding without Repairs, are told at the start.
func TestUselessSettings(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	types := []channel.Type{{Name: chatName, ClientOpen: true}}
	d, err := Dial("127.0.0.1:9", Config{Link: PlainSalted{}, Channels: types, Logger: logger})
	require.NoError(t, err)
	require.NoError(t, d.Close())
	require.NotContains(t, log.String(), "Accept", "a client opens them itself")
	d, err = Listen("127.0.0.1:0", Config{Channels: types, Logger: logger})
	require.NoError(t, err)
	require.NoError(t, d.Close())
	require.Contains(t, log.String(), "without Accept")
	require.Contains(t, log.String(), chatName.String())
	for _, r := range []netconn.Redundancy{{}, {Copies: 1, Adaptive: true, MaxBits: 100}, {Adaptive: true}, {MaxBits: 100}} {
		log.Reset()
		d, err = Listen("127.0.0.1:0", Config{Redundancy: r, Logger: logger})
		require.NoError(t, err)
		require.NoError(t, d.Close())
		require.Equal(t, r.Copies == 0 && r != (netconn.Redundancy{}), strings.Contains(log.String(), "no Copies"), "%+v", r)
	}
	for _, k := range []netconn.Coding{{}, {Repairs: 0.5, Adaptive: true}, {Adaptive: true}} {
		log.Reset()
		d, err = Listen("127.0.0.1:0", Config{Coding: k, Logger: logger})
		require.NoError(t, err)
		require.NoError(t, d.Close())
		require.Equal(t, k == netconn.Coding{Adaptive: true}, strings.Contains(log.String(), "no Repairs"), "%+v", k)
	}
}

// TestForgottenOpenIsTold: when the server opens none of the channels that only it may open, as without World.AddConn, its Logger is told so once.
func TestForgottenOpenIsTold(t *testing.T) {
	for _, c := range []struct {
		name  string
		typ   channel.Type
		opens bool
		told  int
	}{
		{"forgotten", channel.Type{Name: chatName, ServerOpen: true}, false, 1},
		{"opened", channel.Type{Name: chatName, ServerOpen: true}, true, 0},
		{"the client may open it", channel.Type{Name: chatName, ServerOpen: true, ClientOpen: true}, false, 0},
	} {
		var log bytes.Buffer
		c.typ.Accept = func(*channel.Channel) channel.Handler { return &sink{} }
		w := newTown(t, 1, netsim.Settings{}, Config{Channels: []channel.Type{c.typ}, Logger: slog.New(slog.NewTextHandler(&log, nil)), Joined: func(conn *Conn) {
			if c.opens {
				ch, err := conn.Open(chatName, &sink{})
				require.NoError(t, err)
				_, err = ch.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
				require.NoError(t, err)
			}
		}})
		client := w.dial(Config{Channels: []channel.Type{c.typ}})
		w.until("joined", func() bool { return client.joined })
		for begin := w.now; w.now.Sub(begin) < 9*time.Second; {
			w.step()
		}
		require.NotContains(t, log.String(), "AddConn")
		w.dial(Config{Channels: []channel.Type{c.typ}})
		for begin := w.now; w.now.Sub(begin) < 13*time.Second; {
			w.step()
		}
		require.Equal(t, c.told, strings.Count(log.String(), "call World.AddConn"), "%s: %s", c.name, log.String())
	}
}
