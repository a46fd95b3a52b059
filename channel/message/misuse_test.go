package message_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestOneHandlerOneChannel: a queue or blocks that are given to a second channel are refused there, and go on on the first.
func TestOneHandlerOneChannel(t *testing.T) {
	x := newTransfer(t, netsim.Settings{}, 1, bucket)
	_, err := x.conns[0].Open(messageName, x.qa)
	require.ErrorContains(t, err, "another channel")
	_, err = x.conns[0].Open(blockName, x.out)
	require.ErrorContains(t, err, "another channel")
	_, err = x.conns[0].Open(messageName, message.Attach(x.qa.Queue))
	require.ErrorContains(t, err, "another channel", "of its queue")
	require.NoError(t, x.qa.Send(x.ka.number, &number{N: 7}))
	_, err = x.out.Send(data(1, 3000))
	require.NoError(t, err)
	for range 20 {
		x.step(10 * time.Millisecond)
	}
	m, _ := x.qb.Receive()
	require.Equal(t, &number{N: 7}, m)
	require.Len(t, x.received, 1)
	require.NoError(t, x.messages.Close(bunch.Destroyed))
	for range 20 {
		x.step(10 * time.Millisecond)
	}
	_, err = x.conns[0].Open(messageName, x.qa)
	require.ErrorContains(t, err, "another channel", "it was closed")
}

// TestImpossibleSettings: a setting that no queue can have, and a kind without a function that makes its messages, are told at once and not
// when a peer sends something.
func TestImpossibleSettings(t *testing.T) {
	k := newKinds()
	for _, c := range []message.Config{{Mode: message.Sequenced + 1}, {Resend: -1}, {MaxBits: -1}, {Budget: -1}, {Budget: 55}, {Window: 3}} {
		c.Kinds = &k.reg
		require.Panics(t, func() { message.New(c) }, "%+v", c)
	}
	require.Panics(t, func() { k.reg.Add("nothing", nil) })
}

type large struct{ Data []byte }

func (l *large) Serialize(s *message.Stream) { s.Bytes(&l.Data, 2000) }

// TestMessagesOfBeforeAttachFitAPacket: a channel isn't opened for a queue, in any mode, that was given a message before Attach that no packet has room for; it would wait for ever.
func TestMessagesOfBeforeAttachFitAPacket(t *testing.T) {
	x := newTransfer(t, netsim.Settings{}, 1, bucket)
	for mode := message.Ordered; mode <= message.Sequenced; mode++ {
		for bytes, fits := range map[int]bool{1010: true, 1020: false} { // 1013 with its kind and its length
			var reg message.Registry
			kind := reg.Add("large", func() message.Message { return new(large) })
			q := message.New(message.Config{Kinds: &reg, Mode: mode, MaxBits: 1 << 16, Budget: 1 << 16})
			require.NoError(t, q.Send(kind, &large{Data: make([]byte, bytes)}))
			require.NoError(t, q.Send(kind, &large{}))
			_, err := x.conns[0].Open(messageName, message.Attach(q))
			if fits {
				require.NoError(t, err)
				continue
			}
			require.ErrorIs(t, err, message.ErrTooLarge)
			require.ErrorContains(t, err, "before Attach")
		}
	}
}

// TestForgottenReceivedOfBlocks: the end whose game takes no blocks is told by the end of its connection, and its peer isn't told that one has arrived.
func TestForgottenReceivedOfBlocks(t *testing.T) {
	sent := false
	x := newTransferIn(t, netsim.Settings{}, 1, netconn.Protocol{}, bucket, message.BlocksConfig{Sent: func(int64) { sent = true }}, message.BlocksConfig{}, func(c *netconn.Config) {
		types := slices.Clone(c.Channels)
		types[0].Accept = func(*channel.Channel) channel.Handler { return message.NewBlocks(message.BlocksConfig{}) }
		c.Channels = types
	})
	_, err := x.out.Send(data(1, 1000))
	require.NoError(t, err)
	for range 10 {
		x.exchange()
	}
	require.Equal(t, netconn.WeBroke, x.conns[1].Result().Code)
	require.ErrorContains(t, x.conns[1].Result().Err, "Received is nil")
	require.False(t, sent)
}

// TestAnotherTypeIsTold: a message that isn't of the kind's type is refused, where the peer would read it as one that is.
func TestAnotherTypeIsTold(t *testing.T) {
	k := newKinds()
	q := message.New(message.Config{Kinds: &k.reg})
	for _, m := range []message.Message{&other{}, nil, signal{}} {
		err := q.Send(k.number, m)
		require.ErrorIs(t, err, message.ErrKind)
		require.ErrorContains(t, err, "a number is a *message_test.number")
		_, err = k.number.Encode(m)
		require.ErrorIs(t, err, message.ErrKind)
		require.Panics(t, func() { k.number.Free(m) })
	}
	require.Zero(t, q.Pending())
	require.IsType(t, &number{}, k.number.New())
	require.NoError(t, q.Send(k.number, &number{}))
}

