package exercise

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// TestPlainBunches is one server, one client and a lossy link.
func TestPlainBunches(t *testing.T) {
	s := simtest.Script{Seed: 1, Run: 5 * time.Second, Net: netsim.Settings{Lag: 20 * time.Millisecond, LagVariance: 10 * time.Millisecond, Loss: 5, Dup: 2, Order: 2}}
	s.Set("bunches", "3")
	s.Set("churn", "50")
	r := Play(s)
	require.Nil(t, r.Failure, "%v", &r)
	again := Play(s)
	require.Equal(t, r.Hash, again.Hash, "the same seed gives the same bytes")
	s.Seed++
	other := Play(s)
	require.Nil(t, other.Failure)
	require.NotEqual(t, r.Hash, other.Hash)
	c := r.Game.(*Game).Counters
	t.Logf("%v %+v %+v", &r, r.Counters, c)
	require.Greater(t, c.ReliableBunches, uint64(100))
	require.NotZero(t, c.PacketsLost)
}

// TestDrawCovers: a few hundred seeds have everything in them.
func TestDrawCovers(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(500) {
		s := Draw(seed)
		_, err := readOptions(&s)
		require.NoError(t, err, "seed %d", seed)
		require.NoError(t, s.Validate(), "seed %d", seed)
		for _, o := range s.Options {
			seen[o.Key]++
			seen[o.Key+" "+o.Value]++
		}
		for _, f := range s.Faults {
			seen[string(f.Kind)]++
		}
	}
	for _, list := range []struct {
		key    string
		values []string
	}{{"preset", Presets}, {"link", Links}, {"controller", Controllers}} {
		for _, v := range list.values {
			require.Greater(t, seen[list.key+" "+v], 10, v)
		}
	}
	for _, key := range []string{"checksum", "copies", "adaptive", "lazyacks", "reorder", "keepalive", "timeout", "tick", "servertick", "bunches", "churn",
		"messages", "blocks", "lockstep", "actors", "liars", "leave", "mayhem", "window", "buffer", "maxpacket", "coding", "codingadaptive"} {
		require.Greater(t, seen[key], 10, key)
	}
	for _, k := range simtest.Kinds {
		require.Greater(t, seen[string(k)], 30, k)
	}
}

func TestOptionErrors(t *testing.T) {
	for _, o := range []simtest.Option{{Key: "what", Value: "1"}, {Key: "preset", Value: "x"}, {Key: "link", Value: "x"}, {Key: "copies", Value: "x"},
		{Key: "timeout", Value: "x"}, {Key: "controller", Value: "x"}, {Key: "coding", Value: "x"}} {
		r := Play(simtest.Script{Seed: 1, Run: time.Second, Settle: time.Second, Options: []simtest.Option{o}})
		require.NotNil(t, r.Failure, "%v", o)
		require.Contains(t, []string{"script", "boot"}, r.Failure.Checker, "%v", r.Failure)
	}
}

// TestMayhem: links that corrupt what nothing protects break connections, and nothing else.
func TestMayhem(t *testing.T) {
	for seed := range uint64(20) {
		s := Draw(seed)
		s.Set("mayhem", "1")
		s.Set("checksum", "0")
		s.Net.Corrupt, s.Settle = 20, 3*time.Second
		r := Play(s)
		require.True(t, r.OK(), "%v", &r)
	}
}
