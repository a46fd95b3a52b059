package stream

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestBothDrainAtOnce: of two ends that both close, the one whose data is sent, and isn't acked for long, gives the other credit meanwhile: what goes each way takes as long as by itself,
// not one after the other.
func TestBothDrainAtOnce(t *testing.T) {
	const each, streams, down, rate = 200_000, 8, 1_600_000, 1e5
	synctest.Test(t, func(t *testing.T) {
		l, m := Listen(name, Config{Buffer: 2 << 20}), Listen(name, Config{})
		ended := make(chan netconn.CloseResult, 2)
		sc := driver.Config{LingerTimeout: 25 * time.Second, Link: driver.PlainSalted{}, Closed: func(_ *driver.Conn, r netconn.CloseResult) { ended <- r }}
		cc := sc
		sc.Channels, cc.Channels = []channel.Type{l.Type()}, []channel.Type{m.Type()}
		path := netsim.Settings{Lag: 30 * time.Millisecond, Bandwidth: 8 * rate, QueueDelay: 200 * time.Millisecond}
		server, client, _ := linked(t, sc, cc, path, path)
		ctx, stop := running(t, server, client)
		defer func() {
			stop()
			_, _ = l.Close(), m.Close()
		}()
		pair := func(cfg Config) (c, s *Conn) {
			c, err := Dial(ctx, client, name, cfg)
			require.NoError(t, err)
			a, err := l.Accept()
			require.NoError(t, err)
			return c, a.(*Conn)
		}
		var up []*Conn
		got := make(chan int64, streams+1)
		read := func(c *Conn) {
			n, _ := io.Copy(io.Discard, c)
			got <- n
		}
		for range streams {
			c, s := pair(Config{Buffer: each})
			up = append(up, c)
			go read(s)
		}
		c, s := pair(Config{})
		go read(c)
		time.Sleep(time.Second)
		for _, c := range up {
			_, err := c.Write(make([]byte, each))
			require.NoError(t, err)
			require.NoError(t, c.CloseWrite())
		}
		_, err := s.Write(make([]byte, down))
		require.NoError(t, err)
		require.NoError(t, s.CloseWrite())
		begin := time.Now()
		client.Do(func() { client.Shutdown("over") })
		server.Do(func() { server.Shutdown("down") })
		for range 2 {
			<-ended
		}
		require.Less(t, time.Since(begin), 22*time.Second) // 16 would be ideal
		all := int64(0)
		for range streams + 1 {
			all += <-got
		}
		require.EqualValues(t, streams*each+down, all)
	})
}
