package channel

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
)

// TestSettingsAtTheirEnds: the least and the most of each number are settings, one beyond is an error that says so.
func TestSettingsAtTheirEnds(t *testing.T) {
	for _, c := range []struct {
		name        string
		least, most int
		set         func(c *Config, n int)
	}{
		{"MaxPacket", 256, maxPacket, func(c *Config, n int) { c.Protocol.MaxPacket = n }},
		{"HandlerBits", 0, 1024, func(c *Config, n int) { c.Protocol.HandlerBits = n }},
		{"SequenceBits", 3, 16, func(c *Config, n int) { c.Protocol.SequenceBits, c.ReliableBuffer = uint8(n), 2 }},
		{"MaxChannels", 1, 32767, func(c *Config, n int) { c.MaxChannels = n }},
		{"MaxQueuedControl", 1, 1 << 20, func(c *Config, n int) { c.MaxQueuedControl = n }},
		{"MaxMemory", minMaxMemory, math.MaxInt32, func(c *Config, n int) { c.MaxMemory = n }},
	} {
		for _, n := range []int{c.least - 1, c.least, c.most, c.most + 1} {
			if n < c.least-1 {
				continue // of 32 bits
			}
			cfg := Config{Protocol: bunch.Protocol{MaxPacket: 1024}}
			c.set(&cfg, n)
			err := cfg.Validate()
			if n >= c.least && n <= c.most || n == 0 { // 0 is the default
				require.NoError(t, err, "%s %d", c.name, n)
				continue
			}
			require.ErrorIs(t, err, ErrConfig, "%s %d", c.name, n)
			require.ErrorContains(t, err, fmt.Sprintf("must be from %d to %d", c.least, c.most), c.name)
		}
	}
}

// TestNamesLeaveRoom: Types whose longest name, with the handlers' bits, leaves a bunch no room in the smallest packets are refused when they are given.
func TestNamesLeaveRoom(t *testing.T) {
	for _, c := range []struct {
		packet, handlers, chars int
		fits                    bool
	}{{256, 1024, 64, false}, {300, 1024, 64, false}, {256, 1024, 1, true}, {256, 7, 64, true}, {576, 1024, 64, true}} {
		cfg := Config{Protocol: bunch.Protocol{MaxPacket: c.packet, HandlerBits: c.handlers}, Types: []Type{{Name: bunch.Name{Text: strings.Repeat("ж", c.chars)}}}}
		err := cfg.Validate()
		require.Equal(t, c.fits, err == nil, "%+v: %v", c, err)
		if !c.fits {
			require.ErrorIs(t, err, ErrConfig)
		}
	}
}

// TestLaterKeepsNothing: functions that have run are gone, and a Tick without any has nothing to do.
func TestLaterKeepsNothing(t *testing.T) {
	s := newStub(t, false, noControl)
	ran := 0
	for range 1000 {
		s.table.Later(func() { ran++ })
		s.m.Tick(0)
		s.m.RunLater()
		require.False(t, s.table.later)
	}
	require.Equal(t, 1000, ran)
	require.Less(t, cap(s.table.strange.later), 10)
	require.Less(t, cap(s.table.strange.running), 10)
	for _, list := range [][]later{s.table.strange.later, s.table.strange.running} {
		for _, f := range list[:cap(list)] {
			require.Nil(t, f.f)
		}
	}
}

// TestPacketBitsComeDown: the last SetPacketBits counts, and a packet with no room for two of the largest parts has payloads split as without it.
func TestPacketBitsComeDown(t *testing.T) {
	s := newStub(t, false, noControl)
	for _, bits := range []int{0, s.table.single, s.table.single + partHeader} {
		s.m.SetPacketBits(100_000)
		require.Equal(t, 100_000, s.table.packet)
		s.m.SetPacketBits(bits)
		require.Zero(t, s.table.packet, "%d", bits)
	}
}

// TestPartsFillPackets: a payload goes in the parts that fill the packets which SetPacketBits promises, as long as ReliableBuffer and MaxMemory have room for
// these, and else in the fewest.
func TestPartsFillPackets(t *testing.T) {
	for _, c := range []struct {
		reliable     bool
		buffer, size int
		finer        bool
	}{{true, 256, 32 << 10, true}, {false, 256, 32 << 10, true}, {true, 64, 32 << 10, true}, {true, 64, 43_000, true}, {true, 64, 44_000, false}, {true, 32, 28_000, false}} {
		s := newStub(t, false, func(cfg *Config) {
			noControl(cfg)
			cfg.Protocol.MaxPacket, cfg.ReliableBuffer, cfg.PartialReliableThreshold, cfg.MaxMemory = 1024, c.buffer, 1000, minMaxMemory
		})
		ch := s.open(stubGame)
		s.send(ch, 1)
		s.ackFrom(0)
		s.m.SetPacketBits(8*1439 - 309)
		fewest := s.table.parts(c.size * 8)
		want := s.table.cut(c.size*8, fewest)
		require.Greater(t, want, fewest)
		require.Equal(t, c.finer, !c.reliable || want <= s.table.maxOut, "%+v takes %d", c, want)
		if !c.finer {
			want = fewest
		}
		_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, c.size), Reliable: c.reliable})
		require.NoError(t, err)
		require.Len(t, s.sent, 1+want, "%+v", c)
	}
	s := newStub(t, false, func(cfg *Config) { noControl(cfg); cfg.Protocol.MaxPacket, cfg.ReliableBuffer = 1024, 64 })
	s.m.SetPacketBits(8*1439 - 309)
	size := 1
	for s.table.cut(size*8, s.table.parts(size*8)) < s.table.maxOut {
		size++
	}
	require.Less(t, s.table.parts(size*8), s.table.maxOut)
	ch := s.open(stubGame)
	s.send(ch, 1)
	s.ackFrom(0)
	_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, size), Reliable: true})
	require.NoError(t, err)
	require.Len(t, s.sent, 1+s.table.maxOut, "all that ReliableBuffer has")
}

