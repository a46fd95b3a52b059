package replay

import (
	"fmt"
	"sort"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
)

// Seek moves to another time of the recording, clamped to its bounds, and tells the game at once.
//
// For a short way forward it plays what lies between. The game is told of actors that appeared or disappeared, and gets
// one notify for each field that changed, with its value before the seek. Otherwise it starts at the last checkpoint
// before that time: all actors are destroyed and others spawned, with Destroyed and Spawned but no notifies. Actors that
// were torn off are gone, as for a client that joins late. Calls that lie between are never run.
func (r *Replay) Seek(t time.Duration) error {
	switch {
	case r.within:
		return ErrWithin
	case r.world == nil:
		return ErrNotPlaying
	}
	r.within = true
	defer r.leave()
	t = min(max(t, 0), r.file.duration)
	list := r.file.checkpoints
	i := sort.Search(len(list), func(i int) bool { return list[i].to > t }) - 1
	if r.err != nil || t < r.pos || i >= 0 && list[i].from > r.pos {
		r.to.Reset()
		r.err = nil
		r.rewind(r.file.begin)
		r.building, r.copying, r.upTo, r.until = i >= 0, false, 0, bridge.MaxPlaces
		if r.building {
			r.rewind(list[i].offset)
		}
	}
	r.pos, r.begun = t, false
	r.err = r.playUntil(t)
	if r.err == nil && r.building {
		r.err = fmt.Errorf("%w: a checkpoint without an end before %v", ErrCorrupt, t)
	}
	r.to.ForgetCalls()
	r.world.Step(r.pos)
	return r.err
}
