package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSoak is the command, small and short; longer when the variable CI is set.
func TestSoak(t *testing.T) {
	var out strings.Builder
	name := filepath.Join(t.TempDir(), "samples.csv")
	o := options{duration: 2 * time.Second, clients: 12, rate: 20, seed: 1, csv: name, interval: time.Second, polite: true}
	if os.Getenv("CI") != "" {
		o.duration, o.clients, o.polite = 8*time.Second, 24, false
	}
	require.NoError(t, run(&out, o), "%s", &out)
	require.Contains(t, out.String(), "PASS")
	_, tables, _ := strings.Cut(out.String(), "\n\n")
	tables = tables[:strings.LastIndex(tables, "\n\n")]
	require.Equal(t, 2*len(kinds)+3, strings.Count(tables, "\n")+1)
	for line := range strings.SplitSeq(tables, "\n") {
		require.LessOrEqual(t, len(line), 80, "it is broken on a narrow terminal: %s", line)
	}
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Greater(t, strings.Count(string(b), "\n"), 5)
}

// TestNotices: what a soak must not let pass.
func TestNotices(t *testing.T) {
	var got []string
	problem := func(format string, _ ...any) { got = append(got, format) }
	k := newTalk(1, 2, nil, problem)
	for _, n := range []uint32{0, 1, 1, 3} {
		m := &item{N: n, Data: make([]byte, 9)}
		fill(m.Data, 2, uint64(n))
		k.receiveMessage(0, m)
	}
	require.Len(t, got, 2, "one came again, one is missing")
	k.receiveMessage(1, &item{N: 7, Data: make([]byte, 9)})
	require.Len(t, got, 3, "damaged")
	k.tookBlock(1, []byte{1})
	require.Len(t, got, 4, "the first block is missing")
	other := newTalk(2, 1, nil, problem)
	other.sent = 1
	require.Equal(t, "bunches", other.missing(k))

	s := &soak{o: options{duration: time.Minute, clients: 1}}
	for i := range 60 {
		s.samples = append(s.samples, sample{at: time.Duration(i) * time.Second, clients: 1, resources: resources{heap: int64(i) << 20, goroutines: 10 + 10*i, files: 7}})
	}
	s.freezes = 1
	s.paths = []*path{{totals: totals{1, 1, 1, 1, 1, 1, 1}}}
	s.check(resources{heap: 1 << 30, goroutines: 1 << 20, files: 5})
	require.Len(t, s.wrong, 3, "%v", s.wrong)
}
