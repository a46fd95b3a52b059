package netcode

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// FuzzClient gives a client arbitrary datagrams, before it is connected and after. Without the keys nothing gets in.
func FuzzClient(f *testing.F) {
	f.Add([]byte{1<<4 | 3, 5}, []byte{1<<4 | 5, 0, 1, 2, 3})
	f.Add(bytes.Repeat([]byte{8<<4 | 4}, 33), []byte{0})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		r := newRig(t, 1, netsim.Settings{}, 2)
		require.NoError(t, r.client.Connect(0, token(t, 1, nil)))
		for _, p := range [][]byte{a, b} {
			r.client.Receive(0, serverAddr, bytes.Clone(p))
		}
		require.Equal(t, SendingRequest, r.client.State())
		for range 60 {
			r.step()
		}
		require.Equal(t, Connected, r.client.State(), "what came first doesn't matter")
		before := r.client.Counters
		for _, p := range [][]byte{a, b} {
			r.client.Receive(r.now, serverAddr, bytes.Clone(p))
		}
		require.Equal(t, Connected, r.client.State())
		require.Equal(t, before.Payloads, r.client.Counters.Payloads)
		require.Equal(t, before.KeepAlives, r.client.Counters.KeepAlives)
	})
}

// FuzzTexts reads keys and addresses as people write them, and tokens as back ends send them.
func FuzzTexts(f *testing.F) {
	f.Add(Key{1, 2}.Hex())
	f.Add("[::1]:7777")
	f.Add("127.0.0.1:80")
	f.Add(string(token(f, 1, nil)))
	f.Fuzz(func(t *testing.T, s string) {
		if k, err := ParseKey(s); err == nil {
			again, err := ParseKey(k.Hex())
			require.NoError(t, err)
			require.Equal(t, k, again)
		}
		if a, err := ParseAddr(s); err == nil {
			again, err := ParseAddr(a.String())
			require.NoError(t, err)
			require.Equal(t, a, again)
		}
		r := newRig(t, 1, netsim.Settings{}, 2)
		if r.client.Connect(0, []byte(s)) == nil {
			require.Len(t, s, ConnectTokenBytes)
			for range 5 {
				r.client.Tick(r.now)
			}
		}
	})
}
