package udp

import (
	"encoding/binary"
	"flag"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var amid = flag.Int("amid", 60, "batches of TestUnreachableAmidRuns")

// TestUnreachableAmidRuns: in whatever batch, addresses that nothing can be sent to and datagrams that are too large cost themselves only: each of the others arrives once, in its peer's
// order, whole, with the offload and without, and what the socket counts is what went out.
func TestUnreachableAmidRuns(t *testing.T) {
	for seed, host := range []string{"127.0.0.1:0", ":0", "127.0.0.1:0", ":0"} {
		cfg := Config{NoOffload: seed > 1, Whole: true}
		rng := rand.New(rand.NewPCG(uint64(seed), 5))
		s, err := Listen(host, cfg)
		require.NoError(t, err)
		var peers []Socket
		for range 3 {
			p, err := Listen("127.0.0.1:0", cfg)
			require.NoError(t, err)
			peers = append(peers, p)
		}
		bad := []string{"127.0.0.1:0", "[::1]:0", "0.0.0.0:0"}
		var next, want [3]uint32
		var sent uint64
		for range *amid {
			var batch []Message
			var good [3]int
			for len(batch) < 1+rng.IntN(150) {
				m := Message{Buf: make([]byte, 4+rng.IntN(1200)>>rng.IntN(4))}
				for range 1 + rng.IntN(12) {
					m := Message{Buf: append([]byte(nil), m.Buf...)}
					switch rng.IntN(12) {
					case 0:
						m.Addr = netip.MustParseAddrPort(bad[rng.IntN(len(bad))])
					case 1:
						m.Addr, m.Buf = peers[0].LocalAddr(), make([]byte, 66_000)
					default:
						to := rng.IntN(3) * rng.IntN(2)
						m.Addr = peers[to].LocalAddr()
						binary.LittleEndian.PutUint32(m.Buf, next[to])
						next[to]++
						good[to]++
					}
					batch = append(batch, m)
				}
			}
			errs := 0
			for left := batch; len(left) > 0; {
				n, err := s.WriteBatch(left)
				sent += uint64(n)
				if left = left[n:]; err != nil {
					require.True(t, IsTemporary(err), err)
					errs++
					left = left[1:]
				}
			}
			require.Equal(t, len(batch)-good[0]-good[1]-good[2], errs)
			for to, p := range peers {
				in := messages(1 + rng.IntN(70))
				require.NoError(t, p.SetReadDeadline(time.Now().Add(5*time.Second)))
				for good[to] > 0 {
					n, err := p.ReadBatch(in)
					require.NoError(t, err, "seed %d, %d more for %d", seed, good[to], to)
					for i := range n {
						require.Equal(t, want[to], binary.LittleEndian.Uint32(in[i].Data()), "seed %d", seed)
						require.Equal(t, s.LocalAddr().Port(), in[i].Addr.Port())
						want[to]++
					}
					good[to] -= n
				}
			}
		}
		c, _ := CountersOf(s)
		require.Equal(t, sent, c.Sent)
		require.Equal(t, cfg.NoOffload, c.GSOWrites == 0)
		for _, p := range peers {
			require.NoError(t, p.Close())
		}
		require.NoError(t, s.Close())
	}
}
