package channel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// TestWhatMerges: a bunch joins the one before it of its channel, in the SendBuffer or while that waits, when nothing about them differs, they
// fit one bunch, and neither is to stay apart.
func TestWhatMerges(t *testing.T) {
	small := bunch.Out{Data: []byte("0123456789"), Reliable: true}
	with := func(change func(o *bunch.Out)) bunch.Out {
		o := small
		change(&o)
		return o
	}
	for _, v := range []struct {
		name          string
		first, second bunch.Out
		merges        bool
		onlySent      bool // unreliable ones don't wait
	}{
		{"alike", small, small, true, false},
		{"first apart", with(func(o *bunch.Out) { o.NoMerge = true }), small, false, false},
		{"second apart", small, with(func(o *bunch.Out) { o.NoMerge = true }), false, false},
		{"first with exports", with(func(o *bunch.Out) { o.HasPackageMapExports = true }), small, false, false},
		{"second with exports", small, with(func(o *bunch.Out) { o.HasPackageMapExports = true }), false, false},
		{"first with GUIDs", with(func(o *bunch.Out) { o.HasMustBeMappedGUIDs = true }), small, false, false},
		{"second with GUIDs", small, with(func(o *bunch.Out) { o.HasMustBeMappedGUIDs = true }), false, false},
		{"first paused", with(func(o *bunch.Out) { o.ReplicationPaused = true }), small, false, false},
		{"second paused", small, with(func(o *bunch.Out) { o.ReplicationPaused = true }), false, false},
		{"both paused", with(func(o *bunch.Out) { o.ReplicationPaused = true }), with(func(o *bunch.Out) { o.ReplicationPaused = true }), true, false},
		{"unreliable behind reliable", small, with(func(o *bunch.Out) { o.Reliable = false }), false, true},
		{"reliable behind unreliable", with(func(o *bunch.Out) { o.Reliable = false }), small, false, true},
		{"unreliable", with(func(o *bunch.Out) { o.Reliable = false }), with(func(o *bunch.Out) { o.Reliable = false }), true, true},
	} {
		for _, waiting := range []bool{false, true} {
			if waiting && v.onlySent {
				continue
			}
			w, _ := newWire(t, false, nil)
			w.extends = true
			ch, _ := open(t, w, game)
			send(t, ch, 1, true)
			w.slow = waiting
			before := w.table.Counters.Merged
			for _, o := range []bunch.Out{v.first, v.second} {
				_, err := ch.SendBunch(&o)
				require.NoError(t, err)
			}
			require.Equal(t, v.merges, w.table.Counters.Merged == before+1, "%s, waiting %v", v.name, waiting)
			w.slow, w.extends = false, false
			w.m.Pump()
			if !waiting || !v.merges {
				continue
			}
			require.Equal(t, "01234567890123456789", string(w.sent[len(w.sent)-1].data))
		}
	}
}

// TestMergeIsBounded: by what one bunch may hold, exactly, in the SendBuffer and while it waits.
func TestMergeIsBounded(t *testing.T) {
	for _, waiting := range []bool{false, true} {
		for _, over := range []int{0, 1} {
			w, _ := newWire(t, false, nil)
			w.extends = true
			ch, _ := open(t, w, game)
			send(t, ch, 1, true)
			w.slow = waiting
			first := bunch.Out{Data: make([]byte, 1000), Bits: w.table.SingleBits() - 40, Reliable: true}
			second := bunch.Out{Data: make([]byte, 6), Bits: 40 + over, Reliable: true}
			first.Data = first.Data[:(first.Bits+7)/8]
			for _, o := range []bunch.Out{first, second} {
				_, err := ch.SendBunch(&o)
				require.NoError(t, err)
			}
			require.EqualValues(t, 1-over, w.table.Counters.Merged, "waiting %v, %d over", waiting, over)
		}
	}
}

// TestMergeKeepsToTheOutlet: reliable bunches are merged up to what the connection says, exactly, in the SendBuffer and while they wait. Unreliable ones, which
// have no copies, are merged in any case.
func TestMergeKeepsToTheOutlet(t *testing.T) {
	for _, waiting := range []bool{false, true} {
		for _, reliable := range []bool{true, false} {
			if waiting && !reliable {
				continue
			}
			for _, over := range []int{0, 1} {
				w, _ := newWire(t, false, nil)
				w.extends, w.largest = true, 80-over
				ch, _ := open(t, w, game)
				send(t, ch, 1, true)
				w.slow = waiting
				for range 2 {
					_, err := ch.SendBunch(&bunch.Out{Data: []byte("12345"), Reliable: reliable})
					require.NoError(t, err)
				}
				want := 1
				if reliable {
					want -= over
				}
				require.EqualValues(t, want, w.table.Counters.Merged, "waiting %v, reliable %v, %d over", waiting, reliable, over)
			}
		}
	}
}

