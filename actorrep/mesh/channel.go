package mesh

import (
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// ChannelName names the channel that carries a client's packets.
var ChannelName = bunch.Name{Text: "Mesh"}

// ChannelType is the type of that channel, for the connections of both ends. A server opens it with Open, and gives a nil accept here. On a client accept is told of it and returns what takes the packets; when that returns an error, the
// connection ends.
func ChannelType(accept func(ch *channel.Channel) func(packet []byte) error) channel.Type {
	return channel.Type{Name: ChannelName, ServerOpen: true, Accept: func(ch *channel.Channel) channel.Handler {
		if accept == nil {
			return nil
		}
		return carrier{accept(ch)}
	}}
}

// Open opens the channel on a connection of a server. receive takes the packets; when it returns an error, the connection ends.
func Open(conn channel.Conn, receive func(packet []byte) error) (*channel.Channel, error) {
	ch, err := conn.Table().Open(ChannelName, carrier{receive})
	if err != nil {
		return nil, err
	}
	_, err = ch.SendBunch(&bunch.Out{Reliable: true}) // so that the client, which speaks first, has it
	return ch, err
}

// SendOn sends a packet on the channel. It may be lost.
func SendOn(ch *channel.Channel, packet []byte) {
	if ch != nil && !ch.Closing() {
		_, _ = ch.SendBunch(&bunch.Out{Data: packet, NoMerge: true})
	}
}

// carrier gives received packets to a machine.
type carrier struct{ receive func(packet []byte) error }

func (c carrier) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	n := in.Data.Remaining() / 8
	if n == 0 || n > maxToClient {
		return
	}
	b := make([]byte, n)
	in.Data.ReadBitsTo(b, 8*n)
	if err := c.receive(b); err != nil {
		ch.Conn().Fail(err, true)
	}
}

func (carrier) ReceivedAck(*channel.Channel, int64) {}

func (carrier) ReceivedNak(*channel.Channel, int64) {}

func (carrier) Closed(*channel.Channel, channel.CloseReason) {}
