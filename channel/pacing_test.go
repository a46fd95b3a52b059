package channel_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// TestNakSendsNothing: a nak only queues what is due; the pump sends it when the connection allows it.
func TestNakSendsNothing(t *testing.T) {
	w, _ := newWire(t, false, nil)
	ch, _ := open(t, w, game)
	send(t, ch, 10, true)
	first := w.sent[0]
	w.m.Naked(ch, first.seq, first.id)
	w.m.Settled(ch, first.id, false)
	require.Len(t, w.sent, 1)
	require.Equal(t, 1, w.table.Waiting())
	w.slow = true
	w.m.Pump()
	require.Len(t, w.sent, 1)
	w.slow = false
	w.m.Pump()
	require.Len(t, w.sent, 2)
	require.Zero(t, w.table.Waiting())
}

// TestResendsFirst: what was lost goes before what was never sent, oldest first.
func TestResendsFirst(t *testing.T) {
	w, _ := newWire(t, false, nil)
	ch, _ := open(t, w, game)
	send(t, ch, 1, true)
	w.acked(ch, w.sent[0].seq, w.sent[0].id)
	w.sent = nil
	for range 3 {
		send(t, ch, 10, true)
	}
	w.slow = true
	send(t, ch, 20, true)
	send(t, ch, 30, true)
	for i := range 3 {
		s := w.sent[i]
		w.naked(ch, s.seq, s.id)
	}
	require.Len(t, w.sent, 3)
	w.slow = false
	w.m.Pump()
	var seqs []int64
	for _, s := range w.sent[3:] {
		seqs = append(seqs, s.seq-w.sent[0].seq)
	}
	require.Equal(t, []int64{0, 1, 2, 3, 4}, seqs)
}

// TestRefusedPumpsKeepTheOrder: what was lost first goes first, however often the controller allowed nothing meanwhile.
func TestRefusedPumpsKeepTheOrder(t *testing.T) {
	for refused := range 4 {
		w, _ := newWire(t, false, nil)
		var chs []*channel.Channel
		for range 3 {
			ch, _ := open(t, w, game)
			send(t, ch, 1, true)
			w.acked(ch, w.sent[len(w.sent)-1].seq, w.sent[len(w.sent)-1].id)
			chs = append(chs, ch)
		}
		w.sent = nil
		for _, ch := range chs {
			send(t, ch, 10, true)
		}
		w.slow = true
		for i, ch := range chs {
			w.naked(ch, w.sent[i].seq, w.sent[i].id)
		}
		for range refused {
			w.m.Pump()
		}
		for i, ch := range chs {
			w.slow, w.most = false, 1
			w.m.Pump()
			require.Len(t, w.sent, 4+i)
			require.Equal(t, ch.Index(), w.sent[3+i].ch.Index(), "%d refused", refused)
		}
	}
}

// TestOldestOfAChannelFirst: a bunch that was lost again doesn't wait behind those that were lost before it was: they can do nothing
// without it.
func TestOldestOfAChannelFirst(t *testing.T) {
	for _, acked := range []bool{true, false} { // the open
		w, _ := newWire(t, false, nil)
		ch, _ := open(t, w, game)
		if acked {
			send(t, ch, 1, true)
			w.acked(ch, w.sent[0].seq, w.sent[0].id)
			w.sent = nil
		}
		for range 100 {
			send(t, ch, 900, true)
		}
		first := w.sent[0].seq
		w.slow = true
		for _, s := range w.sent {
			w.naked(ch, s.seq, s.id)
		}
		for i := range 3 {
			w.slow, w.most = false, 1
			w.m.Pump()
			s := w.sent[len(w.sent)-1]
			require.Equal(t, first, s.seq)
			if i < 2 {
				w.naked(ch, s.seq, s.id)
			} else {
				w.acked(ch, s.seq, s.id)
			}
		}
		w.slow, w.sent = false, nil
		w.m.Pump()
		require.Zero(t, w.table.Waiting())
		require.Len(t, w.sent, 99)
		for i, s := range w.sent {
			require.Equal(t, first+1+int64(i), s.seq)
			w.acked(ch, s.seq, s.id)
		}
		require.Zero(t, w.table.Unacked())
	}
}