// TestSharedHandlerIsOurs: when the game's Accept returns a handler that another channel has, the connection ends by a failure of this end, and not of the peer.
func TestSharedHandlerIsOurs(t *testing.T) {
	for _, name := range []bunch.Name{messageName, blockName} {
		x := newTransfer(t, netsim.Settings{}, 1, bucket)
		x.exchange()
		second := channel.Handler(message.Attach(message.New(message.Config{Kinds: &x.ka.reg})))
		if name == blockName {
			second = message.NewBlocks(message.BlocksConfig{})
		}
		_, err := x.conns[0].Open(name, second)
		require.NoError(t, err)
		x.exchange()
		require.Equal(t, netconn.WeBroke, x.conns[1].Result().Code, "%v", x.conns[1].Result())
		require.ErrorContains(t, x.conns[1].Result().Err, "another channel")
	}
}

// TestBlocksNeedNoTick: a block arrives though the game calls nothing but the connection's Tick.
func TestBlocksNeedNoTick(t *testing.T) {
	x := newTransfer(t, netsim.Settings{}, 1, bucket)
	_, err := x.out.Send(data(1, 100_000))
	require.NoError(t, err, "the channel isn't open yet")
	for range 5 {
		x.exchange()
	}
	require.Len(t, x.received, 1)
}

// TestForgottenTickIsTold: whoever never calls Tick is told that by the error of the full queue, and nobody else is.
func TestForgottenTickIsTold(t *testing.T) {
	x := newTransfer(t, netsim.Settings{}, 1, bucket)
	x.forgotten(message.ErrFull, func() error { return x.qa.Send(x.ka.number, &number{}) })
}

// forgotten sends until that is an error, before the channel is open, without Tick, and with it: only the second tells of Tick.
func (x *transfer) forgotten(full error, send func() error) {
	fill := func() error {
		for {
			if err := send(); err != nil {
				require.ErrorIs(x.t, err, full)
				return err
			}
		}
	}
	require.NotContains(x.t, fill().Error(), "Tick", "the channel isn't open yet")
	x.exchange()
	require.ErrorContains(x.t, fill(), "call Tick")
	x.step(10 * time.Millisecond)
	require.NotContains(x.t, fill().Error(), "Tick")
}

// exchange is some ticks of two games that call no Tick but those of the connections.
func (x *transfer) exchange() {
	for range 10 {
		x.now += 10 * time.Millisecond
		for i, c := range x.conns {
			for p, ok := x.links[1-i].Pop(x.now); ok; p, ok = x.links[1-i].Pop(x.now) {
				if err := c.ReceivedPacket(x.now, p); !c.Closed() {
					require.NoError(x.t, err)
				}
			}
			c.Tick(x.now)
		}
	}
}

// TestForgottenTickWithLittleTraffic: whoever never calls Tick, and sends too little to fill the queue, is told after 10 s; who calls it isn't.
func TestForgottenTickWithLittleTraffic(t *testing.T) {
	for _, ticks := range []bool{false, true} {
		x := newTransfer(t, netsim.Settings{}, 1, bucket)
		x.exchange()
		e, err := x.ka.number.Encode(&number{})
		require.NoError(t, err)
		for begin := x.now; x.now < begin+9*time.Second; x.exchange() {
			require.NoError(t, x.qa.Send(x.ka.number, &number{}))
		}
		if ticks {
			x.qa.Tick(x.now)
		}
		for begin := x.now; x.now < begin+3*time.Second; {
			x.exchange()
		}
		for _, err := range []error{x.qa.Send(x.ka.number, &number{}), x.qa.SendEncoded(e)} {
			if ticks {
				require.NoError(t, err)
				continue
			}
			require.ErrorIs(t, err, message.ErrFull)
			require.ErrorContains(t, err, "call Tick")
		}
	}
}

// TestForgottenReceiveIsTold: when the peer's game takes no messages, the error of the full queue says so, and not before all else is acked.
func TestForgottenReceiveIsTold(t *testing.T) {
	x := newTransfer(t, netsim.Settings{}, 1, bucket)
	var full []string
	for range 300 {
		for range 100 {
			if err := x.qa.Send(x.ka.number, &number{}); err != nil {
				require.ErrorIs(t, err, message.ErrFull)
				full = append(full, err.Error())
				break
			}
		}
		x.step(10 * time.Millisecond)
	}
	require.NotEmpty(t, full)
	require.Contains(t, full[len(full)-1], "does it call Receive?")
	for m, _ := x.qb.Receive(); m != nil; m, _ = x.qb.Receive() {
	}
	for range 50 {
		x.step(10 * time.Millisecond)
	}
	require.NoError(t, x.qa.Send(x.ka.number, &number{}))
}
