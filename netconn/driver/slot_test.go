package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

type text struct{ S string }

func (m *text) Serialize(s *message.Stream) { s.String(&m.S, 50) }

// TestNextInTheSlot: a message for a client that left must not reach the next one in its slot, and
// nothing of what the first was parsing is kept.
func TestNextInTheSlot(t *testing.T) {
	var reg message.Registry
	kind := reg.Add("text", func() message.Message { return new(text) })
	var toClient *message.Attached
	types := []channel.Type{{Name: chatName, ServerOpen: true, Accept: func(*channel.Channel) channel.Handler { return toClient }}}
	var q *message.Attached
	sc := Config{Link: PlainSalted{Slots: 1}, Channels: types, Joined: func(c *Conn) {
		q = message.Attach(message.New(message.Config{Kinds: &reg}))
		_, err := c.Open(chatName, q)
		require.NoError(t, err)
	}}
	now := time.Now()
	var drivers []*Driver
	tick := func() {
		now = now.Add(16 * time.Millisecond)
		for _, d := range drivers {
			d.TickDispatch(now)
			d.TickFlush(now)
		}
	}
	until := func(what string, f func() bool) {
		for range 2000 {
			if f() {
				return
			}
			tick()
		}
		t.Fatal("never: ", what)
	}
	var current *Conn
	joined := sc.Joined
	sc.Joined = func(c *Conn) { current = c; joined(c) }
	srv, err := Listen("127.0.0.1:0", sc)
	require.NoError(t, err)
	defer srv.Close()
	dial := func() *Driver {
		toClient = message.Attach(message.New(message.Config{Kinds: &reg}))
		current = nil
		cl, err := Dial(srv.LocalAddr().String(), Config{Link: PlainSalted{}, Channels: types})
		require.NoError(t, err)
		drivers = []*Driver{srv, cl}
		until("joined", func() bool { return current != nil && cl.Server() != nil && cl.Server().Joined() })
		return cl
	}

	first := dial()
	old, oldConn := q, current
	require.NoError(t, first.Close()) // it leaves before the message is written
	drivers = []*Driver{srv}
	require.NoError(t, old.Send(kind, &text{"for the first"}))
	until("gone", func() bool { old.Tick(srv.Time(now)); return oldConn.Closed() })

	second := dial()
	defer second.Close()
	require.NoError(t, q.Send(kind, &text{"for the second"}))
	var got []string
	until("received", func() bool {
		q.Tick(srv.Time(now))
		old.Tick(srv.Time(now))
		if m, _ := toClient.Receive(); m != nil {
			got = append(got, m.(*text).S)
		}
		return len(got) > 0 && q.Pending() == 0
	})
	require.Equal(t, []string{"for the second"}, got)
}

// TestRefusedHoldsNoSlot: a client that is told that the server is full, while its answer to a challenge is under way and finds a slot that has become free, gives that
// slot back.
func TestRefusedHoldsNoSlot(t *testing.T) {
	for name, link := range map[string]Link{"netcode": Netcode{Key: netcode.Key{1}}, "salted": PlainSalted{}} {
		accepted := 0
		w := newTown(t, 1, netsim.Settings{Lag: 150 * time.Millisecond}, Config{Link: link, MaxConns: 1, Accepted: func(*Conn) { accepted++ }})
		refused := func() (n uint64) {
			for reason, count := range w.server.Refusals {
				if reason == "server_full" {
					n = count
				}
			}
			return n
		}
		c := w.dial(Config{Link: link})
		w.until("a challenge is under way", func() bool { return w.server.Counters.DatagramsOut > 0 })
		w.set = netsim.Settings{}
		other := w.dial(Config{Link: link})
		w.until("another is told that there is no room", func() bool { return other.joined && refused() > 0 })
		require.NoError(t, other.Close())
		w.clients = w.clients[:1]
		w.until("refused", func() bool { return c.result != nil })
		require.ErrorIs(t, c.result.Err, ErrFull, name)
		for range 30 {
			w.step()
		}
		require.Equal(t, 2, accepted, "%s: its answer found the slot", name)
		require.Zero(t, w.server.Len(), name)
	}
}

// TestSlotsFreedByClosed: a connection that is ended by another's Closed, at whatever point of the tick, frees its slot too.
func TestSlotsFreedByClosed(t *testing.T) {
	t.Run("netcode", func(t *testing.T) {
		slotsFreedByClosed(t, Netcode{Key: netcode.Key{5}}, func(d *Driver) int { return d.server.(*netcodeServer).m.Clients() })
	})
	t.Run("salted", func(t *testing.T) {
		slotsFreedByClosed(t, PlainSalted{Slots: 3}, func(d *Driver) int { return d.server.(*saltedServer).m.Clients() })
	})
}

func slotsFreedByClosed(t *testing.T, link Link, inSlots func(*Driver) int) {
	var all []*Conn
	srv := Config{Link: link, Channels: chat(&echo{}), MaxConns: 3, Timeout: 5 * time.Second, Joined: func(c *Conn) { all = append(all, c) }}
	srv.Closed = func(c *Conn, _ netconn.CloseResult) {
		for _, other := range all {
			if other != c && !other.Closed() {
				other.Abort(other.Now(), "one has gone, so all go")
				return
			}
		}
	}
	server, err := Listen("127.0.0.1:0", srv)
	require.NoError(t, err)
	defer server.Close()
	now := time.Now()
	for range 3 {
		all = nil
		var own []*Driver
		for range 3 {
			d, err := Dial(server.LocalAddr().String(), Config{Link: link, Channels: chat(&sink{})})
			require.NoError(t, err)
			own = append(own, d)
		}
		tick := func() {
			now = now.Add(16 * time.Millisecond)
			server.TickDispatch(now)
			server.TickFlush(now)
		}
		for step := 0; len(all) < 3; step++ {
			require.Less(t, step, 1000, "slots aren't free: %d", len(all))
			for _, d := range own {
				d.TickDispatch(now)
				d.TickFlush(now)
			}
			tick()
		}
		for step := 0; server.Len() > 0; step++ { // the first client is silent, so it times out
			require.Less(t, step, 2000)
			for _, d := range own[1:] {
				d.TickDispatch(now)
				d.TickFlush(now)
			}
			tick()
		}
		for range 20 {
			tick()
		}
		require.Zero(t, inSlots(server))
		require.NoError(t, closeAll(own))
	}
}
