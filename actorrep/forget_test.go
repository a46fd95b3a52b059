package actorrep

import (
	"testing"

	"github.com/stretchr/testify/require"
)

type brief struct {
	Base
	N uint32 `net:""`
}

// TestForgets: what went isn't kept, neither by a server without players nor after the last one has left.
func TestForgets(t *testing.T) {
	w := NewServer(Config{})
	require.NoError(t, w.Register("brief", (*brief)(nil)))
	play := func(p *Peer) {
		for range 100 {
			b := &brief{}
			require.NoError(t, w.Spawn(b))
			b.SetOwner(p)
			w.Step(w.now + 1)
			require.NoError(t, w.Destroy(b))
			w.Step(w.now + 1)
		}
	}
	play(nil)
	l := w.relevancy.(*list)
	require.Empty(t, l.fresh)
	var peers []*Peer
	for range 3 {
		p := w.newPeer()
		p.out = &channelOutlet{peer: p}
		w.addPeer(p)
		peers = append(peers, p)
	}
	l.Update(w.now)
	for _, p := range l.came[:cap(l.came)] {
		require.Nil(t, p)
	}
	for _, p := range peers {
		w.RemoveConn(p)
	}
	play(nil)
	require.Empty(t, l.fresh)
	for _, p := range w.peers[:cap(w.peers)] {
		require.Nil(t, p)
	}
}
