package replay

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shown is what a world has, a line each actor.
func shown(r *Replay) string {
	var lines []string
	for a := range r.world.All {
		f := a.(*fuzzed)
		lines = append(lines, fmt.Sprintf("%v in %v: %v %v %v %v %v %v", f.GUID(), f.Parent() != nil, f.Pos, f.Name, f.List, f.Bytes, f.V.Get(), f.TornOff()))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// playThrough plays a file in steps, then seeks, and has show told what there is at each of these times, as far as there is no error.
func playThrough(t *testing.T, file []byte, show func(at time.Duration, seek bool, what string)) (errs int, cut bool) {
	r, err := Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return 1, false
	}
	if err := r.Play(fuzzWorld(t, false)); err != nil {
		return 1, false
	}
	if _, ok := r.Next(); !ok && r.Truncated() {
		require.Zero(t, r.Duration())
		require.NoError(t, r.Step(0))
		require.Zero(t, r.world.Len())
		return 0, r.Truncated()
	}
	d := r.Duration()
	for at := time.Duration(0); at <= d; at += 50 * time.Millisecond {
		if r.Step(at) != nil {
			errs++
			break
		}
		require.Equal(t, at, r.Position())
		show(at, false, shown(r))
	}
	for _, at := range []time.Duration{0, 300, 100, 850, 450, 50, 950} {
		if at *= time.Millisecond; at > d {
			continue
		}
		if r.Seek(at) != nil {
			errs++
			continue
		}
		show(at, true, shown(r))
	}
	return errs, r.Truncated()
}

// TestDamagedRecordings: of a recording that is cut off anywhere, or of which a bit is another one, what is shown is what the whole one shows at that time, up to where
// an error is told.
func TestDamagedRecordings(t *testing.T) {
	file := fuzzRecording(t)
	type moment struct {
		at   time.Duration
		seek bool
	}
	want := map[moment]string{}
	errs, cut := playThrough(t, file, func(at time.Duration, seek bool, what string) { want[moment{at, seek}] = what })
	require.Zero(t, errs)
	require.False(t, cut)
	require.Greater(t, len(want), 20)
	shows := 0
	check := func(name string, file []byte) (int, bool) {
		return playThrough(t, file, func(at time.Duration, seek bool, what string) {
			shows++
			require.Equal(t, want[moment{at, seek}], what, "%s: at %v, seek %v", name, at, seek)
		})
	}
	n := 200
	if os.Getenv("CI") != "" {
		n = len(file)
	}
	for i := range n {
		at := i * len(file) / n
		_, cut := check(fmt.Sprint("cut at ", at), file[:at:at])
		require.True(t, cut || at < len(file), "cut at %d", at)
	}
	rng := rand.New(rand.NewPCG(7, 7))
	told := 0
	for i := range n {
		at, bit := i*len(file)/n, rng.IntN(8)
		b := bytes.Clone(file)
		b[at] ^= 1 << bit
		errs, cut := check(fmt.Sprintf("bit %d of byte %d", bit, at), b)
		if errs > 0 || cut {
			told++
		} else {
			t.Logf("byte %d of %d, bit %d: nothing is told", at, len(file), bit)
		}
	}
	t.Logf("%d bytes; %d damaged, of which %d are told; %d times shown", len(file), n, told, shows)
	require.Greater(t, shows, n)
}
