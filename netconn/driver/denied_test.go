package driver

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// TestOwnTextTooLong: a text of Level or Respond that its message has no room for is this end's failure, and not the peer's.
func TestOwnTextTooLong(t *testing.T) {
	long := strings.Repeat("x", 5000)
	var log bytes.Buffer
	m := newMemory(t, Config{Link: PlainSalted{}, Logger: slog.New(slog.NewTextHandler(&log, nil)), Server: control.ServerConfig{Level: func() (string, string) { return long, "" }}}, Config{Link: PlainSalted{}})
	m.until("ended", func() bool { return m.sres != nil && m.cres != nil })
	require.Equal(t, netconn.WeBroke, m.sres.Code)
	require.ErrorIs(t, m.sres.Err, errText)
	require.NotContains(t, log.String(), "shorter")

	m = newMemory(t, Config{Link: PlainSalted{}}, Config{Link: PlainSalted{}, Client: control.ClientConfig{Respond: func(string) string { return long }}})
	m.until("ended", func() bool { return m.sres != nil && m.cres != nil })
	require.Equal(t, netconn.WeBroke, m.cres.Code)
	require.ErrorIs(t, m.cres.Err, errText)
}

// TestDeniedThenNobody: who is denied by one server of a token, and then hears nothing of the next one, is told that he was denied. Who is let in by the next one isn't.
func TestDeniedThenNobody(t *testing.T) {
	key := netcode.Key{1, 2, 3}
	now := uint64(time.Now().Unix())
	first := netip.MustParseAddrPort("127.0.0.1:7777")
	play := func(next netip.AddrPort) *memory {
		token, err := netcode.GenerateConnectToken(netcode.TokenConfig{ProtocolID: 9, ClientID: 1, Create: now, Expire: now + 60, Timeout: 2, Servers: []netip.AddrPort{first, next}, PrivateKey: key})
		require.NoError(t, err)
		asked := 0
		return newMemory(t, Config{Link: Netcode{ProtocolID: 9, Key: key, Slots: 1, Admit: func(netcode.ClientInfo) netcode.Admission {
			if asked++; asked == 1 {
				return netcode.Refuse
			}
			return netcode.Admit
		}}}, Config{Link: Netcode{ProtocolID: 9, Token: token}})
	}
	m := play(netip.MustParseAddrPort("127.0.0.2:7777"))
	m.until("ended", func() bool { return m.cres != nil })
	require.ErrorIs(t, m.cres.Err, ErrFull)

	m = play(first)
	m.until("joined", func() bool { return m.sc != nil && m.cc != nil })
	_, told := m.client.client.(*netcodeClient).m.Denied()
	require.False(t, told)
	m.sc.CloseWithError(ErrKicked)
	m.until("ended", func() bool { return m.cres != nil })
	require.ErrorIs(t, m.cres.Err, ErrKicked)
	require.NotErrorIs(t, m.cres.Err, ErrFull)
}
