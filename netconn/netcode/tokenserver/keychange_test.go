package tokenserver

import (
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// TestKeyChange: when the key changes, tokens of the old key that are out are good at servers that have the old key, until they expire, and
// nowhere else. Where a server has another key the client is told within the token's Timeout, the server counts bad_token and lets
// nobody in, and a token that is fetched then joins. Who plays notices nothing.
func TestKeyChange(t *testing.T) {
	before, after := key, netcode.Key{0xdd, 0xee, 0xff}
	addr := netip.MustParseAddrPort("127.0.0.1:7777")
	now := time.Unix(1_700_000_000, 0)
	service := func(k netcode.Key) *rig {
		r := newRig(t, func(c *Config) {
			c.Key, c.Now, c.Burst, c.Life, c.Timeout = k, func() time.Time { return now }, 100, 30*time.Second, 3*time.Second
		})
		return r
	}
	token := func(r *rig) netcode.Token {
		w := r.ask("POST", "192.0.2.1:1", "ann")
		require.Equal(t, http.StatusOK, w.Code)
		return w.Body.Bytes()
	}
	var running []*driver.Driver
	tick := func() {
		now = now.Add(16 * time.Millisecond)
		for _, d := range running {
			d.TickDispatch(now)
			d.TickFlush(now)
		}
	}
	type result struct {
		joined bool
		end    *netconn.CloseResult
		took   time.Duration
		bad    uint64
	}
	// meet has a client with a token dial a server with a key, until it is in or was told why not.
	meet := func(k netcode.Key, tok netcode.Token) *result {
		a, b := udp.Pair(addr, netip.MustParseAddrPort("127.0.0.1:1234"))
		clock := func() time.Time { return now }
		srv, err := driver.Listen("", driver.Config{Socket: a, Clock: clock, Link: driver.Netcode{ProtocolID: 7, Key: k}})
		require.NoError(t, err)
		r := &result{}
		cl, err := driver.Dial(addr.String(), driver.Config{Socket: b, Clock: clock, Link: driver.Netcode{ProtocolID: 7, Token: tok},
			Joined: func(*driver.Conn) { r.joined = true }, Closed: func(_ *driver.Conn, e netconn.CloseResult) { r.end = &e }})
		require.NoError(t, err)
		t.Cleanup(func() {
			require.NoError(t, cl.Close())
			require.NoError(t, srv.Close())
		})
		running = append(running, srv, cl)
		begin := now
		for i := 0; !r.joined && r.end == nil; i++ {
			require.Less(t, i, 10_000)
			tick()
		}
		r.took = now.Sub(begin)
		for reason, n := range srv.Refusals {
			if reason == "bad_token" {
				r.bad = n
			}
		}
		if !r.joined {
			require.Zero(t, srv.Counters.Accepted)
		}
		return r
	}
	old, fresh := service(before), service(after)
	playing := meet(before, token(old))
	require.True(t, playing.joined)
	kept := []netcode.Token{token(old), token(old), token(old)}

	require.True(t, meet(before, kept[0]).joined, "a server with the old key takes a token of it after the change")
	for name, r := range map[string]*result{"old token, new key": meet(after, kept[1]), "new token, old key": meet(before, token(fresh))} {
		require.False(t, r.joined, name)
		require.ErrorIs(t, r.end.Err, driver.ErrNoAnswer, name)
		require.LessOrEqual(t, r.took, 3100*time.Millisecond, name)
		require.NotZero(t, r.bad, name)
	}
	require.True(t, meet(after, token(fresh)).joined)
	for end := now.Add(30 * time.Second); now.Before(end); {
		tick()
	}
	late := meet(before, kept[2])
	require.False(t, late.joined, "it has expired")
	require.ErrorIs(t, late.end.Err, driver.ErrExpired)
	require.Nil(t, playing.end, "who plays notices nothing")
}
