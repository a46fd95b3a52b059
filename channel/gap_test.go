package channel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// TestGapOfClosedChannel: what a channel had unacked when the peer closed it must not hold up the next channel
// of its index.
func TestGapOfClosedChannel(t *testing.T) {
	server, _ := newWire(t, true, nil)
	client, _ := newWire(t, false, nil)
	deliver := func(to *wire, b sentBunch) {
		t.Helper()
		in := bunch.In{Header: b.h, PacketID: b.id}
		in.Data.Reset(b.data, b.h.Bits)
		_, err := to.m.ReceivedBunch(&in)
		require.NoError(t, err)
	}
	ctl, err := client.table.Open(bunch.Control, &log{})
	require.NoError(t, err)
	_, err = ctl.SendBunch(&bunch.Out{Data: []byte("c"), Reliable: true})
	require.NoError(t, err)
	deliver(server, client.sent[0])

	got := &log{}
	first, err := server.table.Open(game, got)
	require.NoError(t, err)
	open := func(ch *channel.Channel, text string) sentBunch {
		_, err := ch.SendBunch(&bunch.Out{Data: []byte(text), Reliable: true})
		require.NoError(t, err)
		return server.sent[len(server.sent)-1]
	}
	deliver(client, open(first, "first"))
	mirror := client.table.Channel(first.Index())
	for _, text := range []string{"arrives, its ack is lost", "lost", "lost, too"} {
		_, err = mirror.SendBunch(&bunch.Out{Data: []byte(text), Reliable: true, NoMerge: true})
		require.NoError(t, err)
	}
	deliver(server, client.sent[1])
	require.NoError(t, first.Close(bunch.Destroyed))
	closing := server.sent[len(server.sent)-1]
	deliver(client, closing)
	for _, b := range server.sent {
		server.acked(b.ch, b.seq, b.id)
	}
	require.Nil(t, client.table.Channel(first.Index()))
	require.Nil(t, server.table.Channel(first.Index()))

	again := &log{}
	second, err := server.table.Open(game, again)
	require.NoError(t, err)
	require.Equal(t, first.Index(), second.Index())
	before := len(client.sent)
	deliver(client, open(second, "second"))
	_, err = client.table.Channel(second.Index()).SendBunch(&bunch.Out{Data: []byte("hello"), Reliable: true})
	require.NoError(t, err)
	require.EqualValues(t, 3, client.table.Counters.Filled)
	for _, b := range client.sent[before:] {
		deliver(server, b)
	}
	require.Equal(t, []string{"hello"}, again.bunches)
}

// TestGapBeforeOpen: empty reliable bunches before the open of their channel only take up their sequences.
func TestGapBeforeOpen(t *testing.T) {
	w, l := opened(t, nil)
	_, err := w.receive(2, reliable(9, 1, game), "")
	require.NoError(t, err)
	h := reliable(9, 2, game)
	h.Open = true
	_, err = w.receive(3, h, "open")
	require.NoError(t, err)
	require.Equal(t, []string{"open"}, l.bunches)
}

// opens is a handler that notes whether its channel's open was acked when it heard of a packet.
type opens struct {
	log
	acked []bool
}

func (o *opens) ReceivedAck(ch *channel.Channel, _ int64) { o.acked = append(o.acked, ch.OpenAcked()) }

// TestOpenBehindLaterBunch: an open that waited for the window may go in the same packet as what was sent after
// it, and behind it. The handler hears of that packet when the open counts.
func TestOpenBehindLaterBunch(t *testing.T) {
	w, _ := opened(t, nil)
	h := &opens{}
	ch, err := w.table.Open(game, h)
	require.NoError(t, err)
	w.full = true
	_, err = ch.SendBunch(&bunch.Out{Data: []byte("open"), Reliable: true, NoMerge: true})
	require.NoError(t, err)
	w.full = false
	_, err = ch.SendBunch(&bunch.Out{Data: []byte("later"), Reliable: true, NoMerge: true})
	require.NoError(t, err)
	w.m.Pump()
	require.Len(t, w.sent, 2)
	const packet = 9
	for _, b := range w.sent {
		w.m.Acked(ch, b.seq, packet)
	}
	for range w.sent {
		w.m.Settled(ch, packet, true)
	}
	require.Equal(t, []bool{true}, h.acked)
}

