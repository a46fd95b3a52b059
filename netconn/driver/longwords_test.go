package driver

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestLongWords: what a peer says as it leaves is a bounded part of a line of the log, whatever it says; the game gets all of it.
func TestLongWords(t *testing.T) {
	for name, link := range links() {
		for _, words := range []string{strings.Repeat("x", 4000), strings.Repeat("\x01", 1300), strings.Repeat("日", 1300), strings.Repeat("\n", 4000)} {
			var log bytes.Buffer
			var ends []netconn.CloseResult
			w := newTown(t, 1, netsim.Settings{}, Config{Link: link, Logger: slog.New(slog.NewTextHandler(&log, nil)),
				Closed: func(_ *Conn, r netconn.CloseResult) { ends = append(ends, r) }})
			c := w.dial(Config{Link: link})
			w.until("joined", func() bool { return c.joined })
			c.Server().CloseWithReason(words)
			w.until("ended", func() bool { return len(ends) == 1 })
			require.Equal(t, words, ends[0].Reason, name)
			w.now = w.now.Add(2 * time.Second)
			w.step()
			for line := range strings.Lines(log.String()) {
				require.Less(t, len(line), 2000, name)
			}
			require.Contains(t, log.String(), "connection closed")
		}
	}
}
