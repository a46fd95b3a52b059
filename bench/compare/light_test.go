package main

import (
	"context"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// TestLight: to a server light clients are clients like any: it refuses none of their packets, and learns that all of its own arrived.
func TestLight(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("light clients need Linux")
	}
	s, o := setting{}, Options{Unreliable: true, Rate: 40, Many: true}
	cfg := s.config(o)
	cfg.Channels = o.serverChannels(echo)
	d, err := driver.Listen(o.addr(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx, nil) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	c := &lightCrowd{rate: 40}
	defer c.close()
	if err := c.dial(&Peer{Name: "bunchnet-0"}, d.LocalAddr().String(), 10); err != nil {
		t.Fatal(err)
	}
	if err := c.load(2 * time.Second); err != nil { // more packets than a word of history has bits
		t.Fatal(err)
	}
	sent, got, _ := c.counts()
	for end := time.Now().Add(time.Minute); got < sent && time.Now().Before(end); _, got, _ = c.counts() {
		done := make(chan time.Time)
		time.AfterFunc(50*time.Millisecond, func() { close(done) })
		c.idle(done)
	}
	if sent != 10*40*2 || got != sent {
		t.Fatalf("%d packets, %d echoes", sent, got)
	}
	conns := make(chan int, 1)
	d.Do(func() {
		n := 0
		for conn := range d.Conns {
			n++
			if k := conn.Counters; k.Stale+k.PacketsLost+k.PacketsMissed+k.BadHandler+k.BadHeader+k.BadBunch > 0 || k.PacketsAcked+k.KeepAlives+3 < k.PacketsSent { // of those that come after the last packet of the client nothing is said
				t.Errorf("%+v", k)
			}
		}
		conns <- n
	})
	if n := <-conns; n != 10 {
		t.Errorf("%d connections", n)
	}
}

func TestPutBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for at := range 40 {
		var got, want [16]byte
		for i := range got {
			got[i] = byte(rng.Uint32())
		}
		want = got
		v := rng.Uint64()
		w := bitio.NewWriter(want[:])
		w.WriteBitsFrom(got[:], 0, 8*len(got))
		w.PatchBits(at, v, 64)
		if putBits(got[:], at, v); got != want {
			t.Errorf("at %d: %x, want %x", at, got, want)
		}
	}
}