// TestReleaseSentNoMoreThanHeld: the count of what a handler keeps can't go below nothing.
func TestReleaseSentNoMoreThanHeld(t *testing.T) {
	s := newStub(t, false, noControl)
	ch, other := s.open(stubGame), s.open(stubGame)
	used, _ := s.table.Unreleased()
	require.NoError(t, ch.HoldSent(100))
	require.NoError(t, other.HoldSent(100))
	ch.ReleaseSent(-5)
	ch.ReleaseSent(1000)
	got, _ := s.table.Unreleased()
	require.Equal(t, used+100, got)
}

// TestPoolTicksOncePerPeriod: a tick says when the next one has something to do.
func TestPoolTicksOncePerPeriod(t *testing.T) {
	p := Pool{trimmed: -time.Hour}
	require.Equal(t, time.Second+trimPeriod, p.tick(time.Second))
	require.Equal(t, time.Second+trimPeriod, p.tick(2*time.Second))
}

// TestIndicesTakeABitEach: what notes the indices in use doesn't grow beyond a bit for each index.
func TestIndicesTakeABitEach(t *testing.T) {
	var table Table
	table.setInUse(1000, true)
	require.Len(t, table.inUse, 1000/64+1)
	table.setInUse(1000, false)
	require.Zero(t, table.inUse[1000/64])
}

// TestFitsLeavesRoomForBegunPayloads: what is held of payloads that have begun leaves the next one that is served its room.
func TestFitsLeavesRoomForBegunPayloads(t *testing.T) {
	s := newStub(t, true, noControl)
	room := s.table.cfg.MaxMemory/2 - s.table.rest()
	s.table.held, s.table.joining = room-100, room-100
	require.True(t, s.table.fits(100))
	require.False(t, s.table.fits(101))
}

// refuser is a handler that refuses what says "no".
type refuser struct{ *stub }

func (r refuser) ReceivedBunch(ch *Channel, in *bunch.In) {
	r.stub.ReceivedBunch(ch, in)
	if r.got[len(r.got)-1] == "no" {
		ch.Refuse()
	}
}

func (r refuser) ReceivedLate(ch *Channel, in *bunch.In) { r.ReceivedBunch(ch, in) }

// TestRefuseIsOfOneBunch: Refuse has the packet of the bunch that was just given refused, in a channel that is open or closing, and none after it.
func TestRefuseIsOfOneBunch(t *testing.T) {
	for _, closing := range []bool{false, true} {
		s := newStub(t, true, noControl)
		ch, err := s.table.Open(stubGame, refuser{s})
		require.NoError(t, err)
		s.send(ch, 1)
		s.ackFrom(0)
		if closing {
			require.NoError(t, ch.Close(bunch.Destroyed))
		}
		for i, data := range []string{"yes", "no", "no", "yes"} {
			nak, err := s.receiveIn(int64(20+i), bunch.Header{ChIndex: ch.Index()}, data)
			require.NoError(t, err)
			require.Equal(t, data == "no", nak, "%s, closing %v", data, closing)
		}
		require.EqualValues(t, 2, s.table.Counters.Refused)
	}
}

// TestWithoutHandlerIsCounted: a channel that Accept gives no handler is counted once, and so is each of its bunches.
func TestWithoutHandlerIsCounted(t *testing.T) {
	s := newStub(t, true, func(c *Config) { noControl(c); c.Types[0].Accept = nil })
	s.accepts(header(1, 1, stubGame, opening), "one")
	s.accepts(header(1, 2, stubGame, nil), "two")
	require.EqualValues(t, 1, s.table.Counters.NoHandler)
	require.EqualValues(t, 2, s.table.Counters.Ignored)
}

// TestLargeReliableIsNotPromoted: only what was unreliable is promoted, and holds up what comes behind it.
func TestLargeReliableIsNotPromoted(t *testing.T) {
	for _, reliable := range []bool{false, true} {
		s := newStub(t, false, noControl)
		ch := s.open(stubGame)
		s.send(ch, 1)
		_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 10_000), Reliable: reliable})
		require.NoError(t, err)
		require.Equal(t, !reliable, s.table.Counters.Promoted == 1)
		require.Equal(t, !reliable, s.sent[1].h.ReplicationPaused)
	}
}

