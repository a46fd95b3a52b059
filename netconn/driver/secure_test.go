package driver

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// forget makes the process one that never listened.
func forget(t *testing.T) {
	t.Helper()
	development.Lock()
	defer development.Unlock()
	development.key, development.warned = netcode.Key{}, false
}

// TestDefaultIsEncrypted: without a link or a key, what goes over the wire can't be read, the operator is warned
// once, and the key is nowhere in the log.
func TestDefaultIsEncrypted(t *testing.T) {
	forget(t)
	t.Setenv(KeyEnv, "")
	var log bytes.Buffer
	e, got := &echo{}, &sink{}
	m := newMemory(t, Config{Channels: chat(e), Logger: slog.New(slog.NewTextHandler(&log, nil))}, Config{Channels: chat(got)})
	wire := &tap{Socket: m.client.socket}
	m.client.socket = wire
	m.until("joined", func() bool { return m.sc != nil && m.cc != nil })
	ch, err := m.cc.Open(chatName, got)
	require.NoError(t, err)
	const secret = "attack at dawn, by the river"
	send(t, ch, secret)
	m.until("echoed", func() bool { return len(got.got) == 1 })
	require.Equal(t, secret, got.got[0])
	require.False(t, wire.shows(secret))
	require.Contains(t, log.String(), KeyEnv)
	require.Equal(t, 1, strings.Count(log.String(), "development"))
	require.NotContains(t, log.String(), development.key.Hex())

	plain := newMemory(t, Config{Link: PlainSalted{}, Channels: chat(e)}, Config{Link: PlainSalted{}, Channels: chat(got)})
	wire = &tap{Socket: plain.client.socket}
	plain.client.socket = wire
	plain.until("joined", func() bool { return plain.sc != nil && plain.cc != nil })
	ch, err = plain.cc.Open(chatName, got)
	require.NoError(t, err)
	send(t, ch, secret)
	plain.until("echoed", func() bool { return len(got.got) == 2 })
	require.True(t, wire.shows(secret), "the tap sees what isn't encrypted")
}

// TestNoWarningOnLoopback: a program that keeps to its machine isn't warned that others can't connect; one that listens to all is.
func TestNoWarningOnLoopback(t *testing.T) {
	forget(t)
	t.Setenv(KeyEnv, "")
	var log bytes.Buffer
	old := slog.Default()
	defer slog.SetDefault(old)
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	for _, addr := range []string{"127.0.0.1:0", ":0"} {
		require.Empty(t, log.String(), addr)
		d, err := Listen(addr, Config{})
		require.NoError(t, err)
		require.NoError(t, d.Close())
	}
	require.Contains(t, log.String(), KeyEnv)
}

// tap keeps what is written.
type tap struct {
	udp.Socket
	seen bytes.Buffer
}

func (s *tap) WriteBatch(msgs []udp.Message) (int, error) {
	for _, m := range msgs {
		s.seen.Write(m.Buf)
	}
	return s.Socket.WriteBatch(msgs)
}

// shows reports whether a text was written, at any bit.
func (s *tap) shows(text string) bool {
	b := s.seen.Bytes()
	for shift := range 8 {
		shifted := make([]byte, len(b))
		for i := range b {
			shifted[i] = b[i] >> shift
			if i+1 < len(b) {
				shifted[i] |= b[i+1] << (8 - shift)
			}
		}
		if bytes.Contains(shifted, []byte(text)) {
			return true
		}
	}
	return false
}

// TestKeyFromEnvironment: both ends take the key from there; another key doesn't fit, and a malformed
// one is an error that doesn't show it.
func TestKeyFromEnvironment(t *testing.T) {
	forget(t)
	key := netcode.Key{4, 5, 6}
	t.Setenv(KeyEnv, key.Hex())
	m := newMemory(t, Config{}, Config{})
	m.until("joined", func() bool { return m.sc != nil && m.cc != nil })
	require.True(t, development.key.IsZero(), "none was made")

	m = newMemory(t, Config{Link: Netcode{Key: netcode.Key{9}}}, Config{})
	m.until("refused", func() bool { return m.cres != nil })
	require.Zero(t, m.server.Counters.Accepted)

	t.Setenv(KeyEnv, "12345678abcdef")
	_, err := Listen("127.0.0.1:0", Config{})
	require.ErrorIs(t, err, netcode.ErrKey)
	require.ErrorContains(t, err, KeyEnv)
	require.NotContains(t, err.Error(), "abcdef")
}

// TestNoToken: a process that isn't the server's has no key, and is told what to do.
func TestNoToken(t *testing.T) {
	forget(t)
	t.Setenv(KeyEnv, "")
	_, err := Dial("127.0.0.1:7777", Config{})
	require.ErrorIs(t, err, ErrNoToken)
	_, err = Dial("127.0.0.1:7777", Config{Link: Netcode{Token: []byte("not a token")}})
	require.ErrorIs(t, err, netcode.ErrToken)
}

