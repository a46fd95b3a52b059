package netconn

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// answerer answers the first bunch, and has something to keep.
type answerer struct {
	channel.Nop
	kept []byte
}

func (a *answerer) ReceivedBunch(ch *channel.Channel, _ *bunch.In) {
	if a.kept == nil {
		a.kept = make([]byte, 1<<20)
		_, _ = ch.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
	}
}

// TestClosedHandlersAreLetGo: what a handler keeps is let go once its channel is closed, though the peer never acks what was sent on it: it doesn't count any more.
func TestClosedHandlersAreLetGo(t *testing.T) {
	var handlers []weak.Pointer[answerer]
	p := newPair(t, 1, network{delay: 5 * time.Millisecond}, func(_ int, c *Config) {
		c.Channels = testTypes(func(ch *channel.Channel) channel.Handler {
			if ch.Index() == 0 {
				return channel.Nop{}
			}
			a := &answerer{}
			handlers = append(handlers, weak.Make(a))
			return a
		})
	})
	ctl, err := p.ends[0].conn.Open(bunch.Control, channel.Nop{})
	require.NoError(t, err)
	_, err = ctl.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
	require.NoError(t, err)
	for range 20 {
		p.step()
	}
	for range 10 {
		ch, err := p.ends[0].conn.Open(testName, channel.Nop{})
		require.NoError(t, err)
		_, err = ch.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
		require.NoError(t, err)
		require.NoError(t, ch.Close(bunch.Destroyed))
	}
	for range 20 {
		p.step()
		p.ends[1].flying = nil // the client hears nothing, and acks nothing
	}
	require.EqualValues(t, 10, p.ends[1].conn.Table().Counters.ChannelsClosed)
	require.Greater(t, p.ends[1].conn.notify.Outstanding(), 0)
	runtime.GC()
	held := 0
	for _, h := range handlers {
		if h.Value() != nil {
			held++
		}
	}
	require.Len(t, handlers, 10)
	require.LessOrEqual(t, held, 1) // one may be on the stack
	runtime.KeepAlive(p)
}
