package lockstep

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestAStampCountsOnce: a player that echoes the same stamp again, later, doesn't make its path look longer.
func TestAStampCountsOnce(t *testing.T) {
	tb := startedTable(t, config(2))
	for range 20 {
		tb.turn(nil)
	}
	c := &tb.host.clients[0]
	echo := input{received: c.ack, executed: c.executed, stamp: c.stamps.last, life: c.life, first: c.received}
	require.NoError(t, tb.host.Receive(tb.now, 0, tb.craft(0, echo, nil)))
	path := tb.host.Path(0)
	require.NoError(t, tb.host.Receive(tb.now+5*time.Second, 0, tb.craft(0, echo, nil)))
	require.Equal(t, path, tb.host.Path(0))
}

// tally is a transport that counts.
type tally struct {
	Transport
	bytes *int
}

func (c tally) Send(now time.Duration, p []byte) error {
	*c.bytes += len(p)
	return c.Transport.Send(now, p)
}

// TestWhoHearsNothingGetsLittle: a player whose packets come while it acks nothing gets one packet at a time, five a second.
func TestWhoHearsNothingGetsLittle(t *testing.T) {
	cfg := config(2)
	cfg.Stall, cfg.DropAfter = Substitute, time.Minute
	w := newWorld(t, 1, cfg, netsim.Settings{Lag: 20 * ms})
	w.start()
	w.players[0].stuffed = true
	w.playTo(100, time.Minute)
	dark, err := netsim.NewLink(netsim.Settings{Loss: 100}, 1)
	require.NoError(t, err)
	bytes := 0
	require.NoError(t, w.host.Connect(1, tally{push{dark}, &bytes}))
	w.run(2 * time.Second)
	bytes = 0
	w.run(10 * time.Second)
	require.Greater(t, bytes, 5*10*100)
	require.Less(t, bytes, 5*10*w.cfg.MaxPacket+w.cfg.MaxPacket)
}

// TestMendAmidATurn: a player that is mended while it executes a turn finishes that turn first.
func TestMendAmidATurn(t *testing.T) {
	tb := startedTable(t, config(2))
	for range 20 {
		tb.turn(nil)
	}
	require.NoError(t, tb.host.SetSnapshot(tb.host.Turn()-5, []byte("state")))
	p := tb.peers[1]
	turn, ok := p.Next()
	require.True(t, ok)
	n := turn.N
	require.NoError(t, tb.host.Mend(tb.now, 1))
	for range 3 {
		tb.exchange()
	}
	require.Equal(t, n, p.Turn())
	require.Equal(t, Running, p.State())
	again, ok := p.Next()
	require.True(t, ok)
	require.Equal(t, turn, again)
	require.NoError(t, p.Done(1))
	require.Equal(t, n+1, p.Turn())
	for range 20 {
		tb.exchange()
	}
	from, data, ok := p.TakeSnapshot()
	require.True(t, ok)
	require.Equal(t, "state", string(data))
	require.Equal(t, from, p.Turn())
}

// TestWhoLeftIsNotWaitedForByTheJudge: hashes that the others gave are judged as soon as the one that is missing can't come any more.
func TestWhoLeftIsNotWaitedForByTheJudge(t *testing.T) {
	w := newWorld(t, 1, config(3), netsim.Settings{Lag: 20 * ms})
	w.start()
	w.players[1].corrupt = 60
	w.playTo(55, time.Minute)
	w.players[2].noHashes = true
	w.playTo(66, time.Minute)
	require.False(t, w.told("at 60"), "%v", w.events)
	require.NoError(t, w.host.Drop(w.now, 2))
	w.until("a word of turn 60", 20*time.Second, func() bool { return w.told("at 60") })
	require.Less(t, w.host.Turn(), int64(72))
	require.True(t, w.told("split 1 at 60"), "%v", w.events)
}

// TestUnusedCommandsAddUp: a player that said nothing for a long time may send eight turns' commands at once, and no more.
func TestUnusedCommandsAddUp(t *testing.T) {
	tb := startedTable(t, config(2))
	for range 500 {
		tb.turn(nil)
	}
	c := &tb.peers[0].cfg
	sent, cmd := 0, make([]byte, 60)
	for range 40 {
		for {
			err := tb.peers[0].Submit(cmd)
			if errors.Is(err, ErrInputFull) {
				break
			}
			require.NoError(t, err)
			sent += 1 + len(cmd)
		}
		tb.turn(nil)
	}
	require.Greater(t, sent, 7*c.MaxInput)
	require.LessOrEqual(t, sent, 8*c.MaxInput+40*c.InputRate)
	require.Zero(t, tb.host.Stats().RefusedOversize)
}

// TestHungMachineStaysOut: a player whose machine hangs, but whose connection doesn't, is dropped once, and is back when it has executed what it missed.
func TestHungMachineStaysOut(t *testing.T) {
	w := newWorld(t, 2, config(3), netsim.Settings{Lag: 20 * ms})
	w.start()
	w.playTo(60, time.Minute)
	w.players[1].frozen = true
	w.run(2 * time.Minute)
	require.EqualValues(t, 1, w.host.Stats().Drops)
	require.EqualValues(t, 3, w.host.Stats().Joins)
	w.players[1].frozen = false
	w.until("rejoin", 10*time.Second, func() bool { return w.host.Active() == 7 })
	w.agree(0, 1, 2)

	// Nor is it in a game that stands still, where it doesn't fall behind.
	w = newWorld(t, 2, config(2), netsim.Settings{Lag: 20 * ms})
	w.start()
	w.playTo(60, time.Minute)
	w.players[1].frozen = true
	w.until("drop", time.Minute, func() bool { return w.host.Active() == 1 })
	require.NoError(t, w.host.Drop(w.now, 0))
	w.run(20 * time.Second)
	require.Zero(t, w.host.Active())
	w.players[1].frozen = false
	w.until("rejoin", 10*time.Second, func() bool { return w.host.Active() == 2 })
}

// TestWelcomeWithAHole: a host whose turns begin elsewhere than where the peer's end, without a snapshot, is refused.
func TestWelcomeWithAHole(t *testing.T) {
	for start := range int64(8) {
		p, err := NewPeer(PeerConfig{Config: config(2).Config, Session: 5, Have: 5, Generation: 1}, &box{})
		require.NoError(t, err)
		err = p.Receive(0, welcome{delay: 2, life: 1, start: start}.append(envelope{typeWelcome, 0, 5}.append(nil)))
		if start == 5 {
			require.NoError(t, err)
			require.Equal(t, Running, p.State())
			continue
		}
		require.ErrorIs(t, err, ErrMalformed)
		require.Equal(t, Connecting, p.State())
	}
}
