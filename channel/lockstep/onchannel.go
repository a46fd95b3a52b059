package lockstep

import (
	"errors"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// OnChannel is a Transport over a channel of a connection, and the channel's handler. It sends packets in unreliable
// bunches, since lockstep itself repeats what isn't acked. When its connection has ended it may be given a channel of the next one, and the Peer goes on
// without a new session, once the host's end has called Connect with the new channel's: so no command is lost.
type OnChannel struct {
	// Received gets each packet; hand it to Host.Receive or Peer.Receive. p is valid until it returns. It may be set after the channel was opened; without it the
	// connection ends when a packet comes.
	Received func(p []byte)

	ch  *channel.Channel
	buf []byte
}

// errInUse refuses a second channel for an OnChannel of one: packets of two players would be mixed.
var errInUse = errors.New("lockstep: it is the handler of another channel; give it this one when that is closed, and give each player one of its own")

// errNoReceived ends the connection where a packet would get lost, like all behind it.
var errNoReceived = errors.New("lockstep: a packet came, and OnChannel.Received is nil")

// Opened implements channel.Opener: it takes the channel and, at the end that opens it, sends the opening bunch. It is an error while
// there is another channel.
func (o *OnChannel) Opened(ch *channel.Channel) error {
	if o.ch != nil {
		return errInUse
	}
	o.ch = ch
	if !ch.OpenedLocally() {
		return nil
	}
	_, err := ch.SendBunch(&bunch.Out{Data: []byte{0}, Bits: 1, Reliable: true, NoMerge: true})
	return err
}

// Proven reports true: a connection's handshake has proved the peer's address.
func (o *OnChannel) Proven() bool { return true }

// Ready reports whether the connection has bandwidth left.
func (o *OnChannel) Ready() bool { return o.ch != nil && o.ch.Conn().IsNetReady() }

// MaxPacket is the most bytes that fit one packet of the connection; 0 without a channel.
func (o *OnChannel) MaxPacket() int {
	if o.ch == nil {
		return 0
	}
	return o.ch.Conn().Table().SingleBits() / 8
}

// Send implements Transport. The error is channel.ErrClosed without a channel, or SendBunch's.
func (o *OnChannel) Send(_ time.Duration, p []byte) error {
	if o.ch == nil {
		return channel.ErrClosed
	}
	_, err := o.ch.SendBunch(&bunch.Out{Data: p, NoMerge: true})
	return err
}

// ReceivedBunch implements channel.Handler: it passes the packet to Received. The largest one counts within the connection's MaxMemory; when there
// is no room for it, it counts as lost.
func (o *OnChannel) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	if in.Reliable || in.Bits%8 != 0 {
		return // the opening bunch, or no packet of ours
	}
	if o.Received == nil {
		ch.Conn().Fail(errNoReceived, true)
		return
	}
	n := in.Bits / 8
	if cap(o.buf) < n {
		if ch.Hold(n-cap(o.buf)) != nil {
			ch.Refuse()
			return
		}
		o.buf = make([]byte, n)
	}
	o.buf = o.buf[:n]
	in.Data.ReadBytes(o.buf)
	o.Received(o.buf)
}

// ReceivedAck implements channel.Handler. Nothing to do: lockstep has its own acks.
func (o *OnChannel) ReceivedAck(*channel.Channel, int64) {}

// ReceivedNak implements channel.Handler.
func (o *OnChannel) ReceivedNak(*channel.Channel, int64) {}

// Closed implements channel.Handler: Send returns channel.ErrClosed from then on.
func (o *OnChannel) Closed(ch *channel.Channel, _ channel.CloseReason) {
	if ch == o.ch { // and not one that Opened refused
		o.ch, o.buf = nil, nil
	}
}
