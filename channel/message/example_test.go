package message_test

import (
	"bytes"
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn"
)

// Say is a message.
type Say struct{ Text string }

// Serialize writes, reads and measures it.
func (m *Say) Serialize(s *message.Stream) { s.String(&m.Text, 100) }

// Two queues with packets between them, one of which gets lost.
func Example() {
	var kinds message.Registry
	say := kinds.Add("Say", func() message.Message { return new(Say) })
	a := message.New(message.Config{Mode: message.Ordered, Kinds: &kinds})
	b := message.New(message.Config{Mode: message.Ordered, Kinds: &kinds})

	var buf [1000]byte
	for id, lost := range []bool{true, false} {
		if id == 0 {
			fmt.Println(a.Send(say, &Say{"hello"}))
		}
		w := bitio.NewWriter(buf[:])
		n := a.Write(0, w)
		a.Sent(int64(id))
		fmt.Println("packet", id, "carries", n)
		if lost {
			a.Lost(int64(id)) // due again at once
			continue
		}
		if err := b.Read(bitio.NewReader(w.Bytes(), w.Len())); err != nil {
			fmt.Println(err)
		}
		a.Acked(int64(id))
	}
	m, kind := b.Receive()
	fmt.Println(kind.Name(), m.(*Say).Text, a.Pending())
	// Output:
	// <nil>
	// packet 0 carries 1
	// packet 1 carries 1
	// Say hello 0
}

// ends are two connections that hand each other their packets.
func ends(channels func(server bool) []channel.Type) (conns [2]*netconn.Conn, err error) {
	for i := range conns {
		conns[i], err = netconn.New(netconn.Config{Server: i == 1, Channels: channels(i == 1), LowLevelSend: func(p []byte) {
			_ = conns[1-i].ReceivedPacket(conns[i].Now(), p) // refused ones are lost
		}}, 0, 1, 1)
		if err != nil {
			return conns, err
		}
	}
	return conns, nil
}

// A queue on a channel.
func ExampleAttach() {
	var kinds message.Registry
	say := kinds.Add("Say", func() message.Message { return new(Say) })
	a := message.Attach(message.New(message.Config{Kinds: &kinds}))
	b := message.Attach(message.New(message.Config{Kinds: &kinds}))
	name := bunch.Name{Index: 300}
	conns, err := ends(func(bool) []channel.Type {
		return []channel.Type{{Name: name, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return b }}}
	})
	if err == nil {
		_, err = conns[0].Open(name, a)
	}
	if err == nil {
		err = a.Send(say, &Say{"hello"})
	}
	for now := time.Duration(0); err == nil && now < time.Second; now += 10 * time.Millisecond {
		a.Tick(now)
		for _, c := range conns {
			c.PostTickDispatch(now)
			c.Tick(now)
		}
	}
	m, _ := b.Receive()
	fmt.Println(m.(*Say).Text, err)
	// Output: hello <nil>
}

// A hundred kilobytes, in fragments.
func ExampleBlocks() {
	data := bytes.Repeat([]byte("level"), 20_000)
	a := message.NewBlocks(message.BlocksConfig{Sent: func(int64) { fmt.Println("it is there") }})
	b := message.NewBlocks(message.BlocksConfig{Received: func(_ int64, got []byte) { fmt.Println(len(got), bytes.Equal(got, data)) }})
	name := bunch.Name{Index: 301}
	conns, err := ends(func(bool) []channel.Type {
		return []channel.Type{{Name: name, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return b }}}
	})
	if err == nil {
		_, err = conns[0].Open(name, a)
	}
	if err == nil {
		_, err = a.Send(data)
	}
	for now := time.Duration(0); err == nil && now < 10*time.Second; now += 10 * time.Millisecond {
		for _, c := range conns {
			c.PostTickDispatch(now)
			c.Tick(now)
		}
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// 100000 true
	// it is there
}
