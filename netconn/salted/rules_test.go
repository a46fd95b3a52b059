package salted

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCounts: what both ends count of a connection that is made, answered again and times out.
func TestCounts(t *testing.T) {
	w, c, sent := capture(t)
	s := w.server
	require.EqualValues(t, 1, s.Counters.Payloads)
	require.Equal(t, c.Counters.Received, s.Counters.Sent)
	again := bytes.Clone(response(c.prefix, c.salt))
	require.Contains(t, sent, again)
	before := s.Counters
	w.now += time.Minute // its challenge is of a secret that is gone
	s.slots[0].heard = w.now
	s.receive(w.now, c.addr, again)
	require.Equal(t, before.Sent+1, s.Counters.Sent, "the keep-alive was lost")
	require.Equal(t, before.BadSalt+before.Unexpected, s.Counters.BadSalt+s.Counters.Unexpected)
	wrong := bytes.Clone(sent[len(sent)-1])
	putFirst(wrong, c.prefix+1)
	s.receive(w.now, c.addr, s.frame.close(wrong, typePayload))
	require.EqualValues(t, 1, s.Counters.BadPrefix)
	c.Tick(w.now)
	require.Equal(t, ConnectionTimedOut, c.State())
	require.EqualValues(t, 1, c.Counters.TimedOut)
}

// TestDeadlines: a server's is the next of its clients', and who isn't connected has none.
func TestDeadlines(t *testing.T) {
	w, c, _ := capture(t)
	at, ok := w.server.NextDeadline()
	require.True(t, ok)
	require.Equal(t, w.server.slots[0].sent+w.server.cfg.Interval, at)
	c.Disconnect(w.now)
	_, ok = c.NextDeadline()
	require.False(t, ok)
	states := len(c.states)
	c.Disconnect(w.now)
	require.Len(t, c.states, states, "nothing has changed")
	c.Receive(w.now, serverAddr, w.server.frame.close(make([]byte, serverKeepAliveSize), typeKeepAlive))
	require.EqualValues(t, 1, c.Counters.NoSession)
}

// TestKeepAliveOfAnotherSize: it says nothing.
func TestKeepAliveOfAnotherSize(t *testing.T) {
	w := newWorld(t, 1, ServerConfig{})
	c := w.client(1)
	require.NoError(t, c.Connect(w.now, serverAddr))
	w.run(50 * time.Millisecond)
	require.Equal(t, SendingResponse, c.State())
	for _, size := range []int{serverKeepAliveSize - 2, serverKeepAliveSize + 1} {
		p := make([]byte, size, size+4)
		putFirst(p, c.prefix)
		if size > serverKeepAliveSize {
			p[15] = 9 // of so many slots
		}
		before := c.Counters.BadSize
		c.Receive(w.now, serverAddr, w.server.frame.close(p, typeKeepAlive))
		require.Equal(t, before+1, c.Counters.BadSize)
		require.Equal(t, SendingResponse, c.State())
	}
}