// TestMergedIsSentAgainWhole: what was merged into a bunch is part of it when it is sent again, to the bit; and a bunch that was sent again isn't
// merged into.
func TestMergedIsSentAgainWhole(t *testing.T) {
	w, _ := newWire(t, false, nil)
	w.extends = true
	ch, _ := open(t, w, game)
	send(t, ch, 1, true)
	for range 40 {
		_, err := ch.SendBunch(&bunch.Out{Data: []byte{0xff}, Bits: 3, Reliable: true})
		require.NoError(t, err)
	}
	require.EqualValues(t, 39, w.table.Counters.Merged)
	s := w.sent[1]
	w.naked(ch, s.seq, s.id)
	again := w.sent[2]
	require.Equal(t, 120, again.h.Bits)
	for _, b := range again.data {
		require.EqualValues(t, 0xff, b)
	}
	_, err := ch.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
	require.NoError(t, err)
	require.Len(t, w.sent, 4)
	held := w.table.Held()
	for _, s := range w.sent {
		w.acked(ch, s.seq, s.id)
	}
	require.Less(t, w.table.Held(), held)
	require.Zero(t, w.table.Unacked())
}

// TestCountersOfSending: what is counted of what is sent.
func TestCountersOfSending(t *testing.T) {
	w, _ := newWire(t, false, nil)
	ch, _ := open(t, w, game)
	send(t, ch, 1, true)    // 1 reliable
	send(t, ch, 10, false)  // 1 unreliable
	send(t, ch, 2000, true) // 3 parts
	w.slow = true
	send(t, ch, 20, true) // waits
	w.full = true
	_, err := ch.SendBunch(&bunch.Out{Data: []byte("x")})
	require.ErrorIs(t, err, channel.ErrNotSent)
	w.full, w.slow = false, false
	w.m.Pump()
	for _, s := range w.sent[:2] { // the open, and its copy before the unreliable one
		w.naked(ch, s.seq, s.id) // 1 again
	}
	require.Equal(t, channel.Counters{Sent: 5, SentReliable: 5, Split: 3, Backlog: 1, NotSent: 1, Resent: 1, ChannelsOpened: 1}, w.table.Counters)
	require.Equal(t, 5, w.table.Unacked())
	require.Equal(t, 5, ch.NumOutRec())
	require.Equal(t, 250, ch.Room())
}

// TestCountersOfReceiving: what is counted of what comes.
func TestCountersOfReceiving(t *testing.T) {
	w, _ := opened(t, nil)
	for _, seq := range []int{3, 3, 2, 1} { // early, twice, its turn, twice
		_, err := w.receive(5, reliable(1, seq, game), "x")
		require.NoError(t, err)
	}
	_, err := w.receive(6, bunch.Header{ChIndex: 1}, "unreliable")
	require.NoError(t, err)
	require.Equal(t, channel.Counters{Received: 7, ReceivedReliable: 6, Duplicate: 2, Early: 1, ChannelsOpened: 2}, w.table.Counters)
	require.Equal(t, 2, w.table.Len())
	h := reliable(1, 4, game)
	h.Close = true
	_, err = w.receive(7, h, "")
	require.NoError(t, err)
	require.Equal(t, 1, w.table.Len())
	require.EqualValues(t, 1, w.table.Counters.ChannelsClosed)
}

