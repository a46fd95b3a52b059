// Blocks sends a large file and two small ones over a simulated link that loses packets,
// and shows how far they are.
//
//	go run ./examples/blocks
//	go run ./examples/blocks -mib 64 -loss 20
package main

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

var blockName = bunch.Name{Index: 310}

func main() {
	mib := flag.Int("mib", 16, "size of the large block, MiB")
	loss := flag.Float64("loss", 5, "datagrams lost, percent")
	mbit := flag.Float64("mbit", 100, "bandwidth of the link, Mbit/s")
	seed := flag.Uint64("seed", 1, "seed of the losses")
	flag.Parse()
	if flag.NArg() > 0 || *mib < 1 || *mib > 1024 || !(*loss >= 0 && *loss <= 90) || !(*mbit >= 0.1 && *mbit <= 1e5) {
		fmt.Fprintln(os.Stderr, "a flag is out of range; see -help")
		os.Exit(2)
	}
	if err := run(*mib, *loss, *mbit, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

func run(mib int, loss, mbit float64, seed uint64) error {
	set := netsim.Settings{Loss: loss, Lag: 20 * time.Millisecond, Bandwidth: mbit * 1e6, QueueDelay: 50 * time.Millisecond}
	got := map[int64][]byte{}
	out := message.NewBlocks(message.BlocksConfig{})
	in := message.NewBlocks(message.BlocksConfig{Received: func(id int64, b []byte) { got[id] = b }})
	types := []channel.Type{{Name: blockName, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return in }}}

	var now time.Duration
	var conns [2]*netconn.Conn
	var links [2]*netsim.Link
	for i := range conns {
		var err error
		if links[i], err = netsim.NewLink(set, seed+uint64(i)); err != nil {
			return err
		}
		conns[i], err = netconn.New(netconn.Config{Server: i == 1, Channels: types, MaxMemory: 4 * (mib + 1) << 20, Controller: congestion.NewTokenBucket(int(mbit * 1.1e6 / 8)),
			LowLevelSend: func(p []byte) { links[i].Push(now, p) }}, 0, 1, 1)
		if err != nil {
			return err
		}
	}
	if _, err := conns[0].Open(blockName, out); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	var want [][]byte
	for _, n := range []int{mib << 20, 10_000, 100_000} {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		if _, err := out.Send(b); err != nil {
			return err
		}
		want = append(want, b)
	}

	fmt.Printf("%d MiB and two small blocks over %.0f Mbit/s, 20 ms each way, %.0f %% lost, seed %d\n", mib, mbit, loss, seed)
	shown := time.Duration(-1)
	for len(got) < len(want) && now < 10*time.Minute {
		now += time.Millisecond
		for i, c := range conns {
			for p, ok := links[1-i].Pop(now); ok; p, ok = links[1-i].Pop(now) {
				_ = c.ReceivedPacket(now, p)
			}
		}
		for _, c := range conns {
			c.Tick(now)
		}
		if now-shown >= 200*time.Millisecond {
			shown = now
			show(now, out, len(got))
		}
	}
	for i, b := range want {
		switch have, ok := got[int64(i)]; {
		case !ok:
			return fmt.Errorf("block %d hasn't come within %v of the link's time", i, now.Round(time.Second))
		case !bytes.Equal(b, have):
			return fmt.Errorf("block %d is not what was sent", i)
		}
	}
	rate := float64(8*(mib<<20)) / now.Seconds() / 1e6
	_, err := fmt.Printf("PASS: all blocks intact after %.2f s of the link's time: %.1f Mbit/s, %.0f %% of it; %d fragments, %d sent again\n",
		now.Seconds(), rate, 100*rate/mbit, out.Counters.Fragments, out.Counters.Resent)
	return err
}

// show draws a bar of the large block.
func show(now time.Duration, b *message.Blocks, done int) {
	have, total := b.Progress(0)
	if total == 0 {
		return
	}
	const width = 40
	n := have * width / total
	fmt.Printf("%6.1f s  [%s%s] %3d %%  %d of 3 blocks there\n", now.Seconds(), strings.Repeat("#", n), strings.Repeat(".", width-n), 100*have/total, done)
}
