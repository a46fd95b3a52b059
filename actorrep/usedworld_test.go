package actorrep_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/replay"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestUsedWorld: a client that dials again with the World of an earlier connection is told so for each further one.
func TestUsedWorld(t *testing.T) {
	r := rig.New(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, actorrep.Config{}, func(*actorrep.World) error { return nil })
	l := r.JoinOther(func(*actorrep.World) error { return nil })
	for n := range 3 {
		for range 30 {
			r.Step()
		}
		require.Len(t, l.Failed, n)
		for _, err := range l.Failed {
			require.ErrorIs(t, err, actorrep.ErrUsedWorld)
		}
		r.JoinAgain(l)
	}
}

// TestPlayedAfterAConnection: a recording is played into a World whose connection is over, with channels where the recording has its places.
func TestPlayedAfterAConnection(t *testing.T) {
	r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{}, registerWalker)
	l := r.JoinOther(registerWalker)
	at := &walker{}
	require.NoError(t, r.Server.Spawn(at))
	r.Await("the walker", r.Step, func() bool { return l.World.Len() == 1 })
	require.NoError(t, at.SetDormant(true))
	for range 10 {
		r.Step()
	}
	require.NoError(t, r.Server.Destroy(at))
	r.Await("its end", r.Step, func() bool { return l.World.Len() == 0 })
	r.Server.RemoveConn(l.Peer)
	l.C.Close(r.Now, "")
	for now := r.Now; !l.C.Closed(); now += time.Second {
		l.C.Tick(now)
	}
	r.Lines = nil

	var file bytes.Buffer
	rec, err := replay.Record(r.Server, &file, replay.Config{})
	require.NoError(t, err)
	for range 5 {
		require.NoError(t, r.Server.Spawn(&walker{}))
	}
	for range 10 {
		r.Step()
	}
	require.NoError(t, rec.Close())
	film, err := replay.Open(bytes.NewReader(file.Bytes()), int64(file.Len()))
	require.NoError(t, err)
	require.NoError(t, film.Play(l.World))
	require.NoError(t, film.Step(film.Duration()))
	require.Equal(t, 5, l.World.Len())
}