// TestCopies: a bunch in flight may ride again as often as copies say; not when it is acked, waits, or its channel is gone.
func TestCopies(t *testing.T) {
	w, _ := newWire(t, false, nil)
	ch, _ := open(t, w, game)
	send(t, ch, 10, true)
	s := w.sent[0]
	rides := func(copies int) bool {
		h, data, last := w.m.Copy(ch, s.seq, copies)
		if h == nil {
			require.Nil(t, data)
			require.Equal(t, bunch.NoPacket, last)
			return false
		}
		require.Equal(t, s.h, *h)
		require.Equal(t, s.data, data)
		return true
	}
	require.False(t, rides(0), "it rode once")
	require.True(t, rides(1))
	w.m.Copied(ch, s.seq, 50)
	_, _, last := w.m.Copy(ch, s.seq, 2)
	require.EqualValues(t, 50, last)
	require.False(t, rides(1))
	require.True(t, rides(2))
	w.m.Naked(ch, s.seq, s.id)
	require.Zero(t, w.table.Waiting(), "the copy is still under way")
	w.m.Naked(ch, s.seq, 50)
	require.Equal(t, 1, w.table.Waiting())
	require.False(t, rides(9), "it waits for its turn")
	w.m.Pump()
	require.True(t, rides(1), "counted anew after a loss")
	send(t, ch, 10, true)
	second := w.sent[len(w.sent)-1]
	w.m.Acked(ch, second.seq, second.id)
	h, _, _ := w.m.Copy(ch, second.seq, 9)
	require.Nil(t, h, "acked, though not released")
	w.m.Acked(ch, s.seq, 51)
	require.False(t, rides(9))
	send(t, ch, 10, true)
	s = w.sent[len(w.sent)-1]
	w.m.End()
	require.False(t, rides(9))
}

// TestFreeIndices: a client takes odd ones, a server even ones; the lowest that is free and nobody's fixed one, below MaxChannels.
func TestFreeIndices(t *testing.T) {
	fixed := bunch.Name{Index: 305}
	for _, server := range []bool{false, true} {
		w, _ := newWire(t, server, func(c *channel.Config) {
			c.MaxChannels = 9
			c.Types = append(c.Types, channel.Type{Name: fixed, ClientOpen: true, ServerOpen: true, Static: true, Index: 4}, channel.Type{Name: bunch.Voice, ClientOpen: true, Static: true, Index: 5})
		})
		want := []uint32{1, 3, 7}
		if server {
			want = []uint32{2, 6, 8}
		}
		var chs []*channel.Channel
		for _, index := range want {
			ch, _ := open(t, w, game)
			require.Equal(t, index, ch.Index())
			chs = append(chs, ch)
		}
		_, err := w.table.Open(game, channel.Nop{})
		require.ErrorIs(t, err, channel.ErrNoIndex)
		ch, _ := open(t, w, fixed)
		require.EqualValues(t, 4, ch.Index())
		_, err = w.table.Open(fixed, channel.Nop{})
		require.ErrorIs(t, err, channel.ErrIndexInUse)
		for _, i := range []int{2, 0, 1} {
			require.NoError(t, chs[i].Close(bunch.Destroyed), "never sent: gone at once")
		}
		for _, index := range want {
			ch, _ := open(t, w, game)
			require.Equal(t, index, ch.Index())
		}
		n := 0
		last := -1
		w.table.All(func(ch *channel.Channel) bool {
			require.Greater(t, int(ch.Index()), last)
			last = int(ch.Index())
			n++
			return n < 2
		})
		require.Equal(t, 2, n)
	}
}

// TestHold: what a handler keeps for the peer counts until it is released, or the channel is gone.
func TestHold(t *testing.T) {
	w, _ := opened(t, func(c *channel.Config) { c.MaxMemory = 256 << 10 })
	ch := w.table.Channel(1)
	before := w.table.Held()
	room := 64<<10 - before
	require.NoError(t, ch.Hold(0))
	require.ErrorIs(t, ch.Hold(-1), channel.ErrMemory)
	require.ErrorIs(t, ch.Hold(1<<30), channel.ErrMemory)
	require.ErrorIs(t, ch.Hold(room+1), channel.ErrMemory)
	require.EqualValues(t, 1, w.table.Counters.MemoryFull)
	require.NoError(t, ch.Hold(room))
	require.Equal(t, 64<<10, w.table.Held())
	require.ErrorIs(t, ch.Hold(1), channel.ErrMemory)
	ch.Release(1000)
	require.Equal(t, 63<<10+24, w.table.Held())
	ch.Release(-5)
	require.Equal(t, 63<<10+24, w.table.Held())
	ch.Release(1 << 30)
	require.Equal(t, before, w.table.Held())
	require.NoError(t, ch.Hold(100))
	h := reliable(1, 2, game)
	h.Close = true
	_, err := w.receive(2, h, "")
	require.NoError(t, err)
	require.Less(t, w.table.Held(), before)
	require.ErrorIs(t, ch.Hold(1), channel.ErrMemory)
}

