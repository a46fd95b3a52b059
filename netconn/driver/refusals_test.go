package driver

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestEveryReasonIsListed: the table in the doc of Refusals has every reason of both ends of each link, and each reason is
// one thing.
func TestEveryReasonIsListed(t *testing.T) {
	src, err := os.ReadFile("refusals.go")
	require.NoError(t, err)
	doc, _, _ := strings.Cut(string(src), "func (d *Driver) Refusals")
	listed := map[string]bool{}
	for line := range strings.Lines(doc) {
		if rest, ok := strings.CutPrefix(line, "//\t"); ok && !strings.HasPrefix(rest, " ") {
			for name := range strings.SplitSeq(strings.Fields(strings.ReplaceAll(rest, ", ", ","))[0], ",") {
				require.False(t, listed[name], name)
				listed[name] = true
			}
		}
	}
	told := map[string]bool{}
	for name, link := range links() {
		m := newMemory(t, Config{Link: link}, Config{Link: link})
		for end, d := range []*Driver{m.server, m.client} {
			here := map[string]bool{}
			for reason := range d.Refusals {
				require.False(t, here[reason], "%s, %d: %s twice", name, end, reason)
				here[reason], told[reason] = true, true
			}
		}
		for reason := range m.server.Refusals { // stops when it is told to
			require.Equal(t, "corrupt", reason)
			break
		}
	}
	require.Equal(t, listed, told)
}

// TestALeaveIsNoRefusal: a client says ten times that it leaves, and nothing of that is a warning.
func TestALeaveIsNoRefusal(t *testing.T) {
	for name, link := range links() {
		var log bytes.Buffer
		m := newMemory(t, Config{Link: link, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))}, Config{Link: link})
		m.until("joined", func() bool { return m.sc != nil && m.cc != nil })
		log.Reset() // of links in the clear
		m.cc.CloseWithReason("bye")
		m.until("closed", func() bool { return m.sres != nil && m.cres != nil })
		for range 200 {
			m.step()
		}
		require.Empty(t, log.String(), name)
		require.Less(t, m.now.Sub(m.server.epoch), time.Minute)
	}
}
