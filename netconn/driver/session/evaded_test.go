package session_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

type line struct{}

func (*line) Serialize(*message.Stream) {}

// TestKickedWhoeverFails: a player that is kicked is gone, whatever its client has the server's handlers fail with before it acks that: here a second channel of a queue that has one.
func TestKickedWhoeverFails(t *testing.T) {
	var lines message.Registry
	lines.Add("line", func() message.Message { return new(line) })
	chat := bunch.Name{Text: "chat"}
	queues := map[*driver.Conn]*message.Attached{}
	var ann *driver.Conn
	var ended netconn.CloseResult
	r := newRig(t, 1, netsim.Settings{Lag: 50 * time.Millisecond}, func(r *rig) {
		r.joined = func(c *driver.Conn) { ann = c }
		r.config.Gone = func(p *player, res netconn.CloseResult) { r.tell("gone", p); ended = res }
		r.edit = func(c *driver.Config) {
			c.Channels = []channel.Type{{Name: chat, ClientOpen: true, Accept: func(ch *channel.Channel) channel.Handler {
				c := driver.ConnOf(ch)
				if queues[c] == nil {
					queues[c] = message.Attach(message.New(message.Config{Kinds: &lines}))
				}
				return queues[c]
			}}}
		}
	})
	open := func() {
		ch, err := ann.Open(chat, channel.Nop{})
		require.NoError(t, err)
		_, err = ch.SendBunch(&bunch.Out{Reliable: true})
		require.NoError(t, err)
	}
	r.world.RunUntil(2 * time.Second)
	open()
	r.world.RunUntil(3 * time.Second)
	open()
	for p, c := range r.players.All {
		if p.name == "Ann" {
			c.CloseWithError(driver.ErrKicked)
		}
	}
	r.world.RunUntil(10 * time.Second)
	require.Nil(t, r.world.Failure())
	require.Equal(t, []string{"new", "gone"}, r.of("Ann"))
	require.Equal(t, netconn.ClosedByUs, ended.Code)
	require.ErrorIs(t, ended.Err, driver.ErrKicked)
}