// TestHoldSent: what a handler keeps of what it sent counts in the other half, until it is released, or the channel is gone.
func TestHoldSent(t *testing.T) {
	w, _ := opened(t, func(c *channel.Config) { c.MaxMemory = 256 << 10 })
	ch := w.table.Channel(1)
	ch.ReleaseSent(5)
	before, most := w.table.Unreleased()
	require.NoError(t, ch.HoldSent(0))
	require.ErrorIs(t, ch.HoldSent(-1), channel.ErrMemory)
	require.ErrorIs(t, ch.HoldSent(1<<30), channel.ErrMemory)
	require.ErrorIs(t, ch.HoldSent(most-before+1), channel.ErrMemory)
	require.NoError(t, ch.HoldSent(most-before))
	_, err := ch.SendBunch(&bunch.Out{Data: []byte("x"), Reliable: true})
	require.ErrorIs(t, err, channel.ErrReliableFull)
	ch.ReleaseSent(most - before - 100)
	_, err = ch.SendBunch(&bunch.Out{Data: []byte("x"), Reliable: true, NoMerge: true})
	require.NoError(t, err)
	ch.ReleaseSent(-5)
	used, _ := w.table.Unreleased()
	require.Greater(t, used, before+100)
	h := reliable(1, 2, game)
	h.Close = true
	_, err = w.receive(2, h, "")
	require.NoError(t, err)
	used, _ = w.table.Unreleased()
	require.Equal(t, before, used)
	require.ErrorIs(t, ch.HoldSent(1), channel.ErrMemory)
	ch.ReleaseSent(1)
	used, _ = w.table.Unreleased()
	require.Equal(t, before, used)
}

// TestTemporaryIsOnce: on a channel of one's own that was never used, and with nothing behind it.
func TestTemporaryIsOnce(t *testing.T) {
	w, _ := opened(t, nil)
	_, err := w.table.Channel(1).SendTemporary(&bunch.Out{Data: []byte("x")})
	require.ErrorIs(t, err, channel.ErrClosed, "the peer's")
	ch, l := open(t, w, game)
	_, err = ch.SendTemporary(&bunch.Out{Data: make([]byte, 1<<20)})
	require.ErrorIs(t, err, channel.ErrTooLarge)
	w.full = true
	_, err = ch.SendTemporary(&bunch.Out{Data: []byte("x")})
	require.ErrorIs(t, err, channel.ErrNotSent)
	require.False(t, ch.Closing(), "it may be tried again")
	w.full = false
	r, err := ch.SendTemporary(&bunch.Out{Data: []byte("x"), Reliable: true})
	require.NoError(t, err)
	require.Equal(t, channel.PacketRange{First: w.next, Last: w.next}, r)
	require.False(t, w.sent[len(w.sent)-1].h.Reliable)
	require.True(t, ch.Closing())
	_, err = ch.SendTemporary(&bunch.Out{Data: []byte("x")})
	require.ErrorIs(t, err, channel.ErrClosed)
	w.m.Settled(ch, w.next, false)
	require.Len(t, l.closed, 1, "lost is gone, too")

	ch, _ = open(t, w, game)
	send(t, ch, 1, true)
	_, err = ch.SendTemporary(&bunch.Out{Data: []byte("x")})
	require.ErrorIs(t, err, channel.ErrClosed, "it was opened for more")
	w.m.Shut()
	other := w.table.Channel(1)
	_, err = other.SendBunch(&bunch.Out{Data: []byte("x"), Reliable: true})
	require.ErrorIs(t, err, channel.ErrClosed)
	require.NoError(t, other.Close(bunch.Destroyed), "the end of the connection closes all")
	_, err = w.table.Open(game, channel.Nop{})
	require.ErrorIs(t, err, channel.ErrClosed)
}

// TestControlDrains: the control channel's queue goes as its buffer gets room, in order and merged as the game had it; the
// memory for it comes back.
func TestControlDrains(t *testing.T) {
	w, _ := newWire(t, false, nil)
	ch, _ := open(t, w, bunch.Control)
	for range 255 {
		send(t, ch, 1, true)
	}
	held := w.table.Held()
	for i := range 5 {
		_, err := ch.SendBunch(&bunch.Out{Data: []byte{byte(i), 9}, Bits: 12, Reliable: true, NoMerge: true})
		require.NoError(t, err)
	}
	require.Equal(t, 260, w.table.Unacked())
	require.Greater(t, w.table.Held(), held)
	w.m.Tick(time.Second / 60)
	require.Len(t, w.sent, 255, "there is no room")
	for i := range 2 {
		w.acked(ch, w.sent[i].seq, w.sent[i].id)
	}
	w.m.Tick(2 * time.Second / 60)
	require.Len(t, w.sent, 257)
	w.sent = w.sent[2:]
	for _, s := range w.sent {
		w.acked(ch, s.seq, s.id)
	}
	w.m.Tick(3 * time.Second / 60)
	require.Len(t, w.sent, 258)
	for i, s := range w.sent[253:] {
		require.Equal(t, []byte{byte(i), 9}, s.data)
		require.Equal(t, 12, s.h.Bits)
	}
	require.Equal(t, 3, w.table.Unacked())
	for _, s := range w.sent[255:] {
		w.acked(ch, s.seq, s.id)
	}
	require.Zero(t, w.table.Unacked())
	require.LessOrEqual(t, w.table.Held(), 2048, "the sequences of the indices alone")
}

