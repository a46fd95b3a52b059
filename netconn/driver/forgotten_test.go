package driver

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// TestForgottenTypesAreTold: a channel that an end ignores, as its type or the right to open it was forgotten there, is counted by
// reason and told to the Logger of that end, also when its connection has ended.
func TestForgottenTypesAreTold(t *testing.T) {
	for _, c := range []struct {
		reason string
		types  []channel.Type
	}{
		{"unknown_type", nil},
		{"may_not_open", []channel.Type{{Name: chatName, ServerOpen: true}}},
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
		"MaxPacket 8192 is more than the 1200 bytes that PlainSalted carries": {Protocol: packetsOf(8192), Link: &PlainSalted{}},
		"MaxPacket 1497 is more than the 1496 bytes that PlainUnreal carries": {Protocol: packetsOf(1497), Link: PlainUnreal51()},
	} {
		_, err := Listen("127.0.0.1:0", cfg)
		require.ErrorContains(t, err, want)
		_, err = Dial("127.0.0.1:9", cfg)
		require.ErrorContains(t, err, want)
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
	}{{Netcode{}, 1200}, {PlainSalted{}, 1200}, {PlainUnreal51(), 1496}} {
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

// TestTypeWithoutAccept: a type that the peer may open and nothing accepts is told at the start.
func TestTypeWithoutAccept(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	types := []channel.Type{{Name: chatName, ClientOpen: true}}
	d, err := Dial("127.0.0.1:9", Config{Channels: types, Logger: logger})
	require.NoError(t, err)
	require.NoError(t, d.Close())
	require.NotContains(t, log.String(), "Accept", "a client opens them itself")
	d, err = Listen("127.0.0.1:0", Config{Channels: types, Logger: logger})
	require.NoError(t, err)
	require.NoError(t, d.Close())
	require.Contains(t, log.String(), "without Accept")
	require.Contains(t, log.String(), chatName.String())
}
