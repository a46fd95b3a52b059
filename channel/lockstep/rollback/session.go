package rollback

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/bits"
	"time"

	"github.com/bunchnet/bunchnet/channel/lockstep"
	"github.com/bunchnet/bunchnet/channel/lockstep/internal/clock"
)

// Session is one machine's part of a game. Not safe for concurrent use.
//
// Invariant: final <= frame <= final+MaxRollback; states holds every frame from final on that is simulated.
type Session struct {
	cfg       Config
	game      Game
	agreement uint32
	frame     int64 // the next to be simulated
	wrong     int64 // the first that was simulated with wrong inputs; frame or more when none was
	players   [MaxPlayers]player
	states    []state
	advancing [][]byte // inputs of the frame under way
	started   bool
	ticked    bool // now is of the caller's clock, which may begin anywhere
	err       error
	clock     clock.Clock
	now       time.Duration
	sentAt    time.Duration
	skipped   int64         // the frame at which the others were waited for last
	dropping  uint8         // players that are silent, a bit each
	given     uint8         // those of them that were given to Drop here
	outAt     time.Duration // when others first said that this machine's player is out, or it went on after it stood still
	outStill  int           // how often it has stood still since
	checks    [checksKept]check
	checked   int64 // the last frame with a check
	log       finalLog
	packet    []byte
	stats     Stats
}

// player is what is known of one.
type player struct {
	inputs    inputs
	transport lockstep.Transport // nil for this machine's own
	heard     time.Duration
	again     time.Duration // when it gets a packet although it isn't heard any more
	back      time.Duration // when something was heard of it last although it is dropped
	there     bool          // something was heard of it
	frame     int64
	next      [MaxPlayers]int64 // how far it has everybody's inputs
	onward    [MaxPlayers]int64 // see rest
	dropping  uint8             // whom it knows to be silent
	out       bool              // dropped: its inputs are zeros from frame inputs.next on
	left      bool              // it said that its game has ended, and needs nothing more
	lead      float64           // frames that we are ahead of it
	check     check
	desynced  bool
}

// longAgo is before all that any clock says.
const longAgo = time.Duration(math.MinInt64 / 2)

// state is a saved one.
type state struct {
	frame int64
	data  []byte
}

// Stats counts since New.
type Stats struct {
	Frames     uint64 // simulated for the first time
	Rollbacks  uint64 // times that it loaded an earlier state
	Again      uint64 // frames simulated again
	Deepest    int    // the most frames of one rollback
	Stalled    uint64 // Steps that waited for inputs
	Balanced   uint64 // Steps that skipped a frame, because the others were behind
	PacketsOut uint64
	BytesOut   uint64
	PacketsIn  uint64
	Refused    uint64 // packets that Receive returned an error for
	NotTaken   uint64 // packets that Transport.Send returned an error for
}

// New returns a Session at frame 0, with game in its present state. Errors wrap ErrConfig.
func New(cfg Config, game Game) (*Session, error) {
	cfg, err := cfg.filled()
	switch {
	case err != nil:
		return nil, err
	case game == nil:
		return nil, fmt.Errorf("%w: a Game is needed", ErrConfig)
	}
	s := &Session{cfg: cfg, game: game, agreement: cfg.agreement(), states: make([]state, cfg.MaxRollback+2), advancing: make([][]byte, cfg.Players),
		sentAt: longAgo, outAt: longAgo, packet: make([]byte, 0, cfg.MaxPacket), checked: -1}
	for i := range s.states {
		s.states[i].frame = -1
	}
	for p := range cfg.Players {
		s.players[p].inputs, s.players[p].again, s.players[p].back = newInputs(cfg.InputSize), longAgo, longAgo
	}
	s.log = newFinalLog(cfg.Players * cfg.InputSize)
	return s, nil
}

// Connect sets the transport to another player, or to a spectator: spectators' numbers begin at Players. Errors: ErrNoPlayer,
// or ErrConfig when the transport's packets are too small for one frame's inputs, as package link's may be for a spectator
// of many players.
func (s *Session) Connect(number int, t lockstep.Transport) error {
	need := packetHead + sectionHead + 1 + s.cfg.InputSize
	if number >= s.cfg.Players {
		need = watchHead + 2 + s.cfg.Players*s.cfg.InputSize
	}
	if room := maxPacket(s.cfg.MaxPacket, t); room < need {
		return fmt.Errorf("%w: the Transport takes packets of %d bytes, but one frame's inputs take %d", ErrConfig, room, need)
	}
	switch {
	case number >= s.cfg.Players && number < s.cfg.Players+MaxSpectators:
		s.log.watchers[number-s.cfg.Players] = watcher{transport: t, next: -1, again: longAgo}
		return nil
	case number < 0 || number >= s.cfg.Players || number == s.cfg.Local:
		return ErrNoPlayer
	}
	s.players[number].transport = t
	return nil
}

