package netconn

import (
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// once checks that a channel's messages arrive once and in order, whatever the script does.
type once struct {
	channel.Nop
	t    *testing.T
	next byte
}

func (o *once) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	if !in.Reliable {
		return
	}
	for in.Data.Remaining() >= 8 {
		if b := in.Data.ReadUint8(); b != o.next {
			o.t.Fatalf("message %d instead of %d", b, o.next)
		}
		o.next++
	}
}

// FuzzConnection plays a script of sends, losses, repeats, delays and forged packets on two
// connections.
func FuzzConnection(f *testing.F) {
	f.Add([]byte{0, 1, 2, 0, 3, 4, 5, 1, 2, 6, 7, 0, 1, 1, 1})
	f.Add([]byte("send and lose and repeat"))
	f.Add([]byte{3, 0, 0xf6, 0, 0xf6, 0, 0xf6, 12, 12, 10, 10, 0, 0xf6, 11, 0, 0xf6, 12, 10, 6, 6})
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) == 0 || len(script) > 400 {
			return
		}
		var extras Config
		if script[0]&1 != 0 {
			extras = Config{Redundancy: Redundancy{Copies: 2}, AckDelay: 25 * time.Millisecond}
		}
		if script[0]&2 != 0 {
			extras.ReorderWindow = 30 * time.Millisecond
		}
		var conns [2]*Conn
		var lines [2][][]byte // packets on their way to each end
		got := &once{t: t}
		var now time.Duration
		for i := range conns {
			to := &lines[1-i]
			c, err := New(Config{Server: i == 1, Channels: testTypes(func(*channel.Channel) channel.Handler { return got }),
				Redundancy: extras.Redundancy, AckDelay: extras.AckDelay, ReorderWindow: extras.ReorderWindow,
				LowLevelSend: func(p []byte) { *to = append(*to, append([]byte(nil), p...)) }}, 0, 3, 3)
			if err != nil {
				t.Fatal(err)
			}
			conns[i] = c
		}
		ch, err := conns[0].Open(bunch.Control, got)
		if err != nil {
			t.Fatal(err)
		}
		sent := byte(0)
		for i, op := range script {
			end := int(op>>3) & 1
			line := &lines[end]
			switch op & 7 {
			case 0, 1:
				_, err := ch.SendBunch(&bunch.Out{Data: []byte{sent}, Reliable: true})
				if err == nil {
					sent++
				}
			case 2: // deliver the oldest
				if len(*line) > 0 {
					_ = conns[end].ReceivedPacket(now, (*line)[0])
					*line = (*line)[1:]
				}
			case 3: // lose the oldest
				if len(*line) > 0 {
					*line = (*line)[1:]
				}
			case 4: // deliver the newest, and leave it to come again
				if n := len(*line); n > 0 {
					_ = conns[end].ReceivedPacket(now, (*line)[n-1])
				}
			case 5: // a forged packet; what it does to the end it reaches is another matter
				if op&0x80 != 0 {
					forged, err := New(Config{LowLevelSend: func([]byte) {}}, 0, 3, 3)
					if err != nil {
						t.Fatal(err)
					}
					_ = forged.ReceivedPacket(now, script[i:])
				}
			default:
				now += time.Duration(1+op>>4) * 10 * time.Millisecond
				for _, c := range conns {
					c.PostTickDispatch(now)
					c.Tick(now)
				}
			}
		}
		for range 200 { // let it settle
			now += 50 * time.Millisecond
			for end := range conns {
				for _, p := range lines[end] {
					_ = conns[end].ReceivedPacket(now, p)
				}
				lines[end] = nil
				conns[end].PostTickDispatch(now)
			}
			for _, c := range conns {
				c.Tick(now)
			}
		}
		if conns[0].Closed() || conns[1].Closed() {
			t.Fatalf("closed: %v, %v", conns[0].Result(), conns[1].Result())
		}
		if got.next != sent {
			t.Fatalf("%d of %d arrived", got.next, sent)
		}
	})
}

// FuzzPacket gives a connection arbitrary datagrams.
func FuzzPacket(f *testing.F) {
	f.Add([]byte{4, 0x38, 0xf9, 0x31, 1, 0, 0, 0x80}, []byte{1})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		got := &collector{}
		c, err := New(Config{Server: true, LowLevelSend: func([]byte) {}, Channels: testTypes(func(*channel.Channel) channel.Handler { return got })}, 0, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range [][]byte{a, b, a} {
			_ = c.ReceivedPacket(time.Duration(i)*time.Millisecond, p)
			c.PostTickDispatch(time.Duration(i) * time.Millisecond)
			c.Tick(time.Duration(i) * time.Millisecond)
		}
	})
}
