package netconn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestUploadToADefaultServer: bulk of one channel over a fast and long path that loses 1 % is sent as far as the server's default memory has room behind what was lost, and what is
// offered arrives: nothing of it is refused for want of memory again and again, which would look like loss to the controller.
func TestUploadToADefaultServer(t *testing.T) {
	seeds := uint64(1)
	if os.Getenv("CI") != "" {
		seeds = 5
	}
	for _, c := range []struct {
		rate int
		rtt  time.Duration
		size int
		part float64 // of the path that its data gets at least
	}{
		{1_000_000, 300 * time.Millisecond, 900, 0.8},
		{1_000_000, 300 * time.Millisecond, 9000, 0.7},
		{1_000_000, 600 * time.Millisecond, 9000, 0.5},
		{4_000_000, 50 * time.Millisecond, 900, 0.8},
		{5_000_000, 100 * time.Millisecond, 900, 0.7},
		{5_000_000, 100 * time.Millisecond, 9000, 0.5},
		{5_000_000, 200 * time.Millisecond, 9000, 0.3},
	} {
		for seed := uint64(1); seed <= seeds; seed++ {
			t.Run(fmt.Sprintf("%d B/s, %v, %d B, seed %d", c.rate, c.rtt, c.size, seed), func(t *testing.T) {
				l := newLab(t, both(netsim.Settings{Lag: c.rtt / 2, Loss: 1, Bandwidth: 8 * float64(c.rate), QueueDelay: 100 * time.Millisecond}), seed, func(i int, cfg *Config) {
					cfg.Protocol, cfg.Controller = Bunchnet(), adapt()
				})
				l.control()
				ch := l.open(0)
				upload := func() {
					for err := error(nil); err == nil; {
						_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, c.size), Reliable: true, NoMerge: true})
					}
				}
				l.run(10*time.Second, upload)
				offered, got := l.offered[0], l.got[1]
				l.run(30*time.Second, upload)
				require.Nil(t, l.res[0])
				offered, got = l.offered[0]-offered, l.got[1]-got
				t.Logf("%.2f of the path, %.2f offered for each byte, %d refused", float64(got)/30/float64(c.rate), float64(offered)/float64(got), l.conns[1].Table().Counters.MemoryFull)
				require.Greater(t, float64(got), c.part*30*float64(c.rate))
				require.Less(t, float64(offered), 1.5*float64(got))
			})
		}
	}
}

// TestChatBesideASmallMemory: a line of chat waits for no payload of forty other channels, with the adaptive controller and a peer that has little memory and has said so.
func TestChatBesideASmallMemory(t *testing.T) {
	const chans, each, size = 40, 60, 9000
	seeds := uint64(2)
	if os.Getenv("CI") != "" {
		seeds = 6
	}
	for _, memory := range []int{256 << 10, 1 << 20} {
		for _, loss := range []float64{0, 1, 5} {
			t.Run(fmt.Sprintf("%d KiB, %v %%", memory>>10, loss), func(t *testing.T) {
				var worst time.Duration
				refused := uint64(0)
				for seed := uint64(1); seed <= seeds; seed++ {
					in := &payloads{next: map[*channel.Channel]byte{}}
					l := newLab(t, both(netsim.Settings{Lag: 25 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: loss, Bandwidth: 8e6}), seed, func(i int, cfg *Config) {
						cfg.Protocol, cfg.Controller = Bunchnet(), adapt()
						if i == 1 {
							cfg.MaxMemory = memory
							cfg.Channels = testTypes(func(*channel.Channel) channel.Handler { return in })
						}
					})
					in.l = l
					l.conns[0].SetPeerMemory(uint32(memory))
					l.control()
					chat := l.open(0)
					chs, sent := make([]*channel.Channel, chans), make([]byte, chans)
					for i := range chs {
						chs[i] = l.open(0)
					}
					tick := 0
					l.run(20*time.Second, func() {
						if tick++; tick%20 == 0 {
							_, _ = chat.SendBunch(&bunch.Out{Data: binary.LittleEndian.AppendUint64(nil, uint64(l.now)), Reliable: true, NoMerge: true})
						}
						for i, ch := range chs {
							for sent[i] < each {
								_, err := ch.SendBunch(&bunch.Out{Data: slices.Repeat([]byte{sent[i]}, size), Reliable: true, NoMerge: true})
								if errors.Is(err, channel.ErrReliableFull) {
									break
								}
								require.NoError(t, err)
								sent[i]++
							}
						}
					})
					require.Nil(t, l.res[0])
					require.Greater(t, len(in.late), 55, "seed %d", seed)
					require.Less(t, slices.Max(in.late), 600*time.Millisecond, "seed %d", seed)
					require.Less(t, l.offered[0], in.n*size*14/10, "seed %d", seed)
					worst, refused = max(worst, slices.Max(in.late)), refused+l.conns[1].Table().Counters.MemoryFull
				}
				t.Logf("a line waits for %v at most; %d refused", worst, refused)
			})
		}
	}
}

// TestFullPeerIsNoRefusal: an honest peer with the least memory, most of which its channels take, goes on, slowly, and isn't taken for one that refuses everything.
func TestFullPeerIsNoRefusal(t *testing.T) {
	seeds := uint64(1)
	if os.Getenv("CI") != "" {
		seeds = 4
	}
	for _, chans := range []int{40, 80, 113} {
		for _, loss := range []float64{5, 30} {
			for seed := uint64(1); seed <= seeds; seed++ {
				l := newLab(t, both(netsim.Settings{LagMin: 5 * time.Millisecond, LagMax: 90 * time.Millisecond, Loss: loss, Bandwidth: 8e5, QueueDelay: 200 * time.Millisecond}), seed, func(i int, cfg *Config) {
					cfg.Protocol, cfg.Controller = Bunchnet(), adapt()
					if i == 1 {
						cfg.MaxMemory = 256 << 10
					} else {
						cfg.PeerMemory = 256 << 10
					}
				})
				l.join()
				chs := make([]*channel.Channel, chans)
				for i := range chs {
					chs[i] = l.open(0)
				}
				l.run(100*time.Second, func() {
					for i, ch := range chs {
						size := 1500
						if i%3 == 2 {
							size = 60
						}
						for ch.NumOutRec() < 300 {
							if _, err := ch.SendBunch(&bunch.Out{Data: make([]byte, size), Reliable: true, NoMerge: true}); err != nil || size == 60 {
								break
							}
						}
					}
				})
				for i, r := range l.res {
					require.Nil(t, r, "end %d, %d channels, %v %%, seed %d", i, chans, loss, seed)
				}
				t.Logf("%d channels, %v %%, seed %d: %.0f B/s", chans, loss, seed, float64(l.got[1])/100)
			}
		}
	}
}
