package rollback

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// still is a game in which nothing happens.
type still struct{}

// Save is rollback's.
func (still) Save(dst []byte) []byte { return dst }

// Load is rollback's.
func (still) Load([]byte) {}

// Advance is rollback's.
func (still) Advance(int64, [][]byte) {}

// nowhere is a Transport.
type nowhere struct{}

// Send is lockstep's.
func (nowhere) Send(time.Duration, []byte) error { return nil }

// TestForgedInputs: nobody can give another player's inputs while that one plays, nor this machine's; of one that is being dropped anybody can.
func TestForgedInputs(t *testing.T) {
	for _, c := range []struct {
		of       int
		dropping byte
		taken    bool
	}{{2, 0, true}, {1, 0, false}, {0, 0, false}, {0, 1 << 0, false}, {1, 1 << 1, true}} {
		s, err := New(Config{Players: 3, InputSize: 1}, still{})
		require.NoError(t, err)
		require.NoError(t, s.Connect(1, nowhere{}))
		require.NoError(t, s.Connect(2, nowhere{}))
		b := binary.LittleEndian.AppendUint32([]byte{typePlay, 2}, s.agreement)
		b = append(b, 0, 0, c.dropping, 0, 0, 0, 0) // frame, lead, dropping, inputs of three, check
		b = append(b, byte(c.of), 0, 1, 0, 77)      // of frame 0, one input, another than before
		if err := s.Receive(0, 2, b); c.taken {
			require.NoError(t, err, "%+v", c)
			require.EqualValues(t, 1, s.players[c.of].inputs.next)
			continue
		} else {
			require.ErrorIs(t, err, ErrMalformed, "%+v", c)
		}
		require.Zero(t, s.players[c.of].inputs.next, "%+v", c)
		require.Zero(t, s.dropping)
	}
}

// mailbox is a Transport that keeps the last packet.
type mailbox struct{ last []byte }

// Send is lockstep's.
func (m *mailbox) Send(_ time.Duration, p []byte) error {
	m.last = append(m.last[:0], p...)
	return nil
}

// TestLiarThatIsDropped: a player whom the others have dropped ends the game of none of them, whomever it says to have dropped.
func TestLiarThatIsDropped(t *testing.T) {
	for players := 3; players <= MaxPlayers; players++ {
		for lie := range 1 << players {
			for local := 1; local < players; local++ {
				s, err := New(Config{Players: players, Local: local, InputSize: 1}, still{})
				require.NoError(t, err)
				require.NoError(t, s.Connect(0, nowhere{}))
				require.NoError(t, s.Drop(0))
				b := binary.LittleEndian.AppendUint32([]byte{typePlay, 0}, s.agreement)
				b = append(b, 0, 0, byte(lie))
				b = append(b, make([]byte, players+1)...)
				_ = s.Receive(0, 0, b)
				require.NoError(t, s.Err(), "%d of %d: %b", local, players, lie)
			}
		}
	}
}

// TestOwnInputsAreNotForwarded: what another has of a dropped player's inputs, and that one doesn't know of, isn't sent to it: it would refuse the packet, and
// wouldn't know that it is dropped.
func TestOwnInputsAreNotForwarded(t *testing.T) {
	var to mailbox
	s, err := New(Config{Players: 3, Local: 1, InputSize: 1}, still{})
	require.NoError(t, err)
	require.NoError(t, s.Connect(0, &to))
	require.NoError(t, s.Connect(2, nowhere{}))
	own := binary.LittleEndian.AppendUint32([]byte{typePlay, 0}, s.agreement)
	require.NoError(t, s.Receive(0, 0, append(own, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 77))) // it has one input, and sends that
	other := binary.LittleEndian.AppendUint32([]byte{typePlay, 2}, s.agreement)
	require.NoError(t, s.Receive(0, 2, append(other, 0, 0, 1<<0, 0, 0, 0, 0, 0, 1, 2, 0, 78, 79))) // has dropped it, and has two more
	require.EqualValues(t, 3, s.players[0].inputs.next)
	s.Tick(time.Second)
	dropped, err := New(Config{Players: 3, InputSize: 1}, still{})
	require.NoError(t, err)
	require.NoError(t, dropped.Connect(1, nowhere{}))
	dropped.players[0].inputs.next = 3
	for now := time.Second; now < 2*time.Second; now += 100 * time.Millisecond {
		require.NoError(t, dropped.Receive(now, 1, to.last))
	}
	require.ErrorIs(t, dropped.Err(), ErrDropped)
}

