package netconn

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/netconn/handler/coding"
)

// Coding repairs lost packets without a retransmission (forward error correction). Packets carry repair symbols, which are computed from
// the packets before them; see netconn/handler/coding. The receiver processes a repaired packet before the packet that brought the symbol.
// It then acks the repaired packet, and its unreliable bunches are delivered too. Both ends must set it. They tell each other in datagrams
// of 4 bytes when the connection begins, and use it from then on. It is for links without packet handlers, and not for Unreal's protocols.
// The zero value is off.
//
// Symbols are sent in the unused room of packets, or in packets of their own when the covered packets are too large for that. Reliable
// bunches that wait come before them. They use the controller's budget while there is any, so Conn.IsNetReady refuses the bunches of a game
// that needs more than 1/(1+Repairs) of it, and data that can wait, such as blocks, comes after them. While the next symbol may repair
// missing packets, the packets after them are held back for the usual time between two symbols, at most 50 ms, whatever
// Config.ReorderWindow is. Their reliable bunches aren't held back.
//
// A symbol is as long as the longest packet that it covers. So what a tick sends leaves in up to five packets when it is a fifth more than usual: the mean of the
// last 16 ticks or so. Losses in bursts are the exception, as such packets would be lost together.
//
// Where more than a fifth has been lost for 10 s, and symbols didn't repair it all, some packets leave without symbols, to see whether these fill the path. Where only packets with symbols get lost, none
// leave for a minute.
//
// Coding takes 40 bytes of each packet. Config.MaxMemory must be at least eight times the memory that both directions need: 600 kB with
// packets of 1024 bytes.
type Coding struct {
	// Repairs is the repair symbols for each packet with bunches, 0 to 3; it need not be whole. A symbol is about as long as the largest of
	// the packets that it covers. Default 0: off.
	Repairs float64
	// Adaptive sends only as many as the measured loss asks for, up to Repairs: none on a path that loses nothing, nor with Repairs 0. The loss is a
	// moving average over 1024 packets, so that symbols leave for up to some 5000 packets after the last loss.
	Adaptive bool
}

func (c *Coding) on() bool { return c.Repairs != 0 }

// codingBytes is what coding takes of a packet: what the header of an empty packet with some acks, and the trailer, have more than
// the header that symbols leave out.
const codingBytes = 40

func (c *Config) validateCoding() error {
	need := c.codingMemory()
	switch {
	case !c.Coding.on():
		return nil
	case !(c.Coding.Repairs > 0 && c.Coding.Repairs <= coding.MaxSymbols):
		return fmt.Errorf("%w: Coding.Repairs %v must be from 0 to %d", ErrConfig, c.Coding.Repairs, coding.MaxSymbols)
	case c.Protocol.Unreal:
		return fmt.Errorf("%w: Coding isn't part of Unreal's wire; leave it off, or take netconn.Bunchnet", ErrConfig)
	case c.Handlers != nil:
		return fmt.Errorf("%w: Coding is for links without packet handlers; leave it off, or take another link", ErrConfig)
	case c.MaxMemory < 8*need:
		return fmt.Errorf("%w: Coding keeps up to %d bytes; MaxMemory %d must be at least eight times that", ErrConfig, need, c.MaxMemory)
	}
	return nil
}

// codingMemory is the most that both directions keep.
func (c *Config) codingMemory() int {
	if !c.Coding.on() {
		return 0
	}
	packet := c.Protocol.Bunch.PacketBits() / 8
	return coding.EncoderBytes(packet) + coding.DecoderBytes(packet+codingBytes) // a peer may leave no room for trailers
}

// coder is a connection's coding in both directions.
type coder struct {
	cfg   Coding
	peer  bool // it understands coding
	hello hello

	// What is sent.
	enc       *coding.Encoder // nil until the first symbol is due
	credit    float64         // symbols that are owed
	uncovered int             // packets with bunches since the last symbol
	full      bool            // the last packet had no room for one
	alone     bool            // the packet under construction is for symbols alone
	lengths   lengths
	queue     pathQueue
	blame     blame
	repaired  lastIDs // ours that the peer repaired

	// What is received.
	dec        *coding.Decoder // nil until the first symbol comes
	heard      int64           // the packet that is being processed, or was last
	lastSymbol time.Duration
	gap        time.Duration // between packets with symbols, smoothed
	tell       telling
}

func newCoder(c *Config) *coder {
	if !c.Coding.on() {
		return nil
	}
	k := &coder{cfg: c.Coding}
	k.hello.buf = make([]byte, c.Headroom, c.Headroom+coding.HelloBytes+c.Tailroom)
	return k
}
