package travel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/bunchnet/bunchnet/actorrep"
)

// Level is the actor that names the server's current level. The package spawns it. Recordings have it too.
type Level struct {
	actorrep.Base
	// Map is the name given to the last To. Number counts the calls of To.
	Map    string `net:"cap=256"`
	Number uint32 `net:""`
	// Sum is a checksum of both. Under packet loss a client may get values that were set at different times; Sum detects
	// that.
	Sum uint32 `net:""`

	server *Server
}

// set sets both values and their sum.
func (l *Level) set(m string, number uint32) { l.Map, l.Number, l.Sum = m, number, sum(m, number) }

// whole reports whether both values are of the same call of To.
func (l *Level) whole() bool { return l.Sum == sum(l.Map, l.Number) }

func sum(m string, number uint32) uint32 {
	h := fnv.New32a()
	_, _ = h.Write(binary.LittleEndian.AppendUint32([]byte(m), number))
	return h.Sum32()
}

// MaxMap is the most bytes of a level's name.
const MaxMap = 256

// ErrMap: the name of a level is too long, or isn't UTF-8.
var ErrMap = fmt.Errorf("travel: the name of a level is UTF-8 of %d bytes at most", MaxMap)

// ErrConfig is wrapped by errors of NewServer and NewClient.
var ErrConfig = errors.New("travel: config")

var errNoStep = fmt.Errorf("%w: there is a level, but the game never calls Step of its travel.Server or Client; call it each tick, on a server before World.Step, on a client after it", ErrConfig)

// className is the name of Level's class.
const className = "travel.Level"

// ready is a client's call when it has loaded the level of that number.
var ready = actorrep.ServerRPC[*Level, uint32](nil, actorrep.Reliable, actorrep.AnyClient, actorrep.RateLimit(5, 50))

func init() {
	ready.Handle(func(c actorrep.Call, l *Level, number uint32) error {
		if l.server != nil {
			l.server.ready(c.Peer, number)
		}
		return nil
	})
}

func register(w *actorrep.World) error {
	if err := w.Register(className, (*Level)(nil), actorrep.AlwaysRelevant(), actorrep.RPCs{"Ready": ready}); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return nil
}