// TestGapsFillAtAPace: who opens and closes a channel with a long gap in each packet makes no more work than one gap at once, and one sequence in 30 µs, however often ticks come
// and wherever the clock begins.
func TestGapsFillAtAPace(t *testing.T) {
	for _, start := range []time.Duration{0, -time.Hour} {
		w, _ := opened(t, nil)
		w.slow = true
		ch := w.table.Channel(1)
		for ch.Room() > 0 {
			_, err := ch.SendBunch(&bunch.Out{Data: []byte("unacked"), Reliable: true, NoMerge: true})
			require.NoError(t, err)
		}
		gap := ch.NumOutRec()
		seq, refused := 1, 0
		say := func(open bool) {
			h := reliable(1, seq+1, game)
			h.Open, h.Close = open, true
			nak, err := w.receive(int64(seq+refused+1), h, "")
			require.NoError(t, err)
			if nak {
				refused++
			} else {
				seq++
			}
		}
		say(false)
		for i := range 3 {
			w.m.Tick(start + time.Duration(i)*time.Second)
			before, was := w.table.Counters.Filled, refused
			for range 20 {
				say(true)
			}
			require.EqualValues(t, gap, w.table.Counters.Filled-before, "start %v", start)
			require.Equal(t, 19, refused-was)
		}
		before := w.table.Counters.Filled
		for i := range 1000 {
			w.m.Tick(start + 3*time.Second + time.Duration(i)*time.Millisecond)
			say(true)
		}
		require.InDelta(t, 33_333, w.table.Counters.Filled-before, 2500)
	}
}

// reopener is the handler of a channel that is opened again as soon as it is closed.
type reopener struct {
	channel.Nop
	w   *wire
	err error
}

func (r *reopener) open() {
	ch, err := r.w.table.Open(game, r)
	require.NoError(r.w.t, err)
	_, r.err = ch.SendBunch(&bunch.Out{Data: []byte("open"), Reliable: true, NoMerge: true})
}

func (r *reopener) Closed(*channel.Channel, channel.CloseReason) {
	if !r.w.table.Ended() {
		r.open()
	}
}

// TestGapsOfOurChannelsFillAtAPace: a peer that closes a channel of this end's, which the game opens again at once, makes no more work either: the game is told to wait.
func TestGapsOfOurChannelsFillAtAPace(t *testing.T) {
	w, _ := opened(t, nil)
	w.slow = true
	r := &reopener{w: w}
	r.open()
	seq, packet := 0, int64(1)
	for i := range 1000 {
		packet++
		for range 20 {
			seq++
			h := reliable(2, seq, game)
			h.Close = true
			nak, err := w.receive(packet, h, "")
			require.NoError(t, err)
			require.False(t, nak)
		}
		w.m.Tick(time.Duration(i) * time.Millisecond)
	}
	require.LessOrEqual(t, w.table.Counters.Filled, uint64(34_000+256)) // 5 million without it
	require.ErrorIs(t, r.err, channel.ErrReliableFull)
}

// TestNothingIsMergedIntoAGap: what is written while the bunches wait that fill a gap stays apart from them: the peer may have had their sequences.
func TestNothingIsMergedIntoAGap(t *testing.T) {
	w, _ := opened(t, nil)
	send(t, w.table.Channel(1), 3, true)
	send(t, w.table.Channel(1), 3, true)
	h := reliable(1, 2, game)
	h.Close = true
	_, err := w.receive(2, h, "")
	require.NoError(t, err)
	w.slow = true
	h = reliable(1, 3, game)
	h.Open = true
	_, err = w.receive(3, h, "open")
	require.NoError(t, err)
	_, err = w.table.Channel(1).SendBunch(&bunch.Out{Data: make([]byte, 5), Reliable: true})
	require.NoError(t, err)
	n := len(w.sent)
	w.slow = false
	w.m.Pump()
	var sizes []int
	for _, s := range w.sent[n:] {
		sizes = append(sizes, len(s.data))
	}
	require.Equal(t, []int{0, 0, 5}, sizes)
}