// TestChannelsTakeTurns: what one channel has queued doesn't hold up another; each keeps its own order.
func TestChannelsTakeTurns(t *testing.T) {
	w, _ := newWire(t, false, nil)
	file, _ := open(t, w, game)
	chat, _ := open(t, w, game)
	news, _ := open(t, w, game)
	for _, ch := range []*channel.Channel{file, chat, news} {
		send(t, ch, 1, true)
		s := w.sent[len(w.sent)-1]
		w.acked(ch, s.seq, s.id)
	}
	w.sent, w.slow = nil, true
	for range 200 {
		send(t, file, 900, true)
	}
	send(t, chat, 10, true)
	send(t, news, 20, true)
	send(t, news, 21, true)
	require.Equal(t, 203, w.table.Waiting())
	w.slow = false
	w.m.Pump()
	require.Len(t, w.sent, 203)
	require.Zero(t, w.table.Waiting())
	var turns []*channel.Channel
	next := map[*channel.Channel]int64{}
	for _, s := range w.sent {
		if last, ok := next[s.ch]; ok {
			require.Equal(t, last+1, s.seq)
		}
		next[s.ch] = s.seq
		turns = append(turns, s.ch)
	}
	require.Equal(t, []*channel.Channel{file, chat, news, file, news, file}, turns[:6])
}

// TestLostOpenComesSoon: the open of a channel that was lost doesn't wait for all that was queued meanwhile, on which the peer can
// do nothing without it.
func TestLostOpenComesSoon(t *testing.T) {
	w, _ := newWire(t, false, nil)
	ch, _ := open(t, w, game)
	send(t, ch, 900, true)
	first := w.sent[0]
	w.slow = true
	for range 100 {
		send(t, ch, 900, true)
	}
	w.naked(ch, first.seq, first.id)
	w.slow, w.most = false, 2
	w.m.Pump()
	require.Len(t, w.sent, 3)
	require.Contains(t, []int64{w.sent[1].seq, w.sent[2].seq}, first.seq)
}

// TestRefusedOpenLeavesHalf: a channel that the peer refuses for now is tried again and again, and takes half of the bandwidth
// at most from the others.
func TestRefusedOpenLeavesHalf(t *testing.T) {
	w, _ := newWire(t, false, nil)
	refused, _ := open(t, w, game)
	for range 50 {
		send(t, refused, 900, true)
	}
	other, _ := open(t, w, game)
	send(t, other, 900, true)
	last := w.sent[len(w.sent)-1]
	w.acked(other, last.seq, last.id)
	w.slow = true
	for range 100 {
		send(t, other, 900, true)
	}
	sent := 0
	for from := 0; sent < 100; {
		to := len(w.sent)
		for _, s := range w.sent[from:to] {
			if s.ch == refused {
				w.naked(refused, s.seq, s.id)
			}
		}
		from = to
		w.slow, w.most = false, 7 // an odd number: the turn is kept from one tick to the next
		w.m.Pump()
		for _, s := range w.sent[from:] {
			if s.ch == other {
				sent++
			}
		}
		require.Less(t, len(w.sent), 51+2*100+10)
	}
}

// TestSmallOnesMergeWhileTheyWait: above the bandwidth many small reliable bunches become few, in order and intact.
func TestSmallOnesMergeWhileTheyWait(t *testing.T) {
	w, _ := newWire(t, false, nil)
	ch, _ := open(t, w, game)
	send(t, ch, 1, true)
	w.slow = true
	want := ""
	for i := range 1000 {
		text := fmt.Sprint(i, " ")
		want += text
		_, err := ch.SendBunch(&bunch.Out{Data: []byte(text), Reliable: true})
		require.NoError(t, err)
	}
	require.Less(t, ch.NumOutRec(), 10)
	w.slow = false
	w.m.Pump()
	got := ""
	for _, s := range w.sent[1:] {
		got += string(s.data)
	}
	require.Equal(t, want, got)
}

