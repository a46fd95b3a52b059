package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/simtest/paths"
)

var game = style{tick: time.Second / 60, ack: time.Second / 60}

func TestVerdict(t *testing.T) {
	runs := runAll(1, game, "", "")
	require.Len(t, runs, len(links)*len(kinds))
	var out bytes.Buffer
	table(&out, runs)
	good, err := verdict(&out, runs)
	require.True(t, good && err == nil, out.String())
	runs[2].utilisation = 0.5
	good, err = verdict(&out, runs)
	require.NoError(t, err)
	require.False(t, good)
	for i := range runs {
		draw(&out, &runs[i], true)
	}
	require.Equal(t, len(runs), strings.Count(out.String(), "queue  "))

	name := filepath.Join(t.TempDir(), "curves.csv")
	require.NoError(t, writeCSV(name, runs))
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Contains(t, string(text), "two,adaptive,74.0,")
}

// The table of paths is printed, with a line for each and what is missed.
func TestEveryPath(t *testing.T) {
	var out bytes.Buffer
	table := paths.Table(false)[:2]
	require.True(t, everyPath(&out, 1, table), out.String())
	table[0].Length = 6 * time.Second
	table[0].Events = []time.Duration{6 * time.Second}
	require.False(t, everyPath(&out, 1, table[:1]))
	require.Contains(t, out.String(), "recovery above 5s")
}

// The same seed gives the same run.
func TestDeterministic(t *testing.T) {
	a, b := runAll(7, game, "two", theDefault), runAll(7, game, "two", theDefault)
	require.Equal(t, a[0].rates, b[0].rates)
	require.Equal(t, a[0].queue, b[0].queue)
}
