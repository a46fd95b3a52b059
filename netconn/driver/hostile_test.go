package driver

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// keep is a socket that keeps what is written.
type keep struct {
	udp.Socket
	sent    []udp.Message
	err     error // of every write
	forward bool
}

func (k *keep) WriteBatch(msgs []udp.Message) (int, error) {
	if k.err != nil {
		return 0, k.err
	}
	for _, m := range msgs {
		k.sent = append(k.sent, udp.Message{Buf: bytes.Clone(m.Buf), Addr: m.Addr})
	}
	if k.forward {
		return k.Socket.WriteBatch(msgs)
	}
	return len(msgs), nil
}

func keepSocket() *keep {
	a, _ := udp.Pair(netip.MustParseAddrPort("127.0.0.1:1234"), netip.MustParseAddrPort("127.0.0.1:7777"))
	return &keep{Socket: a}
}

// firstPacket is what a client begins with.
func firstPacket(t *testing.T, link Link) []byte {
	k := keepSocket()
	d, err := Dial("127.0.0.1:7777", Config{Link: link, Socket: k})
	require.NoError(t, err)
	d.TickFlush(d.epoch.Add(time.Second))
	require.NotEmpty(t, k.sent)
	return k.sent[0].Buf
}

// TestImpossibleSource: datagrams that claim to come from addresses that can't be answered don't end the server.
func TestImpossibleSource(t *testing.T) {
	key := netcode.Key{7}
	for _, link := range []Link{PlainUnreal51(), PlainSalted{}, Netcode{Key: key, Addrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:7777")}}} {
		p := firstPacket(t, link)
		d, err := Listen("127.0.0.1:0", Config{Link: link})
		require.NoError(t, err)
		for _, from := range []string{"127.0.0.1:0", "[2001:db8::1]:9", "0.0.0.0:0", "[::]:0"} {
			d.server.receive(time.Second, netip.MustParseAddrPort(from), bytes.Clone(p))
			d.TickFlush(d.epoch.Add(time.Second))
			require.NoError(t, d.Err(), "%T, %s", link, from)
		}
		require.NotZero(t, d.Counters.DatagramsOut, "%T answers", link)
		require.NotZero(t, d.Counters.SendErrors, "%T", link)
		require.NoError(t, d.Close())
	}
	k := keepSocket()
	k.err = errors.New("an error of a system not heard of")
	d, err := Dial("127.0.0.1:7777", Config{Link: PlainSalted{}, Socket: k})
	require.NoError(t, err)
	d.TickFlush(d.epoch)
	require.NoError(t, d.Err())
	require.NotZero(t, d.Counters.SendErrors)
}

// dialToken is a token for servers.
func dialToken(t *testing.T, servers ...string) netcode.Token {
	cfg := netcode.TokenConfig{ClientID: 1, Create: 1, Expire: netcode.NeverExpires, Timeout: 1, PrivateKey: netcode.Key{7}}
	for _, s := range servers {
		cfg.Servers = append(cfg.Servers, netip.MustParseAddrPort(s))
	}
	token, err := netcode.GenerateConnectToken(cfg)
	require.NoError(t, err)
	return token
}

// TestServersOfToken: a token's servers may be anywhere, whatever the address that is dialed; one that can't be reached is
// passed over.
func TestServersOfToken(t *testing.T) {
	srv, err := Listen("127.0.0.1:0", Config{Link: Netcode{Key: netcode.Key{7}}})
	require.NoError(t, err)
	defer srv.Close()
	for _, addr := range []string{"127.0.0.1:9", "192.0.2.1:9"} {
		token := dialToken(t, "[2001:db8::7]:9", "[::1]:9", "127.0.0.1:9", "192.0.2.1:9", srv.LocalAddr().String())
		joined := false
		cl, err := Dial(addr, Config{Link: Netcode{Token: token}, Joined: func(*Conn) { joined = true }})
		require.NoError(t, err)
		now := cl.epoch
		for i := 0; !joined; i++ {
			require.Less(t, i, 2000, "%v", cl.Err())
			now = now.Add(16 * time.Millisecond)
			for _, d := range []*Driver{srv, cl} {
				d.TickDispatch(now)
				d.TickFlush(now)
			}
		}
		require.NoError(t, cl.Close())
		for range 2 {
			srv.TickDispatch(now)
			srv.TickFlush(now)
		}
	}
	require.Equal(t, "[::1]:0", localFor(netip.MustParseAddrPort("[::1]:9"), nil))
	require.Equal(t, "127.0.0.1:0", localFor(netip.MustParseAddrPort("127.0.0.1:9"), Netcode{}))
	require.Equal(t, ":0", localFor(netip.MustParseAddrPort("127.0.0.1:9"), &Netcode{Token: dialToken(t, "127.0.0.1:9")}))
}

// TestTokenForOneDial: a token is refused the second time, by whatever driver of the process.
func TestTokenForOneDial(t *testing.T) {
	token := dialToken(t, "127.0.0.1:9")
	for i := range 3 {
		k := keepSocket()
		d, err := Dial("127.0.0.1:9", Config{Link: Netcode{Token: bytes.Clone(token)}, Socket: k})
		if i == 0 {
			require.NoError(t, err)
			require.NoError(t, d.Close())
			continue
		}
		require.ErrorIs(t, err, netcode.ErrTokenReused)
		require.Empty(t, k.sent, "nothing was sent with it")
	}
}

// TestWrongClock: a server whose clock was far behind when it started refuses expired tokens once it is set.
func TestWrongClock(t *testing.T) {
	token := dialToken(t, "127.0.0.1:7777")
	copy(token[29:], []byte{100, 0, 0, 0, 0, 0, 0, 0}) // expire; authentic or not, it is looked at first
	link := Netcode{Token: token}
	request := firstPacket(t, link)
	srv, err := Listen("", Config{Socket: keepSocket(), Link: Netcode{Key: netcode.Key{7}}})
	require.NoError(t, err)
	m := srv.server.(*netcodeServer).m
	m.SetClock(0, 50) // it was 1970
	srv.server.receive(time.Second, netip.MustParseAddrPort("127.0.0.1:1"), bytes.Clone(request))
	require.EqualValues(t, 1, m.Counters.BadToken)
	srv.TickFlush(time.Now())
	srv.server.receive(time.Second, netip.MustParseAddrPort("127.0.0.1:1"), bytes.Clone(request))
	require.EqualValues(t, 1, m.Counters.Expired)
}

// TestImpossibleSlots: a number of slots that can't be is an error.
func TestImpossibleSlots(t *testing.T) {
	for _, n := range []int{-1, netcode.MaxSlots + 1, math.MaxInt} {
		_, err := Listen("", Config{Socket: keepSocket(), Link: Netcode{Key: netcode.Key{7}, Slots: n}})
		require.ErrorContains(t, err, "Slots", "%d", n)
	}
}

// TestConnectionLog: clients that come and go fast are a bounded number of lines, with a count of what was left out.
func TestConnectionLog(t *testing.T) {
	var log bytes.Buffer
	d, err := Listen("", Config{Socket: keepSocket(), Link: PlainSalted{}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	now := d.epoch
	for range 180 { // three seconds
		for range 10 {
			c, err := d.newConn(d.Time(now), netip.MustParseAddrPort("192.0.2.7:9"), 1, 1, nil, 0, 0, func(*Conn, []byte) {})
			require.NoError(t, err)
			c.Abort(d.Time(now), "gone")
		}
		now = now.Add(time.Second / 60)
		d.TickFlush(now)
	}
	lines := strings.Count(log.String(), "\n")
	require.LessOrEqual(t, lines, 4*(maxLines+1))
	require.GreaterOrEqual(t, lines, 3*maxLines)
	require.Contains(t, log.String(), `msg="more connections came and went" lines=`)
}

// TestPrintsNoKeys: a driver and its settings, printed or logged, show neither key nor token.
func TestPrintsNoKeys(t *testing.T) {
	key := netcode.Key(bytes.Repeat([]byte{0xe7, 0xd3}, 16))
	link := Netcode{Key: key, Token: bytes.Repeat([]byte{0xe7, 0xd3}, 1024)}
	cfg := Config{Link: link, Socket: keepSocket()}
	d, err := Listen("", cfg)
	require.NoError(t, err)
	var log bytes.Buffer
	for _, v := range []any{d, link, &link, cfg, &cfg} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%X", "%d", "%q"} {
			fmt.Fprintf(&log, verb+"\n", v)
		}
		slog.New(slog.NewTextHandler(&log, nil)).Info("text", "v", v)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("json", "v", v)
	}
	for _, leak := range []string{"e7d3", "E7D3", "231 211", "231,211", "231, 211", "0xe7, 0xd3", "59Pn", "\xe7\xd3", `\xe7\xd3`} {
		require.False(t, strings.Contains(log.String(), leak), leak)
	}
	require.Contains(t, log.String(), "driver.Driver(server at 127.0.0.1:1234, 0 connections)")
}

// TestCloseTells: who closes its driver tells the other end ten times, so that a slot isn't kept for a client that left
// on a bad network.
func TestCloseTells(t *testing.T) {
	for _, serverCloses := range []bool{false, true} {
		key := netcode.Key{7}
		m := newMemory(t, Config{Link: Netcode{Key: key}}, Config{Link: Netcode{Key: key}})
		m.until("joined", func() bool { return m.sc != nil && m.cc != nil })
		d, other := m.client, m.server
		if serverCloses {
			d, other = other, d
		}
		k := &keep{Socket: d.socket}
		d.socket = k
		require.NoError(t, d.Close())
		n := 0
		for _, p := range k.sent {
			if p.Buf[0]&15 == 6 {
				n++
			}
		}
		require.Equal(t, 10, n)
		require.Equal(t, 1, other.Len())
	}
}

// TestClientRefusals: a client tells its refusals too, and packets that come again have a reason on every link.
func TestClientRefusals(t *testing.T) {
	count := func(d *Driver, reason string) (n uint64) {
		for r, v := range d.Refusals {
			if r == reason {
				n += v
			}
		}
		return n
	}
	for _, c := range []struct {
		link   Link
		again  string // the reason of a packet that came before
		reason string // of a handful of zeros from the server
	}{{Netcode{Key: netcode.Key{7}}, "replayed", "bad_format"}, {PlainSalted{}, "stale_packet", "too_short"}, {PlainUnreal51(), "stale_packet", "packet"}} {
		m := newMemory(t, Config{Link: c.link}, Config{Link: c.link})
		tap := &keep{Socket: m.client.socket, forward: true}
		m.client.socket = tap
		m.until("joined", func() bool { return m.sc != nil && m.cc != nil })
		m.client.client.receive(m.client.Time(m.now), m.sc.driver.LocalAddr(), make([]byte, 5))
		require.NotZero(t, count(m.client, c.reason), "%T", c.link)

		tap.sent = nil
		for range 10 {
			m.now = m.now.Add(time.Second)
			m.client.TickFlush(m.now)
		}
		require.NotEmpty(t, tap.sent)
		for range 3 {
			for _, p := range tap.sent {
				m.server.server.receive(m.server.Time(m.now), m.client.LocalAddr(), bytes.Clone(p.Buf))
			}
			m.server.postDispatch(m.server.Time(m.now))
		}
		require.GreaterOrEqual(t, count(m.server, c.again), uint64(len(tap.sent)), "%T; salted keep-alives say the same each time", c.link)
		before := count(m.server, "stale_packet")
		m.sc.Abort(m.server.Time(m.now), "enough")
		m.server.TickFlush(m.now)
		require.Zero(t, m.server.Len())
		require.Equal(t, before, count(m.server, "stale_packet"), "those who left are counted still")
	}
}