// TestMergeKeepsOrder: a bunch isn't merged into one in the SendBuffer ahead of one that waits.
func TestMergeKeepsOrder(t *testing.T) {
	w, _ := newWire(t, false, nil)
	w.extends = true
	ch, _ := open(t, w, game)
	send(t, ch, 1, true)
	for i, text := range []string{"first ", "second ", "third "} {
		w.slow = i == 1
		_, err := ch.SendBunch(&bunch.Out{Data: []byte(text), Reliable: true, NoMerge: i == 1})
		require.NoError(t, err)
	}
	w.m.Pump()
	for _, s := range w.sent {
		w.naked(ch, s.seq, s.id) // what is sent again is what was kept
	}
	var got []string
	for _, s := range w.sent[len(w.sent)-4:] {
		got = append(got, string(s.data))
	}
	require.Equal(t, []string{"\x00", "first ", "second ", "third "}, got)
}

// TestUnreliableBehindItsOpen: an unreliable bunch isn't sent before the open of its channel has left.
func TestUnreliableBehindItsOpen(t *testing.T) {
	w, _ := newWire(t, false, nil)
	ch, _ := open(t, w, game)
	w.slow = true
	send(t, ch, 10, true)
	_, err := ch.SendBunch(&bunch.Out{Data: []byte("x")})
	require.ErrorIs(t, err, channel.ErrNotSent)
	w.slow = false
	w.m.Pump()
	_, err = ch.SendBunch(&bunch.Out{Data: []byte("x")})
	require.NoError(t, err)
}

// TestLongNamesFit: a channel's bunches fit a packet whatever its name takes, and a name that can't be sent is an error.
func TestLongNamesFit(t *testing.T) {
	for _, n := range []int{1, 15, 16, 40, 63} {
		name := bunch.Name{Text: string(make([]byte, n))}
		for i := range n {
			name.Text = name.Text[:i] + "n" + name.Text[i+1:]
		}
		w, _ := newWire(t, false, func(c *channel.Config) {
			c.Types = append(c.Types, channel.Type{Name: name, ClientOpen: true})
		})
		ch, _ := open(t, w, name)
		send(t, ch, w.table.SingleBits()/8, true)
		var p bunch.Protocol
		for _, s := range w.sent {
			out := make([]byte, p.PacketBits()/8)
			require.LessOrEqual(t, headerBits(&p, &s.h, out)+s.h.Bits, p.PacketBits()-bunch.MaxPacketHeaderBits-1, "%d characters", n)
		}
	}
	for _, text := range []string{string(make([]byte, 65)), "a name with more than sixty-four characters, which no peer takes as one"} {
		_, err := channel.NewMachine(channel.Config{Types: []channel.Type{{Name: bunch.Name{Text: text}}}}, &wire{}, &wire{}, 0, 0)
		require.Error(t, err)
	}
	for _, name := range []bunch.Name{{Index: 301, Text: "Chat"}, {Index: 301, Number: 7}} {
		_, err := channel.NewMachine(channel.Config{Types: []channel.Type{{Name: name}}}, &wire{}, &wire{}, 0, 0)
		require.ErrorContains(t, err, "either an Index or a Text", "the peer would read another name")
	}
}

// TestCloseBehindFullBuffer: the close of a channel whose buffer is full is told apart from a duplicate, also with the
// largest buffer.
func TestCloseBehindFullBuffer(t *testing.T) {
	for _, s := range []struct {
		buffer int
		bits   uint8
	}{{2, 0}, {16, 0}, {256, 0}, {512, 0}, {1024, 11}, {1024, 16}, {2048, 12}} {
		buffer := s.buffer
		edit := func(c *channel.Config) { c.ReliableBuffer, c.Protocol.SequenceBits = buffer, s.bits }
		w, _ := newWire(t, false, edit)
		ch, _ := open(t, w, game)
		for ch.Room() > 0 {
			send(t, ch, 1, true)
		}
		require.NoError(t, ch.Close(bunch.Destroyed))
		peer, l := newWire(t, true, edit)
		h := reliable(0, 1, bunch.Control)
		h.Open = true
		_, err := peer.receive(1, h, "open")
		require.NoError(t, err)
		for _, i := range append([]int{len(w.sent) - 1}, rand.New(rand.NewPCG(1, 1)).Perm(len(w.sent))...) {
			s := w.sent[i]
			nak, err := peer.receive(int64(i+2), s.h, string(s.data))
			require.NoError(t, err, "buffer %d, bunch %d of %d", buffer, i, len(w.sent))
			require.False(t, nak)
		}
		require.Len(t, l.closed, 1, "buffer %d", buffer)
	}
}

