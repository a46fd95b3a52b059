// Package bridge hands what packages of this module need of package actorrep, and games don't, from that one to these: actorrep's init sets
// each variable to a function of the type that is written beside it.
package bridge

import (
	"time"

	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

var (
	// BaseOf is the Base of an actor whose type isn't known.
	BaseOf any // func(a actorrep.Actor) *actorrep.Base
	// RelevancyIndex is the number that a world's Relevancy gave an actor, for its tables; 0 when it gave none, or the actor
	// was destroyed. SetRelevancyIndex gives it. The actor's GUID comes with it.
	RelevancyIndex    any // func(a actorrep.Actor) (int, netguid.GUID)
	SetRelevancyIndex any // func(a actorrep.Actor, i int)
	// BeforeValues has f called on a client right before values that came for an actor are set: what shows something else in the actor's
	// fields puts the server's values back.
	BeforeValues any // func(w *actorrep.World, f func(a actorrep.Actor))
	// WasSet reports, in a function of World.OnValues of a client's world with BeforeValues, whether what came has set the number at an offset of the actor's struct,
	// also to what it was.
	WasSet any // func(w *actorrep.World, offset uintptr) bool
	// Report gives an error to a world's Config.Failed.
	Report any // func(w *actorrep.World, err error)
	// Watch gives an error to a world's Config.Failed, once, when due was true in all Steps of a second, 30 at least: the game has forgotten
	// a call that something waits for.
	Watch any // func(w *actorrep.World, due func() bool, err error)
	// SetWaited notes how long the input of a peer's player that is being simulated has waited since it arrived, Waited is that; 0 while
	// none is.
	SetWaited any // func(p *actorrep.Peer, d time.Duration)
	Waited    any // func(p *actorrep.Peer) time.Duration
	// Classes is the registered classes of a world.
	Classes any // func(w *actorrep.World) []Class
	// IDs is a world's Config.IDs.
	IDs any // func(w *actorrep.World) netguid.Share
	// AddConnByHand is World.AddConn for a connection that sees what SetRelevant says, at once, and nothing else.
	AddConnByHand any // func(w *actorrep.World, conn channel.Conn) *actorrep.Peer
	// Record adds a recording to a server's world, as a connection that sees what filter lets through; nil is all. With
	// everything it has all values, whatever their conditions.
	Record any // func(w *actorrep.World, to Tape, filter func(a actorrep.Actor) bool, everything bool) Recording
	// Observe has an observer told of what a world sends and gets; nil is none.
	Observe any // func(w *actorrep.World, o Observer)
	// Corrected tells it that a prediction was corrected, by size times the tolerance of the number that was furthest off; 0 when the server
	// corrects it for another reason. off is the names of the numbers that were off. p is the player's connection on a server, nil on a client.
	Corrected any // func(w *actorrep.World, a actorrep.Actor, p *actorrep.Peer, size float64, off []string)
	// Silent makes, on any goroutine, client's worlds with the classes that a server's has now. They have no procedures, and tell the game nothing.
	Silent any // func(w *actorrep.World) func() (*actorrep.World, error)
	// Play makes a client's world one that is played into. It is nil when the world has a connection, or actors.
	Play any // func(w *actorrep.World) Player
)

// Observer is told, on the goroutine that ticks the world, of what is sent to a connection, and of what isn't. A client's world tells of values
// that it sets, calls and corrections only.
type Observer interface {
	// Stepping says that a server's Step has begun.
	Stepping()
	// Opening says that an actor's channel is about to be opened, with the values of units.
	Opening(conn channel.Conn, id netguid.GUID, ch uint32, units layout.Mask)
	// Carried says that the reliable bunch with a number in an actor's channel has the values of units, with calls or because they are large.
	Carried(conn channel.Conn, ch uint32, sequence int64, units layout.Mask)
	// Closing says that an actor's channel is closed now, and why.
	Closing(conn channel.Conn, ch uint32, reason channel.CloseReason)
	// Sent says that a packet carries records of changed values. records is valid until it returns.
	Sent(conn channel.Conn, packet int64, records []Sent)
	// Set says that a client's world has set units of an actor to values that came. They are numbered as the server numbers them.
	Set(conn channel.Conn, id netguid.GUID, units layout.Mask)
	// Unsaid says which units of an actor the game has set without the world knowing, so that nobody gets them: none, or those of an actor
	// that sleeps or that aren't compared by themselves. It is told of some actors in each Step, in turns.
	Unsaid(id netguid.GUID, class string, l *layout.Layout, units layout.Mask, sleeps bool)
	// Waits says why a connection has no actor, or not the values of some units, and that it has when the reason is 0. It is told of some pairs of a connection and
	// an actor in each Step, in turns, also of what it was told before. When it returns true, Why is called at once with the reason in words.
	Waits(wait Wait) bool
	Why(wait Wait, text string)
	// Room reports whether it is to be told of more of them in this Step.
	Room() bool
	// Waited says that all actors were looked at for a connection, since it was last called for that; nil is what holds for all.
	Waited(conn channel.Conn)
	// Called says that a procedure's call was sent, or came.
	Called(c Call)
	// Corrected says that an actor's prediction was corrected; see the variable of this name. off is valid until it returns.
	Corrected(conn channel.Conn, id netguid.GUID, size float64, off []string)
}

// Sent is a record of changed values.
type Sent struct {
	Actor  netguid.GUID
	Units  layout.Mask // of the actor that are in it
	Waited string      // why these had to wait, in words; "" when they didn't
}

// Wait is why a connection has no actor, or not the values of some units. An actor may have one that is about Some units besides one that isn't.
type Wait struct {
	Conn   channel.Conn // nil when it holds for all
	Actor  netguid.GUID
	Some   bool
	Units  layout.Mask // it is about; 0 is the whole actor
	Reason uint8       // an actorrep.Reason; 0 for none
}

// Call is a procedure's call between two ends.
type Call struct {
	Conn             channel.Conn
	Actor            netguid.GUID
	Packet           int64 // that it was first sent in; 0 for one that came
	Class, Procedure string
	Reliable, Came   bool
	Refused          string // why it doesn't run, in words; "" when it does
}

// Class is a registered class.
type Class struct {
	Name       string
	Layout     *layout.Layout
	Procedures []Procedure
}

// Procedure is one of a class.
type Procedure struct {
	Name, Kind string
	Reliable   bool
	Parameters *layout.Layout
}

// Kind is what a message of a recording says of an actor, by its place.
type Kind uint8

// The kinds of messages.
const (
	Open    Kind = iota // an opening bunch
	Values              // messages on the actor's channel
	Records             // a chunk of records; place 0
	Close               // 8 bits: the reason; after Dormancy the actor keeps its place
	Begin               // a checkpoint begins, of the places below
	Copy                // an actor as an opening bunch
	Sleeper             // the same, and it sleeps
	UpTo                // places below are copied
	End                 // all are
)

// MaxPlaces is the most actors of a recording at once. A client has memory for no more.
const MaxPlaces = 1 << 19

// MaxCopy is the most bytes that an actor's copy may take.
const MaxCopy = 4 << 20

// Tape takes what is recorded, in frames.
type Tape interface {
	// Begin says that a Step begins and reports whether it is a frame; ended that there will be no more.
	Begin(now time.Duration) (frame, ended bool)
	// Number is that of the frame, from 1.
	Number() uint32
	// Put adds a message to the frame, and reports whether there was room.
	Put(kind Kind, place uint32, data []byte, bits int) bool
	// Budget is the bits of values that the frame may still take, OpenRoom the actors that may be opened in it.
	Budget() int
	OpenRoom() int
	// End says that the frame has all of its Step.
	End()
	// Fail ends the recording.
	Fail(err error)
}

// Recording is a world's end of one.
type Recording interface {
	Peer() any // *actorrep.Peer
	Schema() (data []byte, bits int)
	// Frame is the world's, Opened the actors opened in the Tape's.
	Frame() uint32
	Opened() int
	// Places is one more than the last place. Copy puts a copy of the actor at a place on the tape, if there is an actor. It returns false
	// when the tape had no room.
	Places() uint32
	Copy(place uint32) (copied, ok bool)
	// Split keeps records of places from these on apart from those before; 0 is none.
	Split(from, until uint32)
	// Step records what there is now, Remove ends the recording.
	Step()
	Remove()
}

// Player is a client's world that is played into.
type Player interface {
	// Describe takes the classes of a recording. Without ok it doesn't describe any; an error may name what doesn't go with ours.
	Describe(r *bitio.Reader) (ok bool, err error)
	// Frame says from which of the world's Steps the following messages are.
	Frame(low uint32)
	// Message takes in an Open, Values, a Close, a Copy or a Sleeper.
	Message(kind Kind, place uint32, r *bitio.Reader) error
	// Records takes in a chunk of records; FirstPlace is that of the first.
	Records(in *bunch.In) error
	FirstPlace(r bitio.Reader) (uint32, error)
	// Received counts a frame.
	Received()
	// Reset takes all actors away, ForgetCalls drops the calls that haven't run.
	Reset()
	ForgetCalls()
}
