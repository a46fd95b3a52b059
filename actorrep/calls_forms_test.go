package actorrep_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// lever is an actor with procedures of all the less common forms.
type lever struct {
	actorrep.Base
	Up    bool `net:"notify=OnUp"`
	Turns int32

	pulls, rings int
	names        []string
	kept         talk
}

// game is a game's own state, which its procedures and notifies find.
type game struct{ pulled, told int }

func (l *lever) OnUp() { l.World().User.(*game).told++ }

// talk is parameters with strings and slices.
type talk struct {
	Text  string
	Raw   []byte
	Seats []seat
	Lines []string
}

type seat struct {
	Name string
	At   int32
}

func (t talk) clone() talk {
	c := talk{strings.Clone(t.Text), append([]byte(nil), t.Raw...), nil, nil}
	for _, s := range t.Seats {
		c.Seats = append(c.Seats, seat{strings.Clone(s.Name), s.At})
	}
	for _, s := range t.Lines {
		c.Lines = append(c.Lines, strings.Clone(s))
	}
	return c
}

var (
	pull = actorrep.ServerRPC0(func(c actorrep.Call, l *lever) error {
		l.pulls++
		l.Up = !l.Up
		c.World.User.(*game).pulled++
		return nil
	}, actorrep.Reliable, actorrep.AnyClient)
	ring      = actorrep.MulticastRPC0(func(_ actorrep.Call, l *lever) error { l.rings++; return nil }, actorrep.Reliable)
	thank     = actorrep.ClientRPC0(func(_ actorrep.Call, l *lever) error { l.names = append(l.names, "thanks"); return nil }, actorrep.Reliable)
	countdown = actorrep.ServerRPC[*lever, int32](nil, actorrep.Reliable)
	sayTalk   = func(_ actorrep.Call, l *lever, t talk) error {
		if l.kept = t; l.names != nil {
			l.names = append(l.names, fmt.Sprint(t.clone()))
		}
		return nil
	}
	borrowed     = actorrep.ServerRPC(sayTalk, actorrep.Reliable, actorrep.Borrowed)
	borrowedBack = actorrep.ClientRPC(sayTalk, actorrep.Reliable, actorrep.Borrowed)
)

func init() {
	countdown.Handle(func(_ actorrep.Call, l *lever, n int32) error {
		l.Turns++
		if n == 0 {
			return nil
		}
		return countdown.Call(l, n-1) // to itself: a literal in the variable's declaration couldn't
	})
}

func levers(t *testing.T, clients int) (*world, *lever, []*lever) {
	w := newWorld(t, 5, netsim.Settings{Lag: 100 * time.Millisecond}, actorrep.Config{RelevantTimeout: -1}, func(t testing.TB, w *actorrep.World) {
		w.User = &game{}
		require.NoError(t, w.Register("lever", (*lever)(nil), actorrep.RPCs{"Pull": pull, "Ring": ring, "Thank": thank, "Countdown": countdown,
			"Borrowed": borrowed, "BorrowedBack": borrowedBack}))
	})
	l := &lever{}
	for range clients {
		w.join()
	}
	l.SetOwner(w.Lines[0].Peer)
	require.NoError(t, w.Server.Spawn(l))
	for range 60 {
		w.Step()
	}
	var there []*lever
	for _, line := range w.Lines {
		m, _ := line.World.Find(l.GUID()).(*lever)
		require.NotNil(t, m)
		there = append(there, m)
	}
	return w, l, there
}

func TestCallsWithoutParameters(t *testing.T) {
	w, l, there := levers(t, 2)
	require.NoError(t, ring.Call(l))
	require.NoError(t, thank.Call(l))
	require.ErrorIs(t, ring.Call(there[0]), actorrep.ErrAuthority)
	for range 60 {
		w.Step()
	}
	require.Equal(t, []int{1, 1, 1}, []int{l.rings, there[0].rings, there[1].rings})
	require.Equal(t, []string{"thanks"}, there[0].names)
	require.Empty(t, there[1].names)
}

// TestAnyClientCalls: a procedure with AnyClient runs for a client that sees the actor and doesn't own it, and for none that doesn't see
// it any more.
func TestAnyClientCalls(t *testing.T) {
	w, l, there := levers(t, 2)
	var callers []*actorrep.Peer
	pull.Validated(func(c actorrep.Call, _ *lever) bool {
		if c.World == w.Server {
			callers = append(callers, c.Peer)
		}
		return true
	})
	t.Cleanup(func() { pull.Validated(func(actorrep.Call, *lever) bool { return true }) })
	require.False(t, there[1].IsOwned())
	require.NoError(t, pull.Call(there[1]))
	for range 60 {
		w.Step()
	}
	require.Equal(t, 1, l.pulls)
	require.Equal(t, []*actorrep.Peer{w.Lines[1].Peer}, callers, "who called is told")

	// It leaves the caller, whose calls are under way.
	l.SetOnlyOwner(true)
	left, sent := -1, 0
	for range 60 {
		if pull.Call(there[1]) == nil {
			sent++
		}
		w.Step()
		if left < 0 && w.Server.Explain(w.Lines[1].Peer, l).Reason == actorrep.ReasonIrrelevant {
			left = l.pulls
		}
	}
	require.GreaterOrEqual(t, left, 1)
	require.Equal(t, left, l.pulls, "none of %d ran after it had left", sent)
	require.Greater(t, sent+1, l.pulls, "some were under way")
	require.False(t, w.Lines[1].S.Closed(), "no reason to part")
}

