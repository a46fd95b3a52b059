package message_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

var (
	blockName   = bunch.Name{Index: 310}
	messageName = bunch.Name{Index: 311}
)

// transfer is two connections with a simulated link each way; the client sends.
type transfer struct {
	t        *testing.T
	now      time.Duration
	conns    [2]*netconn.Conn
	links    [2]*netsim.Link // from each end
	out, in  *message.Blocks
	received map[int64][]byte
	qa, qb   *message.Attached
	ka, kb   *kinds
}

func newTransfer(t *testing.T, set netsim.Settings, seed uint64, controller func() congestion.Controller) *transfer {
	x := &transfer{t: t, received: map[int64][]byte{}, ka: newKinds(), kb: newKinds()}
	x.in = message.NewBlocks(message.BlocksConfig{Received: func(id int64, b []byte) { x.received[id] = b }, Failed: func(id int64, err error) { t.Error(id, err) }})
	x.out = message.NewBlocks(message.BlocksConfig{})
	x.qa = message.Attach(message.New(message.Config{Kinds: &x.ka.reg}))
	x.qb = message.Attach(message.New(message.Config{Kinds: &x.kb.reg}))
	types := []channel.Type{
		{Name: blockName, ClientOpen: true, Accept: func(ch *channel.Channel) channel.Handler { return x.in }},
		{Name: messageName, ClientOpen: true, Accept: func(ch *channel.Channel) channel.Handler { return x.qb }},
	}
	for i := range x.conns {
		var err error
		x.links[i], err = netsim.NewLink(set, seed+uint64(i))
		require.NoError(t, err)
		x.conns[i], err = netconn.New(netconn.Config{Server: i == 1, Channels: types, Controller: controller(), LowLevelSend: func(p []byte) { x.links[i].Push(x.now, p) }}, 0, 7, 7)
		require.NoError(t, err)
	}
	ch, err := x.conns[0].Open(blockName, x.out)
	require.NoError(t, err)
	require.NoError(t, x.out.Opened(ch))
	ch, err = x.conns[0].Open(messageName, x.qa)
	require.NoError(t, err)
	require.NoError(t, x.qa.Opened(ch))
	return x
}

func (x *transfer) step(dt time.Duration) {
	x.now += dt
	for i, c := range x.conns {
		for p, ok := x.links[1-i].Pop(x.now); ok; p, ok = x.links[1-i].Pop(x.now) {
			_ = c.ReceivedPacket(x.now, p)
		}
		c.PostTickDispatch(x.now)
	}
	x.qa.Tick(x.now)
	x.out.Tick()
	for _, c := range x.conns {
		c.Tick(x.now)
		require.False(x.t, c.Closed(), "%v", c.Result())
	}
}

func data(seed uint64, n int) []byte {
	b := make([]byte, n)
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func bucket() congestion.Controller { return congestion.NewTokenBucket(20 << 20) }

// TestBlockThroughput sends 16 MiB over 100 Mbit/s, 20 ms each way.
func TestBlockThroughput(t *testing.T) {
	for _, c := range []struct {
		loss, least float64
	}{{0, 0.8}, {5, 0.6}} {
		t.Run(fmt.Sprintf("%v%% loss", c.loss), func(t *testing.T) {
			size := 16 << 20
			if testing.Short() {
				size = 4 << 20
			}
			set := netsim.Settings{Bandwidth: 100e6, Lag: 20 * time.Millisecond, Loss: c.loss, QueueDelay: 50 * time.Millisecond}
			x := newTransfer(t, set, 3, bucket)
			want := data(1, size)
			_, err := x.out.Send(want)
			require.NoError(t, err)
			for len(x.received) == 0 {
				require.Less(t, x.now, time.Minute)
				x.step(time.Millisecond)
			}
			require.True(t, bytes.Equal(want, x.received[0]))
			share := float64(size*8) / x.now.Seconds() / 100e6
			t.Logf("%d MiB in %v: %.1f %% of the link, %+v", size>>20, x.now, 100*share, x.out.Counters)
			require.GreaterOrEqual(t, share, c.least)
		})
	}
}

// TestBlocksTogether sends several at once over a bad link, and messages beside them that must not starve.
func TestBlocksTogether(t *testing.T) {
	for seed := range uint64(3) {
		set := netsim.Settings{Loss: 20, Dup: 5, Order: 5, Lag: 10 * time.Millisecond, LagVariance: 5 * time.Millisecond}
		x := newTransfer(t, set, seed, bucket)
		var want [][]byte
		for i, n := range []int{1, 895, 896, 300_000} {
			b := data(uint64(i), n)
			want = append(want, b)
			_, err := x.out.Send(b)
			require.NoError(t, err)
		}
		_, err := x.out.Send([]byte{1})
		require.ErrorIs(t, err, message.ErrBlocks)
		sent, got := uint32(0), uint32(0)
		for len(x.received) < 4 || got < sent {
			require.Less(t, x.now, 2*time.Minute, "seed %d: %d blocks, %d of %d messages", seed, len(x.received), got, sent)
			if sent < 500 {
				require.NoError(t, x.qa.Send(x.ka.number, &number{N: sent}))
				sent++
			}
			x.step(16 * time.Millisecond)
			for m, k := x.qb.Receive(); m != nil; m, k = x.qb.Receive() {
				require.Equal(t, got, m.(*number).N)
				got++
				k.Free(m)
			}
		}
		for i, b := range want {
			require.True(t, bytes.Equal(b, x.received[int64(i)]), "seed %d, block %d", seed, i)
		}
	}
}

func TestBlockErrors(t *testing.T) {
	b := message.NewBlocks(message.BlocksConfig{MaxBytes: 1000})
	_, err := b.Send(nil)
	require.ErrorIs(t, err, message.ErrEmpty)
	_, err = b.Send(make([]byte, 1001))
	require.ErrorIs(t, err, message.ErrBlockBig)
}

// FuzzFragment gives a receiver arbitrary fragments.
func FuzzFragment(f *testing.F) {
	f.Add(make([]byte, 20), []byte{1, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		x := message.NewBlocks(message.BlocksConfig{MaxBytes: 1 << 20})
		for _, p := range [][]byte{a, b, a, b} {
			in := &bunch.In{}
			in.Data.Reset(p, len(p)*8)
			x.ReceivedBunch(nil, in)
		}
	})
}
