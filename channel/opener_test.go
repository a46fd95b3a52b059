package channel_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// opener is a handler that says hello on its channel, or refuses it.
type opener struct {
	log
	opened []*channel.Channel
	err    error
}

func (o *opener) Opened(ch *channel.Channel) error {
	o.opened = append(o.opened, ch)
	if o.err == nil {
		_, o.err = ch.SendBunch(&bunch.Out{Data: []byte("hello"), Reliable: true})
	}
	return o.err
}

// TestOpener: a handler gets its channel before the first bunch, at both ends; its error is Open's, or ends the connection, and leaves no channel behind.
func TestOpener(t *testing.T) {
	refuses := errors.New("no")
	for _, err := range []error{nil, refuses} {
		o := &opener{err: err}
		w, _ := newWire(t, false, nil)
		h := openControl(t, w)
		ch, got := w.table.Open(game, o)
		require.ErrorIs(t, got, err)
		require.Len(t, o.opened, 1)
		if err != nil {
			require.Nil(t, ch)
			require.Len(t, o.closed, 1)
			require.Nil(t, w.table.Channel(o.opened[0].Index()))
			require.Len(t, w.sent, h, "the peer doesn't know the channel")
			again, err := w.table.Open(game, nil)
			require.NoError(t, err)
			require.Equal(t, o.opened[0].Index(), again.Index())
			continue
		}
		require.Same(t, ch, o.opened[0])
		require.True(t, w.sent[h].h.Open)
		require.Equal(t, "hello", string(w.sent[h].data))
	}
	for _, err := range []error{nil, refuses} {
		o := &opener{err: err}
		w, _ := newWire(t, true, func(cfg *channel.Config) {
			cfg.Types[1].Accept = func(*channel.Channel) channel.Handler { return o }
		})
		openControl(t, w)
		h := reliable(1, 1, game)
		h.Open = true
		_, got := w.receive(2, h, "first")
		require.ErrorIs(t, got, err)
		require.ErrorIs(t, w.err, err)
		require.Equal(t, err != nil, w.local, "it isn't the peer's fault")
		require.Len(t, o.opened, 1)
		if err == nil {
			require.Equal(t, []string{"first"}, o.bunches)
			require.Equal(t, "hello", string(w.sent[len(w.sent)-1].data))
		} else {
			require.Empty(t, o.bunches)
		}
	}
}

// openControl opens the control channel, and returns how many bunches were sent.
func openControl(t *testing.T, w *wire) int {
	if w.server {
		h := reliable(0, 1, bunch.Control)
		h.Open = true
		_, err := w.receive(1, h, "open")
		require.NoError(t, err)
		return len(w.sent)
	}
	ch, err := w.table.Open(bunch.Control, nil)
	require.NoError(t, err)
	_, err = ch.SendBunch(&bunch.Out{Data: []byte("login"), Reliable: true})
	require.NoError(t, err)
	return len(w.sent)
}
