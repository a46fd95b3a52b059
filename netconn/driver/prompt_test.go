package driver

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// TestPrompt echoes back and forth at two ends that tick four times a second: each answer goes out at once, and
// so does what Do writes.
func TestPrompt(t *testing.T) {
	const trips = 20
	e := &echo{}
	srv, err := Listen("127.0.0.1:0", Config{Channels: chat(e), TickRate: 4, Prompt: true})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx, nil) }()

	got := &sink{}
	joined := make(chan *Conn, 1)
	cl, err := Dial(srv.LocalAddr().String(), Config{Channels: chat(got), TickRate: 4, Prompt: true, Joined: func(c *Conn) { joined <- c }})
	require.NoError(t, err)
	ticks := 0
	cctx, stop := context.WithCancel(ctx)
	go func() {
		defer stop()
		var ch *channel.Channel
		answer := make(chan int)
		do := func(f func() error) {
			cl.Do(func() {
				if err := f(); err != nil {
					t.Error(err)
				}
				answer <- len(got.got)
			})
			<-answer
		}
		c := <-joined
		do(func() (err error) { ch, err = c.Open(chatName, got); return err })
		for n := 0; n < trips && ctx.Err() == nil; {
			do(func() error {
				_, err := ch.SendBunch(&bunch.Out{Data: []byte("x"), Reliable: true, NoMerge: true})
				return err
			})
			for n++; ctx.Err() == nil; {
				have := 0
				do(func() error { have = len(got.got); return nil })
				if have >= n {
					break
				}
			}
		}
	}()
	require.NoError(t, cl.Run(cctx, func(time.Time) { ticks++ }))
	require.Len(t, got.got, trips)
	require.Less(t, ticks, trips/2, "not one a round trip")
	cancel()
	require.NoError(t, <-done)
}
