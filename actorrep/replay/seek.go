package replay

import (
	"fmt"
	"sort"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
)

// Seek shows another time of the recording, which is held within its bounds, and tells the game at once.
//
// A little forward it plays fast what lies between: then the game hears of spawns and of what went, and one notify
// for each field that changed, with its value before the seek. Otherwise it begins anew at the last checkpoint before
// that time: then all actors go and others come, with Destroyed and Spawned and no notifies, and what was torn off is gone,
// as it would be for a late joiner. Calls that lie between are never run.
func (r *Replay) Seek(t time.Duration) error {
	if r.world == nil {
		return ErrNotPlaying
	}
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
