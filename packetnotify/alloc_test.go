package packetnotify

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

type counter struct{ acked, lost int }

func (c *counter) PacketAcked(int64) { c.acked++ }
func (c *counter) PacketLost(int64)  { c.lost++ }

// A link of two ends that loses every seventh packet allocates nothing, once the
// records have grown to what is in flight.
func TestAllocs(t *testing.T) {
	var ends [2]Notify
	ends[0].Init(Config{}, 1, 1)
	ends[1].Init(Config{}, 1, 1)
	buf := make([]byte, 64)
	var w bitio.Writer
	var r bitio.Reader
	var heard counter
	i := 0
	exchange := func() {
		i++
		from, to := &ends[i&1], &ends[1-i&1]
		w.Reset(buf)
		from.WriteHeader(&w)
		from.RefreshHeader(&w, 0)
		from.Commit()
		if i%7 == 0 {
			return
		}
		r.Reset(buf, w.Len())
		var h Header
		err := h.Read(&r)
		if err != nil {
			t.Fatal(err)
		}
		if _, process := to.Update(&h, &heard); process {
			to.AckSeq(true)
		}
	}
	for range 1000 {
		exchange()
	}
	require.Zero(t, testing.AllocsPerRun(2000, exchange))
	require.Positive(t, heard.acked)
	require.Positive(t, heard.lost)
}
