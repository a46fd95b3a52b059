package actorrep_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/replay"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// timed is an actor whose value says in which millisecond of the server it was set.
type timed struct {
	actorrep.Base
	Set int64 `net:"notify=OnSet"`

	wrong, told int
	had         map[time.Duration]int64 // by the time of the server's Step, in units of the wire
}

func registerTimed(t testing.TB, w *actorrep.World) {
	require.NoError(t, w.Register("timed", (*timed)(nil)))
}

// OnSet looks whether the server had the value at the time that it is told.
func (m *timed) OnSet() {
	m.told++
	at, ok := m.ServerTime()
	if set, known := m.had[at>>16]; !ok || at < time.Duration(m.Set-1)*time.Millisecond || m.had != nil && (!known || set != m.Set) {
		m.wrong++
	}
}

// TestServerTime: a notify finds the time of its value, whatever is lost, at whatever rate, after any pause, and from whatever time the
// server's clock began.
func TestServerTime(t *testing.T) {
	for seed, began := range []time.Duration{0, 7 * time.Minute, 400 * 24 * time.Hour, 1<<36 - time.Second} {
		w := newWorld(t, uint64(seed), netsim.Settings{Loss: 10, LagMin: 20 * time.Millisecond, LagMax: 90 * time.Millisecond}, actorrep.Config{}, registerTimed)
		w.Now = began.Truncate(time.Millisecond)
		l := w.join()
		often, seldom := &timed{}, &timed{}
		require.NoError(t, w.Server.Spawn(often))
		require.NoError(t, w.Server.Spawn(seldom))
		require.NoError(t, seldom.SetUpdateFrequency(3))
		_, ok := l.World.ServerTime()
		require.False(t, ok, "nothing came yet")
		had := map[time.Duration]int64{}
		for step := range 900 {
			if step%300 > 200 && step%300 < 250 { // nothing changes
				if step%300 == 230 {
					w.Now += time.Duration([]int64{10, 20, 50}[step/300]) * time.Second
				}
			} else {
				often.Set = int64((w.Now + tick) / time.Millisecond)
				seldom.Set = often.Set
			}
			had[(w.Now+tick)>>16] = often.Set
			if m, ok := l.World.Find(often.GUID()).(*timed); ok {
				m.had = had
			}
			w.Step()
			at, ok := l.World.ServerTime()
			require.True(t, !ok || at <= w.Now && at > w.Now-2*time.Hour)
		}
		for _, a := range []*timed{often, seldom} {
			m := l.World.Find(a.GUID()).(*timed)
			require.Zero(t, m.wrong, "seed %d, of %d", seed, m.told)
			require.Greater(t, m.told, 50)
		}
		at, ok := often.ServerTime()
		require.True(t, ok)
		require.Equal(t, w.Now, at, "on the server it is now")
	}
}

// TestServerTimeOfReplays: a recording tells the server's time, also after a seek.
func TestServerTimeOfReplays(t *testing.T) {
	var file bytes.Buffer
	w := newWorld(t, 1, clean, actorrep.Config{}, registerTimed)
	w.Now = 5 * time.Hour
	rec, err := replay.Record(w.Server, &file, replay.Config{Checkpoints: 10 * time.Second})
	require.NoError(t, err)
	a := &timed{}
	require.NoError(t, w.Server.Spawn(a))
	for range 120 * 30 {
		a.Set = int64((w.Now + tick) / time.Millisecond)
		w.Step()
	}
	require.NoError(t, rec.Close())
	replay, err := replay.Open(bytes.NewReader(file.Bytes()), int64(file.Len()))
	require.NoError(t, err)
	client := actorrep.NewClient(actorrep.Config{})
	registerTimed(t, client)
	require.NoError(t, replay.Play(client))
	for _, to := range []time.Duration{time.Second, 100 * time.Second, 15 * time.Second} {
		require.NoError(t, replay.Seek(to))
		for i := range 30 {
			require.NoError(t, replay.Step(time.Duration(i)*tick))
		}
		at, ok := client.ServerTime()
		require.True(t, ok)
		require.InDelta(t, (5*time.Hour + to + time.Second).Seconds(), at.Seconds(), 0.3)
		require.Zero(t, client.Find(a.GUID()).(*timed).wrong)
	}
}
