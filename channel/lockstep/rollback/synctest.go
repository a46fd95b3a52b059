package rollback

import (
	"bytes"
	"fmt"
)

// SyncTest checks that a game is deterministic. It plays the game alone for a number of frames. In each it goes back
// MaxRollback frames, simulates them again, and compares the states. An error that wraps ErrDesync names the first frame
// whose state differs. input writes a player's input in a frame to dst. Run it in a test of the game, with inputs that
// reach all of its code.
func SyncTest(cfg Config, game Game, frames int64, input func(player int, frame int64, dst []byte)) error {
	cfg, err := cfg.filled()
	switch {
	case err != nil:
		return err
	case game == nil || input == nil || frames < 1:
		return fmt.Errorf("%w: a SyncTest needs a Game, frames and inputs", ErrConfig)
	}
	depth := int64(cfg.MaxRollback)
	states := make([][]byte, depth+1) // before a frame
	bufs := make([][]byte, cfg.Players)
	for p := range bufs {
		bufs[p] = make([]byte, cfg.InputSize)
	}
	advance := func(f int64) {
		for p := range bufs {
			clear(bufs[p])
			input(p, f, bufs[p])
		}
		game.Advance(f, bufs)
	}
	var again []byte
	for f := range frames {
		st := &states[f%(depth+1)]
		*st = game.Save((*st)[:0])
		advance(f)
		from := max(0, f+1-depth)
		game.Load(states[from%(depth+1)])
		for g := from; g <= f; g++ {
			if again = game.Save(again[:0]); !bytes.Equal(again, states[g%(depth+1)]) {
				return fmt.Errorf("%w: the state before frame %d differs when simulated again from frame %d on", ErrDesync, g, from)
			}
			advance(g)
		}
	}
	return nil
}