// TestAnyAddressByDefault: a server at an unspecified address takes clients that dial one of its own.
func TestAnyAddressByDefault(t *testing.T) {
	s := &netcodeServer{}
	a, _ := udp.Pair(netip.MustParseAddrPort("[::]:7777"), netip.MustParseAddrPort("127.0.0.1:1234"))
	d, err := Listen("", Config{Socket: a})
	require.NoError(t, err)
	defer d.Close()
	s = d.server.(*netcodeServer)
	token, err := (&Netcode{}).ownToken(d, netip.MustParseAddrPort("192.0.2.1:7777"))
	require.NoError(t, err)
	c, err := netcode.NewClient(netcode.ClientConfig{Handler: &requests{}})
	require.NoError(t, err)
	require.NoError(t, c.Connect(0, token))
	s.receive(time.Second, netip.MustParseAddrPort("127.0.0.1:1234"), theRequest)
	require.EqualValues(t, 1, s.m.Counters.Challenges, "%+v", s.m.Counters)
}

// requests keeps the last packet of a client.
type requests struct{}

var theRequest []byte

func (*requests) Send(_ netip.AddrPort, p []byte)           { theRequest = bytes.Clone(p) }
func (*requests) StateChanged(netcode.State, netcode.State) {}
func (*requests) Payload([]byte)                            {}

// TestRefusalLog: a flood is one line a second, with a count for each reason.
func TestRefusalLog(t *testing.T) {
	for _, c := range []struct {
		link   Link
		packet []byte
		reason string
	}{
		{Netcode{Key: netcode.Key{1}}, make([]byte, 100), "bad_size"},
		{PlainSalted{}, make([]byte, 3), "too_short"},
		{PlainUnreal51(), []byte{0x20, 1}, "too_short"},
	} {
		var log bytes.Buffer
		d, err := Listen("127.0.0.1:0", Config{Link: c.link, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		defer d.Close()
		from := netip.MustParseAddrPort("192.0.2.7:9")
		now := d.epoch
		for range 180 { // three seconds
			for range 1000 {
				d.server.receive(d.Time(now), from, bytes.Clone(c.packet))
			}
			now = now.Add(time.Second / 60)
			d.TickFlush(now)
		}
		require.LessOrEqual(t, strings.Count(log.String(), "refused"), 4, "%T", c.link)
		require.Contains(t, log.String(), c.reason+"=", "%T", c.link)
		total := uint64(0)
		for _, n := range d.Refusals {
			total += n
		}
		require.EqualValues(t, 180_000, total, "%T: every one has a reason", c.link)
	}
}

// TestRefusalHint: the first line of the log about a reason that a setting causes says what to do; the error of the client says where to look.
func TestRefusalHint(t *testing.T) {
	var log bytes.Buffer
	key := netcode.Key{1}
	m := newMemory(t, Config{Link: Netcode{Key: key, Addrs: []netip.AddrPort{netip.MustParseAddrPort("10.9.9.9:7777")}}, Logger: slog.New(slog.NewTextHandler(&log, nil))},
		Config{Link: Netcode{Key: key}})
	m.until("refused", func() bool { return m.cres != nil })
	require.Greater(t, strings.Count(log.String(), "other_server="), 1)
	require.Equal(t, 1, strings.Count(log.String(), "hint="), log.String())
	require.Contains(t, log.String(), `hint="other_server: list the address that clients dial in Netcode.Addrs"`)
	require.ErrorContains(t, m.cres.Err, "the log of the server says why it refused")

	told := map[string]bool{}
	for _, link := range links() {
		m := newMemory(t, Config{Link: link}, Config{Link: link})
		for reason := range m.server.Refusals {
			told[reason] = true
		}
	}
	for reason, do := range remedies {
		require.True(t, told[reason], reason)
		require.False(t, strays[reason], reason)
		require.NotEmpty(t, do)
	}
}

func send(t *testing.T, ch *channel.Channel, text string) {
	t.Helper()
	_, err := ch.SendBunch(&bunch.Out{Data: []byte(text), Reliable: true})
	require.NoError(t, err)
}

// TestIdentityFromTheFirstCallback: whose token it is, and what the back end put into it, is known as soon as the game hears of the
// connection, also where it has a login of its own and Joined is the first that it hears of.
func TestIdentityFromTheFirstCallback(t *testing.T) {
	for _, login := range []bool{true, false} {
		var ids []uint64
		var said []byte
		hear := func(c *Conn) { ids, said = append(ids, c.ClientID()), append(said, c.UserData()[0]) }
		types := []channel.Type{{Name: bunch.Control, Static: true, ClientOpen: true, ServerOpen: true}}
		if login {
			types = nil
		}
		w := newTown(t, 1, netsim.Settings{}, Config{Link: Netcode{Key: netcode.Key{1}}, Channels: types, Accepted: hear, Joined: hear})
		token := townToken(t, w, 42, func(c *netcode.TokenConfig) { c.UserData[0] = 'x' })
		w.dial(Config{Link: Netcode{Token: token}, Channels: types})
		w.until("joined", func() bool { return len(ids) == 2 })
		require.Equal(t, []uint64{42, 42}, ids)
		require.Equal(t, "xx", string(said))
	}
}
