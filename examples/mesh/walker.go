package main

import (
	"encoding/json"
	"math/rand/v2"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/mesh"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

// The plane, and how it is divided. Zones are named a1 to d2. By its hysteresis a zone's quarters are not split again.
const (
	cell       = 100.0
	columns    = 4
	rows       = 2
	margin     = 30.0
	hysteresis = 7.0

	servers = 4
	step    = 50 * time.Millisecond // a tick of a server and of the bots
	stride  = 1.5                   // of a walker in a tick
	lease   = 2 * time.Second
	spread  = time.Second
	strays  = 4 // walkers of a zone at the beginning that are nobody's
)

// plan is the zones. Each server begins with a column.
func plan() mesh.Table {
	t := mesh.Table{Cell: cell, Columns: columns}
	for row := range rows {
		for column := range columns {
			t.Servers = append(t.Servers, zoneName(column, row))
		}
	}
	return t
}

func zoneName(column, row int) string { return string([]byte{'a' + byte(column), '1' + byte(row)}) }

// fewest is the fewest players there may be: of fewer, those who meet by chance are a crowd as well, and zones are split where nobody gathers.
const fewest = 8

// splitAt is what a zone weighs that is split: three quarters of what the crowd weighs, in which a player has a third of the others near it. What is merged weighs half of that at most.
func splitAt(players int) float64 {
	n := 0.75 * float64(players)
	return 0.75 * n * (1 + n/3)
}

// weight is what a walker costs the server that plays it: a player's has a connection, and is told of those that are near it. It looks at what is replicated, as the walker may be another server's still.
func (s *server) weight(a mesh.Actor) float64 {
	w := a.(*Walker)
	if w.Player == 0 {
		return 0.5
	}
	n := 0.0
	for o := range s.world.All {
		if o, is := o.(*Walker); is && o.Player != 0 && max(o.X-w.X, w.X-o.X, o.Y-w.Y, w.Y-o.Y) < margin {
			n++
		}
	}
	return n
}

// Walker is an actor: a player's, or a stray.
type Walker struct {
	mesh.Body
	X      float64 `net:"q=0.01"`
	Y      float64 `net:"q=0.01"`
	Player uint32  `net:""` // 0: it is nobody's
	Who    uint64  `net:""` // the start of the server that has changed it last, and in which epoch

	toX, toY float64
	kept     bool // the store has it
	account  account
	book     mesh.Book
	released uint32 // the epoch for who plays it next
	to       string // where its player travels
}

func (w *Walker) Location() (x, y, z float64) { return w.X, w.Y, 0 }

// Dealings implements mesh.Dealer.
func (w *Walker) Dealings() *mesh.Book { return &w.book }

// who says which server plays an actor in which epoch, in one field, so that a client gets both at once.
func who(start int, epoch uint32) uint64 { return uint64(start)<<32 | uint64(epoch) }

// playerActor is the id of a player's walker: of a share of ids that no server gives. So a player has one walker, whoever makes it: of two the store takes one.
func playerActor(player uint32) netguid.GUID { return netguid.GUID(2 * netguid.MaxServers * player) }

// playerOf is the player whose walker has the id.
func playerOf(id netguid.GUID) uint32 { return uint32(id) / (2 * netguid.MaxServers) }

// shareOf is the ids that a start of a server gives.
func shareOf(start int) netguid.Share {
	return netguid.Share{Server: uint32(start), Servers: netguid.MaxServers}
}

// walk goes on.
func (w *Walker) walk(rng *rand.Rand) {
	dx, dy := w.toX-w.X, w.toY-w.Y
	if dx*dx+dy*dy < 2*stride*stride {
		if w.Player == 0 {
			w.toX, w.toY = columns*cell*rng.Float64(), rows*cell*rng.Float64()
		}
		return
	}
	w.X += min(max(dx, -stride), stride)
	w.Y += min(max(dy, -stride), stride)
}

// state is what goes with a walker to another server, and what the store has.
type state struct {
	X, Y, ToX, ToY float64
	Player         uint32
	Account        account
	Book           []byte
	Epoch          uint32 // of a player's that travels
}

func (w *Walker) save() state {
	return state{X: w.X, Y: w.Y, ToX: w.toX, ToY: w.toY, Player: w.Player, Account: w.account, Book: w.book.Append(nil)}
}

func (s state) encode() []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // there is nothing that JSON can't have
	}
	return b
}

func decodeState(b []byte) (s state, err error) {
	err = json.Unmarshal(b, &s)
	return s, err
}

func (w *Walker) load(s state) error {
	if _, err := w.book.Read(s.Book); err != nil {
		return err
	}
	w.X, w.Y, w.toX, w.toY, w.Player, w.account = s.X, s.Y, s.ToX, s.ToY, s.Player, s.Account
	w.kept, w.released, w.to = true, 0, ""
	return nil
}

// register makes the world know walkers.
func register(w *actorrep.World) error {
	return w.Register("Walker", (*Walker)(nil), actorrep.AlwaysRelevant())
}

// serverConfig is what a game server is told.
type serverConfig struct {
	Number, Start int
	ID            string
	Key           [32]byte // of connect tokens
	MeshKey       [32]byte
	URL           string   // of NATS
	Zones         []string // that it takes at first
	Away          time.Duration
	Split         float64 // KeeperConfig.Split
}

// peer is a game server as the others know it.
type peer struct {
	Number, Start int
	ID            string
	Game, Road    string // its addresses for clients, and for servers
}

// order is what the first process tells a game server while it runs.
type order struct {
	Peers []peer `json:",omitempty"`
	Cuts  *cuts  `json:",omitempty"`
	Leave bool   `json:",omitempty"`
}

// span is for how long a server has played an actor in one epoch, by the machine's clock, in nanoseconds.
type span struct {
	Actor, Epoch uint32
	First, Last  int64
}

// dot is an actor of a server's.
type dot struct {
	Actor, Player uint32
	X, Y          float64
}

// report is what a game server tells the first process.
type report struct {
	Start     int
	Peer      *peer       `json:",omitempty"` // it has begun
	Epoch     uint64      // of its table; 0: it hasn't one yet
	Table     *mesh.Table `json:",omitempty"` // when it is another one than before
	Plays     []uint32    // players
	Dots      []dot
	Spans     []span
	Unsettled int  // deals
	Held      bool // it has had its lease
	Away      bool // it plays on without the store
	Over      bool // its lease is over
	Late      time.Duration
	Given     uint64
	Travels   uint64
	Restored  uint64
	Steps     uint64 // of actors
	Wrong     string `json:",omitempty"`
}