// TestLastWordsAreBounded: of the control channel 16 KiB or so leave at once, and so hundreds of small ones: the peer takes the close behind them once it has all.
func TestLastWordsAreBounded(t *testing.T) {
	w, _ := newWire(t, false, nil)
	ch, _ := open(t, w, bunch.Control)
	w.m.HurryControl()
	send(t, ch, 1, true)
	w.slow = true
	for range 30 {
		send(t, ch, w.table.SingleBits()/8, true)
	}
	require.Equal(t, 30, w.table.Waiting())
	w.m.HurryControl()
	require.Len(t, w.sent, 19)
	require.Equal(t, 13, w.table.Waiting(), "besides the one that is under way seventeen left")
	w.full = true
	w.m.HurryControl()
	require.Len(t, w.sent, 19)
	w.full, w.slow = false, false
	w.m.Pump()
	require.Zero(t, w.table.Waiting())
	require.Len(t, w.sent, 32)
	none, _ := newWire(t, false, nil)
	none.m.HurryControl()
	require.Empty(t, none.sent)

	small, _ := newWire(t, false, nil)
	ch, _ = open(t, small, bunch.Control)
	small.slow = true
	for range 300 {
		send(t, ch, 10, true)
	}
	small.m.HurryControl()
	require.Zero(t, small.table.Waiting())
}

// TestUndelivered: what is listed of each channel, without the close of the connection and what fills gaps.
func TestUndelivered(t *testing.T) {
	w, _ := newWire(t, false, nil)
	require.Empty(t, w.m.Undelivered())
	ctl, _ := open(t, w, bunch.Control)
	send(t, ctl, 1, true)
	ch, _ := open(t, w, game)
	for range 3 {
		send(t, ch, 1, true)
	}
	require.Equal(t, []channel.Undelivered{{Index: 0, Name: bunch.Control, Bunches: 1}, {Index: 1, Name: game, Bunches: 3}}, w.m.Undelivered())
	for _, s := range w.sent[:2] {
		w.acked(s.ch, s.seq, s.id)
	}
	require.Equal(t, []channel.Undelivered{{Index: 1, Name: game, Bunches: 2}}, w.m.Undelivered())
	require.NoError(t, w.m.CloseControl())
	require.NoError(t, w.m.CloseControl(), "once")
	require.Equal(t, 3, w.table.Unacked())
	require.Equal(t, []channel.Undelivered{{Index: 1, Name: game, Bunches: 2}}, w.m.Undelivered())
	w.m.End()
	w.m.End()
	require.Zero(t, w.table.Len())
	require.Zero(t, w.table.Unacked())
	_, err := w.table.Open(game, channel.Nop{})
	require.ErrorIs(t, err, channel.ErrClosed)
}

// TestNothingIsMergedOverAnother: a bunch isn't appended to the one before it of its channel when another channel's, that waited for its turn,
// left in between.
func TestNothingIsMergedOverAnother(t *testing.T) {
	w, _ := newWire(t, false, nil)
	w.extends = true
	ch, _ := open(t, w, game)
	other, _ := open(t, w, game)
	for _, c := range []*channel.Channel{ch, other} {
		send(t, c, 8, true)
		w.acked(c, w.sent[len(w.sent)-1].seq, w.next)
	}
	w.slow = true
	send(t, other, 8, true)
	say := func() {
		_, err := ch.SendBunch(&bunch.Out{Data: []byte("voice")})
		require.NoError(t, err)
	}
	say()
	w.slow = false
	w.m.Pump()
	n, merged := len(w.sent), w.table.Counters.Merged
	require.Same(t, other, w.sent[n-1].ch)
	say()
	require.Equal(t, merged, w.table.Counters.Merged)
	require.Len(t, w.sent, n+1)
}
