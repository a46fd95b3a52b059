package netcode

import (
	"encoding/hex"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestPathID: a connection is found by the path id of its token, from when its client has a slot until it has none, and by no other. The id is the one that the
// doc describes, and isn't printed.
func TestPathID(t *testing.T) {
	var key Key
	for i := range key {
		key[i] = byte(i)
	}
	id := pathOf(&key)
	require.Equal(t, "24a3e7e536585158aea641b519f2d692", hex.EncodeToString(id[:]), "of Python's hmac")
	for _, text := range []string{fmt.Sprintf("%v %x %d %s %+v", id, id, id, id, struct{ P PathID }{id}), id.LogValue().String(), slog.Any("", id).String()} {
		require.NotContains(t, text, "24a3e7e536585158aea641b519f2d692"[:8])
		require.Contains(t, text, "secret")
	}
	for _, bad := range []Token{nil, make(Token, ConnectTokenBytes), make(Token, 7)} {
		_, ok := bad.PathID()
		require.False(t, ok)
	}

	r := newRig(t, 1, netsim.Settings{}, 4)
	r.server.cfg.TakeOver = true
	first, second := token(t, 1, nil), token(t, 2, nil)
	ids := map[string]PathID{}
	for name, of := range map[string]Token{"first": first, "second": second} {
		id, ok := of.PathID()
		require.True(t, ok)
		ids[name] = id
	}
	find := func(name string, want bool) {
		t.Helper()
		addr, ok := r.server.AddrOfPath(ids[name])
		require.Equal(t, want, ok)
		require.Equal(t, want, addr == clientAddr)
	}
	find("first", false)
	require.NoError(t, r.client.Connect(r.now, first))
	find("first", false)
	r.run(5)
	require.Equal(t, Connected, r.client.State())
	find("first", true)
	find("second", false)
	require.NoError(t, r.client.Connect(r.now, second)) // it takes over
	r.run(5)
	require.Equal(t, Connected, r.client.State())
	find("first", false)
	find("second", true)
	slot, ok := r.server.SlotOf(clientAddr)
	require.True(t, ok)
	r.server.Disconnect(r.now, slot)
	find("second", false)
	require.Empty(t, r.server.byPath)
}
