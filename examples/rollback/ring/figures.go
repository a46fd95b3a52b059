package ring

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// tick is how finely time passes.
const tick = 2 * time.Millisecond

// Options is what a game is played with.
type Options struct {
	Seed    uint64
	Seconds int
	Loss    float64 // percentage of packets
}

// Figures is what a game was like.
type Figures struct {
	Felt        time.Duration // mean, from a key to its effect on the own player
	Still       float64       // share of the frames that came late
	Jumps       float64       // corrections that were seen, a second
	MeanJump    float64       // pixels
	LargestJump int           // pixels
	Deepest     int           // frames simulated again at once
}

// watch notes what a player sees.
type watch struct {
	hands      hands
	pressed    byte // the newest key
	pressedAt  time.Duration
	waiting    bool // for it to be felt
	felt       time.Duration
	feltN      int
	frames     int // that were due
	late       int
	jumps      []float64
	drawn      fighter // the other player, and of which frame
	drawnFrame int64
}

func newWatch(seed uint64, p int) *watch {
	return &watch{hands: hands{rng: rand.New(rand.NewPCG(seed, uint64(p)))}, drawnFrame: -1}
}

// press is the key of a frame.
func (w *watch) press(now time.Duration, r *ring, p int) byte {
	key := w.hands.press(r, p)
	if key != w.pressed && !w.waiting {
		w.waiting, w.pressedAt = true, now
	}
	w.pressed = key
	return key
}

// saw takes the own player's keys of a frame that is drawn for the first time, as the game has them.
func (w *watch) saw(now time.Duration, keys byte) {
	if w.waiting && keys == w.pressed {
		w.waiting = false
		w.felt += now - w.pressedAt
		w.feltN++
	}
}

// corrected takes where the other player was in the frame that was drawn last, as it is known now.
func (w *watch) corrected(f *fighter) {
	d := math.Hypot(float64(f.x-w.drawn.x), float64(f.y-w.drawn.y)) / pixel
	if d >= 1 {
		w.jumps = append(w.jumps, d)
	}
}

// add adds a player's view to the figures of a game.
func (f *Figures) add(w *watch, seconds float64) {
	f.Felt += w.felt / time.Duration(max(w.feltN, 1)) / 2
	f.Still += float64(w.late) / float64(max(w.frames, 1)) / 2
	f.Jumps += float64(len(w.jumps)) / seconds / 2
	for _, d := range w.jumps {
		f.MeanJump += d / float64(len(w.jumps)) / 2
		f.LargestJump = max(f.LargestJump, int(math.Ceil(d)))
	}
}

// path is one direction of the network, a Transport of both games.
type path struct{ link *netsim.Link }

func newPath(o Options, rtt time.Duration, seed uint64) (path, error) {
	link, err := netsim.NewLink(netsim.Settings{Loss: o.Loss, LagMin: rtt/2 - 5*time.Millisecond, LagMax: rtt/2 + 5*time.Millisecond}, seed)
	return path{link}, err
}

// Send is lockstep's.
func (p path) Send(now time.Duration, b []byte) error {
	p.link.Push(now, b)
	return nil
}
