package simtest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestScriptRoundTrip(t *testing.T) {
	for seed := range uint64(300) {
		s := Draw(seed, Profile{MaxServers: 3, MaxClients: 9, Corrupt: true})
		s.Set("key", "value")
		got, err := Parse(s.String())
		require.NoError(t, err, "seed %d\n%v", seed, s)
		require.Equal(t, s, got, "seed %d", seed)
	}
}

func TestScriptErrors(t *testing.T) {
	const good = "run 1s\nclients 2\n"
	_, err := Parse(good)
	require.NoError(t, err)
	for _, bad := range []string{"", "run -1s", good + "seed", good + "seed x", good + "what 1", good + "option a", good + "net loss", good + "net what=1",
		good + "net loss=101", good + "net lag=1", good + "at 1s crash", good + "at x crash client1 for 1s", good + "at 1s crash client3 for 1s",
		good + "at 1s crash client01 for 1s", good + "at 1s what client1", good + "at 1s net server1 for 1s", good + "at 1s cut client1 for 1s",
		good + "at 1s skew client1 ppm=x", good + "at 1s skew client1 ppm=200000", good + "servers 300", good + "run 100000h"} {
		_, err := Parse(bad)
		require.ErrorIs(t, err, ErrScript, "%q", bad)
	}
}

func FuzzParse(f *testing.F) {
	for seed := range uint64(5) {
		f.Add(Draw(seed, Profile{Corrupt: true}).String())
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(s.String())
		require.NoError(t, err)
		require.Equal(t, s.String(), again.String())
	})
}

// TestShrink: of a long script only what the failure needs is left.
func TestShrink(t *testing.T) {
	play := func(s Script) Result {
		r := Result{Script: s}
		crash := false
		for _, f := range s.Faults {
			crash = crash || f.Kind == Crash && f.Host == "client2"
		}
		if crash && s.Net.Loss > 0 && s.Option("needed") != "" && s.Run >= time.Second {
			r.Failure = &Failure{At: s.Run, Checker: "order"}
		} else if len(s.Faults) > 2 {
			r.Failure = &Failure{At: s.Run, Checker: "another"}
		}
		return r
	}
	s := Draw(1, Profile{MaxClients: 4})
	s.Clients, s.Servers, s.Run = 4, 2, 7*time.Second
	s.Net.Loss, s.Net.Dup, s.Net.Lag = 5, 3, time.Millisecond
	s.Set("needless", "1")
	s.Set("needed", "1")
	for i := range 9 {
		s.Faults = append(s.Faults, Fault{At: time.Duration(i) * time.Second, Kind: Pause, Host: "client4", For: time.Second})
	}
	s.Faults = append(s.Faults, Fault{Kind: Crash, Host: "client2", For: time.Second})
	steps := 0
	r := Shrink(play(s), 1000, play, func(Result) { steps++ })
	require.Equal(t, "order", r.Failure.Checker)
	require.Len(t, r.Script.Faults, 1)
	require.Equal(t, 2, r.Script.Clients)
	require.Equal(t, 1, r.Script.Servers)
	require.Equal(t, []Option{{"needed", "1"}}, r.Script.Options)
	require.Less(t, r.Script.Run, 2*time.Second)
	require.Zero(t, r.Script.Net.Dup)
	require.NotZero(t, r.Script.Net.Loss)
	require.NotZero(t, steps)
	require.Equal(t, 4, s.Clients, "the script itself is left alone")
	none := Shrink(play(s), 0, play, nil)
	require.Equal(t, s, none.Script)
}

// TestScriptDefaults: a script without servers and clients has one of each, and its faults may name these.
func TestScriptDefaults(t *testing.T) {
	s := Script{Run: time.Second}
	require.NoError(t, s.Validate())
	s.Faults = []Fault{{Kind: Pause, Host: "client1", For: time.Second}}
	require.NoError(t, s.Validate())
	s.Faults[0].Host = "client2"
	require.ErrorIs(t, s.Validate(), ErrScript)
	require.ErrorIs(t, (&Script{Run: time.Second, Servers: -1}).Validate(), ErrScript)
}

// TestDrawKeepsToMinRun: a script runs for MinRun at least, also where no MaxRun is given.
func TestDrawKeepsToMinRun(t *testing.T) {
	require.Equal(t, 20*time.Second, Draw(1, Profile{MinRun: 20 * time.Second}).Run)
	for seed := range uint64(20) {
		run := Draw(seed, Profile{MinRun: 7 * time.Second}).Run
		require.GreaterOrEqual(t, run, 7*time.Second)
		require.LessOrEqual(t, run, 8*time.Second)
	}
}