// Step simulates the next frame. input is this machine's player's; it takes effect Delay frames later. When Step reports
// false, no frame was simulated and input was not used: call it again with the then newest input. Errors: ErrInput, or
// ErrDropped, after which each Step returns it.
func (s *Session) Step(input []byte) (advanced bool, err error) {
	switch {
	case len(input) != s.cfg.InputSize:
		return false, ErrInput
	case s.err != nil:
		return false, s.err
	}
	s.goBack()
	final := s.final()
	switch {
	case !s.started:
		return false, nil
	case s.frame-final >= int64(s.cfg.MaxRollback):
		s.stats.Stalled++
		return false, nil
	case s.balance():
		s.stats.Balanced++
		return false, nil
	}
	for own := &s.players[s.cfg.Local].inputs; own.next <= s.frame+int64(s.cfg.Delay); {
		own.add(input)
	}
	s.save()
	s.checkFinal(final)
	s.keepFinal(final)
	s.advance(s.frame)
	if s.wrong == s.frame { // or else an Event of checkFinal's has dropped a player, whose inputs since are others
		s.wrong++
	}
	s.frame++
	s.stats.Frames++
	return true, nil
}

// final is the first frame of which an input isn't known.
func (s *Session) final() int64 {
	final := int64(1) << 62
	for p := range s.cfg.Players {
		if pl := &s.players[p]; !pl.out {
			final = min(final, pl.inputs.next)
		}
	}
	return min(final, s.frame)
}

// goBack simulates again what was simulated with wrong inputs.
func (s *Session) goBack() {
	if s.wrong >= s.frame {
		return
	}
	to := s.frame
	st := &s.states[s.wrong%int64(len(s.states))]
	if st.frame != s.wrong {
		panic("rollback: no state of a frame that isn't final") // the invariant
	}
	s.game.Load(st.data)
	depth := to - s.wrong
	for s.frame = s.wrong; s.frame < to; s.frame++ {
		if s.frame != s.wrong {
			s.save()
		}
		s.advance(s.frame)
	}
	s.wrong = to
	s.stats.Rollbacks++
	s.stats.Again += uint64(depth)
	s.stats.Deepest = max(s.stats.Deepest, int(depth))
}

// save keeps the state before the present frame.
func (s *Session) save() {
	st := &s.states[s.frame%int64(len(s.states))]
	st.frame, st.data = s.frame, s.game.Save(st.data[:0])
}

func (s *Session) advance(frame int64) {
	for p := range s.cfg.Players {
		in := &s.players[p].inputs
		s.advancing[p] = in.use(frame, s.input(p, frame))
	}
	s.game.Advance(frame, s.advancing)
}

// input is what a player does in a frame, as far as it is known.
func (s *Session) input(p int, frame int64) []byte {
	pl := &s.players[p]
	if pl.out && frame >= pl.inputs.next {
		return pl.inputs.zero
	}
	return pl.inputs.guess(frame)
}

// arrived takes an input of another player.
func (s *Session) arrived(p int, b []byte) {
	in := &s.players[p].inputs
	if f := in.next; f < s.frame && in.usedOther(f, b) {
		s.wrong = min(s.wrong, f)
	}
	in.add(b)
}

// Frame is the number of the next frame.
func (s *Session) Frame() int64 { return s.frame }

// Final is the first frame that isn't final: all inputs of the frames before are known.
func (s *Session) Final() int64 { return s.final() }

// Waiting is a mask of the players that Step waits for: their inputs are missing, or they haven't been heard yet.
func (s *Session) Waiting() (mask uint8) {
	for p := range s.cfg.Players {
		pl := &s.players[p]
		late := s.frame-pl.inputs.next >= int64(s.cfg.MaxRollback) || !s.started && !pl.there
		if p != s.cfg.Local && !pl.out && late {
			mask |= 1 << p
		}
	}
	return mask
}

// Active is a mask of the players that aren't dropped.
func (s *Session) Active() (mask uint8) {
	for p := range s.cfg.Players {
		if !s.players[p].out {
			mask |= 1 << p
		}
	}
	return mask
}

// SetDelay changes Config.Delay, in frames, 0 to 16. When it grows, the next input is repeated; when it shrinks, inputs are
// left out. The error is ErrConfig.
func (s *Session) SetDelay(frames int) error {
	if frames < 0 || frames > maxDelay {
		return fmt.Errorf("%w: Delay is %d, not 0 to %d", ErrConfig, frames, maxDelay)
	}
	s.cfg.Delay = frames
	return nil
}

// Err is ErrDropped once this machine's player is out or has left, or nil.
func (s *Session) Err() error { return s.err }

// Stats returns the counts so far.
func (s *Session) Stats() Stats { return s.stats }

func (s *Session) tell(e Event) {
	if s.cfg.Event != nil {
		s.cfg.Event(e)
	}
}

// others is a mask of the players to agree with.
func (s *Session) others() uint8 { return (1<<s.cfg.Players - 1) &^ s.dropping &^ (1 << s.cfg.Local) }

// checksum is a state's.
func checksum(b []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(b)
	return h.Sum64()
}

// lowest takes the lowest player off a mask.
func lowest(mask *uint8) int {
	p := bits.TrailingZeros8(*mask)
	*mask &= *mask - 1
	return p
}