// out is a packet of a player who says that these are dropped, and that all who are left with it have done so.
func out(s *Session, from int, dropped byte) []byte {
	b := append(binary.LittleEndian.AppendUint32([]byte{typePlay, byte(from)}, s.agreement), 0, 0, dropped|1<<from)
	return append(b, make([]byte, s.cfg.Players+1)...)
}

// TestDropIsFinal: a player that was given to Drop doesn't end the game of who did that, whoever else is left, whatever its number is and whatever it says.
func TestDropIsFinal(t *testing.T) {
	for players := 2; players <= 4; players++ {
		for lie := range 1 << players {
			for gone := range 1 << players {
				s, err := New(Config{Players: players, Local: 1, InputSize: 1}, still{})
				require.NoError(t, err)
				for p := range players {
					if p != 1 {
						require.NoError(t, s.Connect(p, nowhere{}))
					}
					if p != 1 && gone>>p&1 != 0 || p == 0 {
						require.NoError(t, s.Drop(p))
					}
				}
				for now := range time.Duration(20) {
					require.NoError(t, s.Receive(now*time.Second/4, 0, out(s, 0, byte(lie))))
				}
				require.NoError(t, s.Err(), "%d players, %b gone: %b", players, gone, lie)
			}
		}
	}
}

// TestWordOfOneWhoIsOut: what was said before its sender was out itself ends nobody's game, however much of it has waited; who hears it says of nobody that it
// is out, until it knows. It knows within a second, if it is said on and on, and in any case by its ninth tick.
func TestWordOfOneWhoIsOut(t *testing.T) {
	for _, c := range []struct {
		every, until, out time.Duration // when it is said, and when it is out then
	}{{time.Hour, time.Second, 0}, {100 * time.Millisecond, 700 * time.Millisecond, 0}, {100 * time.Millisecond, 2 * time.Second, 800 * time.Millisecond},
		{time.Second, 4 * time.Second, time.Second}, {20 * time.Millisecond, 740 * time.Millisecond, 0}, {3500 * time.Millisecond, 30 * time.Second, 0}} {
		var to mailbox
		s, err := New(Config{Players: 3, Local: 2, InputSize: 1}, still{})
		require.NoError(t, err)
		require.NoError(t, s.Connect(0, nowhere{}))
		require.NoError(t, s.Connect(1, &to))
		require.NoError(t, s.Receive(0, 1, out(s, 1, 0)))
		require.NoError(t, s.Receive(0, 0, out(s, 0, 0)))
		require.NoError(t, s.Receive(0, 1, out(s, 1, 0b001))) // both have dropped 0
		said := time.Duration(0)
		for now := time.Duration(0); now <= c.until; now += 10 * time.Millisecond {
			if now%c.every == 0 {
				for range 100 {
					require.NoError(t, s.Receive(now, 0, out(s, 0, 0b110)))
					require.NoError(t, s.Receive(now, 1, out(s, 1, 0b101)))
				}
				said = now
			} else {
				require.NoError(t, s.Receive(now, 1, out(s, 1, 0b001)))
			}
			if c.out > 0 && now >= c.out {
				require.ErrorIs(t, s.Err(), ErrDropped, "%+v", c)
				break
			}
			require.NoError(t, s.Err(), "%+v: at %v", c, now)
			s.Tick(now)
			if since := now - said; since < 3*time.Second || since > 3*time.Second+2*s.cfg.FrameTime {
				require.Equal(t, since > 3*time.Second, to.last[8]>>2&1 != 0, "%+v: at %v", c, now)
			}
		}
	}
	s := lied(t, nil)
	for tick := range time.Duration(slowly + 1) { // a page that isn't shown
		require.NoError(t, s.Err())
		s.Tick(tick * time.Minute)
		require.NoError(t, s.Receive(tick*time.Minute, 1, out(s, 1, 0b01)))
	}
	require.ErrorIs(t, s.Err(), ErrDropped)
}
