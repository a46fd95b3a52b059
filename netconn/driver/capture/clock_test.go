package capture_test

import (
	"io"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/driver/capture"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// watcher is a program that notes the times of its ticks.
type watcher struct{ seen []time.Time }

func (w *watcher) Tick(now time.Time) error { w.seen = append(w.seen, now); return nil }
func (*watcher) Call([]byte) error          { return nil }
func (*watcher) State(io.Writer)            {}

// TestTimesOfTicks: a second between two ticks is one to the program that is recorded, whatever its clock counts from and however it is set; and
// times that a file can't say are an error.
func TestTimesOfTicks(t *testing.T) {
	socket, _ := udp.Pair(netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:1"))
	w := &watcher{}
	rec, err := capture.Record(io.Discard, capture.Outside{Socket: socket, Clock: func() time.Time { return time.Unix(1_700_000_000, 0) }}, capture.Config{},
		func(capture.Outside) (capture.Program, error) { return w, nil })
	require.NoError(t, err)
	for _, from := range []time.Time{time.Unix(0, 0), time.Unix(1_700_000_000, 0), time.Unix(-1_000_000_000, 0), time.Unix(5_000_000_000, 0), time.Unix(9_223_372_030, 0), time.Unix(9_223_372_037, 0), time.Unix(-7_300_000_000, 0), {}} {
		w.seen = nil
		for i := range 3 {
			err = rec.Tick(from.Add(time.Duration(i) * time.Second))
			if from.IsZero() || from.Year() == 2262 && from.Unix() > 9_223_372_036 {
				require.ErrorIs(t, err, capture.ErrTime)
				continue
			}
			require.NoError(t, err)
			require.True(t, from.Add(time.Duration(i)*time.Second).Equal(w.seen[i]), "%v", w.seen)
		}
	}
	require.Empty(t, w.seen)
	require.NoError(t, rec.Close())
}