// TestHandlers: a procedure may lead back to itself, needs a handler where it runs, and has one.
func TestHandlers(t *testing.T) {
	w, l, there := levers(t, 1)
	require.NoError(t, countdown.Call(there[0], 3))
	for range 30 {
		w.Step()
	}
	require.EqualValues(t, 4, l.Turns)
	require.Panics(t, func() { countdown.Handle(func(actorrep.Call, *lever, int32) error { return nil }) })

	for kind, p := range map[string]actorrep.Procedure{"server": actorrep.ServerRPC[*lever, int](nil), "client": actorrep.ClientRPC0[*lever](nil),
		"multicast": actorrep.MulticastRPC0[*lever](nil)} {
		list := actorrep.RPCs{"Do": p}
		server := actorrep.NewServer(actorrep.Config{}).Register("lever", (*lever)(nil), list)
		client := actorrep.NewClient(actorrep.Config{}).Register("lever", (*lever)(nil), list)
		require.Equal(t, kind != "client", errors.Is(server, actorrep.ErrNoHandler), kind)
		require.Equal(t, kind != "server", errors.Is(client, actorrep.ErrNoHandler), kind)
	}
	own := actorrep.ClientRPC0[*lever](nil)
	server := actorrep.NewServer(actorrep.Config{})
	require.NoError(t, server.Register("lever", (*lever)(nil), actorrep.RPCs{"Own": own}))
	mine := &lever{}
	mine.SetOwner(server.Local())
	require.NoError(t, server.Spawn(mine))
	require.ErrorIs(t, own.Call(mine), actorrep.ErrNoHandler)
	server = actorrep.NewServer(actorrep.Config{})
	require.ErrorContains(t, server.Register("x", (*drone)(nil), actorrep.RPCs{"X": actorrep.ClientRPC(droneCall(1), actorrep.AnyClient)}), "AnyClient")
}

// TestGameIsFound: notifies and procedures of any world in the process find its game.
func TestGameIsFound(t *testing.T) {
	w, _, there := levers(t, 2)
	for range 3 {
		require.NoError(t, pull.Call(there[0]))
		for range 30 {
			w.Step()
		}
	}
	require.Equal(t, game{pulled: 3}, *w.Server.User.(*game))
	for _, line := range w.Lines {
		require.Equal(t, game{told: 3}, *line.World.User.(*game))
	}
}

// TestAllocsBorrowed: strings and slices of parameters arrive without allocation, are what was sent, and are gone when the next come.
func TestAllocsBorrowed(t *testing.T) {
	w, l, there := levers(t, 1)
	words := talk{"some text that is longer than sixty-four bytes, so that it has no place beside the reader", []byte{1, 2, 3},
		[]seat{{"first", 1}, {"second", -2}}, []string{"one", "", "three"}}
	step := func() {
		require.NoError(t, borrowed.Call(there[0], words))
		require.NoError(t, borrowedBack.Call(l, words))
		w.Rig.Step()
	}
	l.names, there[0].names = []string{}, []string{}
	for _, n := range []int{3, 2, 0, 1, 3} { // longer and shorter than what is kept
		old := words
		words.Seats, words.Lines, words.Raw = words.Seats[:min(n, 2)], words.Lines[:n], words.Raw[:n]
		step()
		words = old
	}
	for range 30 {
		w.Step()
	}
	for _, at := range []*lever{l, there[0]} {
		require.Len(t, at.names, 5)
		for i, n := range []int{3, 2, 0, 1, 3} {
			part := words.clone()
			part.Seats, part.Lines, part.Raw = part.Seats[:min(n, 2)], part.Lines[:n], part.Raw[:n]
			require.Equal(t, fmt.Sprint(part), at.names[i])
		}
		require.Equal(t, strings.Repeat("\x00", len(words.Text)), at.kept.Text, "what is kept without a copy shows at once")
		require.Equal(t, []seat{{}, {}}, at.kept.Seats)
		at.names = nil
	}
	for range 300 {
		step()
	}
	require.Zero(t, testing.AllocsPerRun(50, func() {
		for range 10 {
			step()
		}
	}))
}

// TestBorrowedMemoryIsBounded: many large calls at once don't leave their memory behind.
func TestBorrowedMemoryIsBounded(t *testing.T) {
	var m layout.Memory
	l, err := layout.BuildValue(reflect.TypeFor[talk]())
	require.NoError(t, err)
	big := talk{Text: strings.Repeat("x", 1000), Seats: make([]seat, 1000)}
	bw := bitio.NewWriter(make([]byte, 1<<16))
	l.WriteValue(bw, unsafe.Pointer(&big))
	require.NoError(t, bw.Err())
	var got talk
	l.ReadValue(bitio.NewReader(bw.Bytes(), bw.Len()), unsafe.Pointer(&got), &m)
	require.Equal(t, big.Seats, got.Seats)
	m.Keep()
	require.GreaterOrEqual(t, m.Size(), 1000+1000*int(unsafe.Sizeof(seat{})))
}