// TestHalfATemporaryChannel: what is left of a temporary channel whose second part is lost gives way to the next type
// of its index.
func TestHalfATemporaryChannel(t *testing.T) {
	for _, packet := range []int64{2, 5} { // before what is left of the half is given up, and after
		other := bunch.Name{Index: 301}
		l := &log{}
		w, _ := newWire(t, true, func(c *channel.Config) {
			c.Types = append(c.Types, channel.Type{Name: other, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return l }})
		})
		control := reliable(0, 1, bunch.Control)
		control.Open = true
		_, err := w.receive(0, control, "open")
		require.NoError(t, err)
		_, err = w.receive(1, bunch.Header{ChIndex: 7, Name: game, Open: true, Partial: true, PartialInitial: true}, "first half")
		require.NoError(t, err)
		require.NotNil(t, w.table.Channel(7))
		next := reliable(7, 1, other)
		next.Open = true
		_, err = w.receive(packet, next, "another type")
		require.NoError(t, err, "packet %d", packet)
		require.Equal(t, []string{"another type"}, l.bunches)
		require.EqualValues(t, 1, w.table.Counters.HalfOpen)
	}
}

// TestReopenedBehindAGap: a channel that is opened where another left a full buffer has no room until that is acked. Its
// opener is told, and with CloseOnOverflow the connection goes on.
func TestReopenedBehindAGap(t *testing.T) {
	w, _ := opened(t, func(c *channel.Config) { c.CloseOnOverflow, c.FirstFree = true, true })
	ch := w.table.Channel(1)
	for ch.Room() > 0 {
		send(t, ch, 1, true)
	}
	h := reliable(1, 2, game)
	h.Close = true
	_, err := w.receive(2, h, "")
	require.NoError(t, err)
	require.Nil(t, w.table.Channel(1))
	again, _ := open(t, w, game)
	require.EqualValues(t, 1, again.Index())
	_, err = again.SendBunch(&bunch.Out{Data: []byte("x"), Reliable: true})
	require.ErrorIs(t, err, channel.ErrReliableFull)
	require.NoError(t, w.err)
	for _, s := range w.sent[len(w.sent)-255:] {
		w.acked(s.ch, s.seq, s.id)
	}
	_, err = again.SendBunch(&bunch.Out{Data: []byte("x"), Reliable: true})
	require.NoError(t, err)
}

// TestControlGoesFirst: what the control channel has to say doesn't wait for other channels, nor does what was never
// sent for channels that the peer may refuse.
func TestControlGoesFirst(t *testing.T) {
	w, _ := newWire(t, false, nil)
	ctl, _ := open(t, w, bunch.Control)
	send(t, ctl, 1, true)
	refused, _ := open(t, w, game)
	send(t, refused, 10, true)
	w.slow = true
	other, _ := open(t, w, game)
	send(t, other, 20, true)
	s := w.sent[1]
	w.naked(refused, s.seq, s.id)
	send(t, ctl, 2, true)
	w.slow = false
	w.m.Pump()
	var sizes []int
	for _, s := range w.sent[2:] {
		sizes = append(sizes, len(s.data))
	}
	require.Equal(t, []int{2, 20, 10}, sizes)
}

// TestControlComesAgainFirst: what was lost of the control channel goes before what was lost of others, however early that was.
func TestControlComesAgainFirst(t *testing.T) {
	w, _ := newWire(t, false, nil)
	control, _ := open(t, w, bunch.Control)
	ch, _ := open(t, w, game)
	for _, c := range []*channel.Channel{control, ch} {
		send(t, c, 8, true)
		last := w.sent[len(w.sent)-1]
		w.acked(c, last.seq, last.id)
	}
	send(t, ch, 8, true)
	send(t, control, 8, true)
	lost := w.sent[len(w.sent)-2:]
	n := len(w.sent)
	w.slow = true
	for _, s := range lost {
		w.naked(s.ch, s.seq, s.id)
	}
	w.slow = false
	w.m.Pump()
	require.Len(t, w.sent, n+2)
	require.Equal(t, []uint32{0, ch.Index()}, []uint32{w.sent[n].ch.Index(), w.sent[n+1].ch.Index()})
}
