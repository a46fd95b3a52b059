package spectate

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/replay"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

type hand struct {
	actorrep.Base
	At uint32 `net:""`
}

// TestDamagedBlock: a spectator whose server sends a recording that is damaged somewhere is told so at the latest when that place is to be played, and again each
// time. It doesn't wait for a rest that never comes.
func TestDamagedBlock(t *testing.T) {
	var file bytes.Buffer
	server := actorrep.NewServer(actorrep.Config{})
	require.NoError(t, server.Register("hand", (*hand)(nil)))
	h := &hand{}
	require.NoError(t, server.Spawn(h))
	rec, err := replay.Record(server, &file, replay.Config{Checkpoints: 4 * time.Second})
	require.NoError(t, err)
	const frame = 50 * time.Millisecond
	for i := range 400 {
		h.At++
		server.Step(time.Duration(i) * frame)
	}
	require.NoError(t, rec.Err())
	whole := file.Bytes()

	play := func(data []byte) (at uint32, first error) {
		world := actorrep.NewClient(actorrep.Config{})
		require.NoError(t, world.Register("hand", (*hand)(nil)))
		s, err := NewSpectator(world, 0)
		require.NoError(t, err)
		data = append([]byte{0}, data...)
		for i := range 600 {
			if n := min(len(data), 300); n > 0 {
				(&source{s: s}).ReceivedBunch((*channel.Channel)(nil), &bunch.In{Data: *bitio.NewReader(data[:n], 8*n)})
				data = data[n:]
			}
			if err := s.Step(time.Duration(i) * frame); err != nil {
				require.ErrorIs(t, s.Step(time.Duration(i)*frame), err, "again")
				return at, err
			}
			for a := range world.All {
				at = a.(*hand).At
			}
		}
		return at, nil
	}
	at, err := play(whole)
	require.NoError(t, err)
	require.Greater(t, at, uint32(350))
	for place := 20; place < len(whole)*9/10; place += 1 + len(whole)/60 {
		data := bytes.Clone(whole)
		data[place] ^= 0x10
		_, err := play(data)
		require.Error(t, err, "byte %d of %d", place, len(whole))
	}
}
