package stream

import (
	"io"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestMemoryComesBack: a stream that has something to send while the reliable bunches of other channels fill half of MaxMemory
// sends it once there is room again.
func TestMemoryComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := bunch.Name{Index: 311}
		l := Listen(name, Config{})
		slow := netsim.Settings{LagMin: 100 * time.Millisecond, LagMax: 100 * time.Millisecond}
		base := driver.Config{NetSpeed: 40_000_000, TickRate: 200, MaxMemory: 256 << 10}
		sc, cc := base, base
		busy := channel.Type{Name: other, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return channel.Nop{} }}
		sc.Channels, cc.Channels = []channel.Type{l.Type(), busy}, []channel.Type{Type(name), busy}
		server, client, _ := linked(t, sc, cc, slow, slow)
		_, stop := running(t, server, client)

		c, err := Dial(t.Context(), client, name, Config{})
		require.NoError(t, err)
		s, err := l.Accept()
		require.NoError(t, err)
		echoed := func(s net.Conn, text string) {
			got := make([]byte, len(text))
			require.NoError(t, s.SetReadDeadline(time.Now().Add(time.Minute)))
			_, err := io.ReadFull(s, got)
			require.NoError(t, err)
			require.Equal(t, text, string(got))
		}
		_, err = c.Write([]byte("before"))
		require.NoError(t, err)
		echoed(s, "before")
		time.Sleep(time.Second)

		full := make(chan error)
		client.Do(func() {
			ch, err := client.Server().Open(other, nil)
			for err == nil {
				_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true})
			}
			_, werr := c.Write([]byte("while it is full"))
			if werr != nil {
				err = werr
			}
			full <- err
		})
		require.ErrorIs(t, <-full, channel.ErrReliableFull)
		echoed(s, "while it is full")
		stop()
		require.NoError(t, l.Close())
	})
}

// TestStreamsLeaveMemoryToTheGame: streams that have much to send while nothing is acked don't fill the memory for what isn't acked: the game's own
// reliable bunches have room.
func TestStreamsLeaveMemoryToTheGame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := bunch.Name{Index: 311}
		l := Listen(name, Config{})
		base := driver.Config{TickRate: 60, MaxMemory: 1 << 20}
		sc, cc := base, base
		busy := channel.Type{Name: other, ServerOpen: true, Accept: func(*channel.Channel) channel.Handler { return channel.Nop{} }}
		var conn *driver.Conn
		sc.Channels, sc.Joined = []channel.Type{l.Type(), busy}, func(c *driver.Conn) { conn = c }
		cc.Channels = []channel.Type{Type(name), busy}
		server, client, _ := linked(t, sc, cc)
		_, stop := running(t, server, client)
		var ends []net.Conn
		for range 8 {
			c, err := Dial(t.Context(), client, name, Config{})
			require.NoError(t, err)
			s, err := l.Accept()
			require.NoError(t, err)
			go func() {
				for err == nil {
					_, err = s.Write(make([]byte, 10_000))
				}
			}()
			go func() { _, _ = io.Copy(io.Discard, c) }()
			ends = append(ends, c, s)
		}
		time.Sleep(3 * time.Second)
		var ch *channel.Channel
		done := make(chan error)
		server.Do(func() {
			var err error
			ch, err = conn.Open(other, nil)
			if err == nil {
				_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 10), Reliable: true})
			}
			done <- err
		})
		require.NoError(t, <-done)
		time.Sleep(time.Second)
		client.Do(func() { time.Sleep(10 * time.Second) }) // it acks nothing
		for i := range 9 * 20 {
			time.Sleep(50 * time.Millisecond)
			server.Do(func() {
				_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 100), Reliable: true})
				done <- err
			})
			require.NoError(t, <-done, "the game's bunch after %v", time.Duration(i)*50*time.Millisecond)
		}
		for _, e := range ends {
			require.NoError(t, e.Close())
		}
		stop()
		require.NoError(t, l.Close())
	})
}

// TestListenerKeepsNothing: a listener whose streams are closed keeps no memory of theirs, nor of a driver that is closed.
func TestListenerKeepsNothing(t *testing.T) {
	l := Listen(name, Config{})
	var kept weak.Pointer[driver.Driver]
	synctest.Test(t, func(t *testing.T) {
		server, client, _ := linked(t, driver.Config{Channels: []channel.Type{l.Type()}}, driver.Config{Channels: []channel.Type{Type(name)}})
		kept = weak.Make(server)
		ctx, stop := running(t, server, client)
		for range 3 {
			c, err := Dial(ctx, client, name, Config{})
			require.NoError(t, err)
			defer c.Close()
		}
		time.Sleep(time.Second) // all three wait
		for range 3 {
			s, err := l.Accept()
			require.NoError(t, err)
			require.NoError(t, s.Close())
		}
		stop()
	})
	runtime.GC()
	require.Nil(t, kept.Value())
	require.NoError(t, l.Close())
}
