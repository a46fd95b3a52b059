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
