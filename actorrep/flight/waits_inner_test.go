package flight

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/channel"
)

// numbered is a connection of which only the ID is asked.
type numbered struct {
	channel.Conn
	id uint32
}

func (n *numbered) ID() uint32 { return n.id }

// TestReasonsAreBounded: a Step notes few reasons, and however many hold, only some are kept, which the film says. Those of actors and of connections that are gone are
// forgotten.
func TestReasonsAreBounded(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	r, err := New(w, nil, Config{MaxBytes: 1 << 20})
	require.NoError(t, err)
	o, now, said := observer{r}, time.Duration(0), 0
	text := strings.Repeat("é", 150)
	round := func(conn *numbered, from, to int, reason uint8) {
		for a := from; a < to; a++ {
			if !o.Room() {
				require.Equal(t, waitsAStep, r.waits.noted)
				now += time.Second / 60
				w.Step(now)
				o.Stepping()
			}
			if e := (bridge.Wait{Conn: conn, Actor: netguid.GUID(a), Reason: reason}); o.Waits(e) {
				said++
				o.Why(e, text)
			}
		}
		o.Waited(conn)
	}
	conns := []*numbered{{id: 1}, {id: 2}}
	round(conns[0], 1, 10_001, 4)
	require.Equal(t, 10_000, said)
	require.Equal(t, 10_000, r.waits.all)
	require.Equal(t, (10_000-1)/waitsAStep*(time.Second/60), now)
	round(conns[0], 1, 10_001, 4)
	require.Equal(t, 10_000, said, "what is known isn't asked for again")
	require.Negative(t, r.Take().refused)
	round(conns[1], 1, 10_001, 4)
	require.Equal(t, maxWaits, r.waits.all)
	require.Equal(t, now, r.Take().refused)
	_, cut, err := r.Take().build(View{})
	require.NoError(t, err)
	require.Equal(t, "why connections lacked more than 16384 actors at once isn't kept", cut)

	round(conns[0], 1, 5_001, 4) // the others are destroyed
	require.Equal(t, maxWaits-5_000, r.waits.all)
	round(conns[0], 1, 5_001, 5)
	require.Equal(t, maxWaits-5_000, r.waits.all)
	r.forgetWaits(2)
	require.Equal(t, 5_000, r.waits.all)
	round(conns[0], 1, 5_001, 0)
	require.Zero(t, r.waits.all)
	require.Empty(t, r.waits.of[1].of)
	r.forgetWaits(1)
	require.Empty(t, r.waits.of)
	require.LessOrEqual(t, r.Bytes(), 1<<20)
}
