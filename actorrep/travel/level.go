package travel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/bunchnet/bunchnet/actorrep"
)

// Level is the actor that says which level the server plays. The package spawns it; recordings have it too.
type Level struct {
	actorrep.Base
	// Map is what To was given, Number how often it was called.
	Map    string `net:"cap=256"`
	Number uint32 `net:""`
	// Sum is a checksum of both: when packets are lost, values that were set at different times may come together.
	Sum uint32 `net:""`

	server *Server
}

// set has both be news together.
func (l *Level) set(m string, number uint32) { l.Map, l.Number, l.Sum = m, number, sum(m, number) }

// whole reports whether both are of the same call of To.
func (l *Level) whole() bool { return l.Sum == sum(l.Map, l.Number) }

func sum(m string, number uint32) uint32 {
	h := fnv.New32a()
	_, _ = h.Write(binary.LittleEndian.AppendUint32([]byte(m), number))
	return h.Sum32()
}

// MaxMap is the bytes of a Map at most.
const MaxMap = 256

// ErrMap is a name of a level that is too long, or no UTF-8.
var ErrMap = fmt.Errorf("travel: the name of a level is UTF-8 of %d bytes at most", MaxMap)

// ErrConfig is what NewServer and NewClient wrap.
var ErrConfig = errors.New("travel: config")

// className is the Level's at both ends.
const className = "travel.Level"

// ready is a client's word that it has loaded the level of that number.
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