// TestUnfinishedAreAllLookedAt: a channel that is closed with a bunch of which a part is missing leaves the others to be given up.
func TestUnfinishedAreAllLookedAt(t *testing.T) {
	s := newStub(t, true, noControl)
	for _, index := range []uint32{1, 3} {
		s.accepts(header(index, 1, stubGame, opening), "")
	}
	before := s.table.Held()
	for _, index := range []uint32{1, 3} {
		_, err := s.receiveIn(10, bunch.Header{ChIndex: index, Partial: true, PartialInitial: true}, string(make([]byte, 1000)))
		require.NoError(t, err)
	}
	s.accepts(header(1, 2, stubGame, func(h *bunch.Header) { h.Close = true }), "")
	_, err := s.receiveIn(12, bunch.Header{ChIndex: 3}, "x")
	require.NoError(t, err)
	require.Less(t, s.table.Held(), before)
	require.Empty(t, s.table.strange.unfinished)
}

// TestRefusedPartChangesNothing: the first part of an unreliable bunch opens a temporary channel, or is refused whole when there is no room for it.
func TestRefusedPartChangesNothing(t *testing.T) {
	refused := 0
	for slack := 0; slack < 8000; slack += 50 {
		s := newStub(t, true, noControl)
		s.accepts(header(1, 1, stubGame, opening), "")
		held := s.table.cfg.MaxMemory/2 - s.table.rest() - slack
		s.table.held, s.table.joining = held, held
		before := s.table.Counters
		nak, err := s.receiveIn(10, bunch.Header{ChIndex: 3, Name: stubGame, Open: true, Partial: true, PartialInitial: true}, string(make([]byte, 1000)))
		require.NoError(t, err)
		if !nak {
			require.NotNil(t, s.table.Channel(3))
			continue
		}
		refused++
		require.Nil(t, s.table.Channel(3))
		require.Equal(t, held, s.table.held)
		after := s.table.Counters
		require.Equal(t, [2]uint64{before.ChannelsOpened, before.ChannelsClosed}, [2]uint64{after.ChannelsOpened, after.ChannelsClosed}, "%d", slack)
	}
	require.Greater(t, refused, 10)
	require.Less(t, refused, 150)
}

// TestEarlyLeavesRoomForMissing: a bunch that comes early is kept only if those that are missing before it have room as well.
func TestEarlyLeavesRoomForMissing(t *testing.T) {
	kept := map[bool]int{}
	for slack := 0; slack < 60_000; slack += 997 {
		s := newStub(t, true, noControl)
		s.accepts(header(1, 1, stubGame, opening), "")
		s.accepts(header(1, 3, stubGame, nil), string(make([]byte, 1000)))
		cost := earlyBytes(false, bufferSize(1000))
		missing := s.table.Channel(1).rare.in.missing(102, 130, cost)
		require.Greater(t, missing, 20*cost)
		for s.table.fitsEarly(slack) {
			s.table.held += 256
		}
		fits := s.table.fitsEarly(cost + missing)
		nak, err := s.receiveIn(10, header(1, 30, stubGame, nil), string(make([]byte, 1000)))
		require.NoError(t, err)
		require.Equal(t, !fits, nak, "%d", slack)
		kept[!nak]++
	}
	require.Greater(t, min(kept[true], kept[false]), 5)
}

// TestEarlyBesideHandlers: while handlers hold most, early bunches may take an eighth, 48 KiB at most, if they leave as much free.
func TestEarlyBesideHandlers(t *testing.T) {
	for sixteenths, want := range map[int]float64{0: 12, 4: 8, 10: 2, 12: 2, 14: 1, 15: 0.5, 16: 0} {
		s := newStub(t, true, func(c *Config) { c.Types, c.MaxMemory = c.Types[1:], 512<<10 })
		most := s.table.maxHold()
		s.table.held += sixteenths * most / 16
		for s.table.fitsEarly(100) {
			s.table.holdEarly(100)
		}
		require.InDelta(t, want, float64(16*s.table.early)/float64(most), 0.1, "%d sixteenths held", sixteenths)
		require.True(t, s.table.fits(s.table.early) || sixteenths < 10, "%d sixteenths held: they leave as much free", sixteenths)
	}
}

// TestControlKeepsItsQueue: the control channel's queue, and what it needs until its open is acked, aren't given back.
func TestControlKeepsItsQueue(t *testing.T) {
	s := newStub(t, false, nil)
	for _, c := range []struct {
		queued, acked, kept bool
	}{{true, true, true}, {false, false, true}, {false, true, false}} {
		ch := &Channel{table: s.table, openAcked: c.acked, rare: new(rare)}
		if c.queued {
			ch.rare.queue = make([]bunch.Out, 1)
		}
		ch.dropRare()
		require.Equal(t, c.kept, ch.rare != nil, "%+v", c)
	}
}
