package lockstep

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/lockstep/internal/wire"
)

// queue is a Transport whose packets the test carries.
type queue struct{ packets [][]byte }

func (q *queue) Send(_ time.Duration, p []byte) error {
	q.packets = append(q.packets, slices.Clone(p))
	return nil
}

func (*queue) Proven() bool { return true }

func (q *queue) take() [][]byte {
	all := q.packets
	q.packets = nil
	return all
}

// TestTurnOfAVainSession: a session that nobody answers, and one that ends before its snapshot is whole, say the turns and the generation of the game's state as they are, so that the next
// session goes on from there.
func TestTurnOfAVainSession(t *testing.T) {
	for _, loads := range []bool{false, true} {
		var up, down queue
		conf := Config{Players: 1}
		host := func(cfg HostConfig) *Host {
			cfg.Config = conf
			h, err := NewHost(cfg, nil)
			require.NoError(t, err)
			require.NoError(t, h.Connect(0, &down))
			return h
		}
		peer := func(session uint32, have, generation int64) *Peer {
			p, err := NewPeer(PeerConfig{Config: conf, Session: session, Have: have, Generation: generation}, &up)
			require.NoError(t, err)
			return p
		}
		var now time.Duration
		var state int64 // turns that the game's state has executed
		run := func(h *Host, p *Peer, ticks int, takes bool) {
			for range ticks {
				now += 50 * time.Millisecond
				for _, b := range down.take() {
					_ = p.Receive(now, b)
				}
				if takes {
					if turn, _, ok := p.TakeSnapshot(); ok {
						state = turn
					}
				}
				if _, ok := p.Next(); ok {
					require.NoError(t, p.Done(1))
					state++
				}
				p.Tick(now)
				for _, b := range up.take() {
					if h != nil {
						_ = h.Receive(now, 0, b)
					}
				}
				if h != nil {
					if h.Ready() == 1 {
						h.Start(now)
					}
					h.Tick(now)
				}
			}
		}
		h := host(HostConfig{LogTurns: 40})
		first := peer(10, 0, 0)
		run(h, first, 100, true)
		require.Equal(t, state, first.Turn())
		require.Greater(t, state, int64(90))
		generation := first.Generation()
		if loads { // the host goes on from a state that this player lacks
			h = host(HostConfig{Secret: [32]byte{5}, Resume: &Resume{Turn: 20, Delay: 2, Active: 1, Generation: generation, State: make([]byte, 100_000)}})
		}
		vain := peer(11, state, generation)
		if require.Equal(t, state, vain.Turn()); loads {
			run(h, vain, 5, false)
			require.Equal(t, Loading, vain.State())
		}
		run(nil, vain, 700, false)
		require.Error(t, vain.Err())
		require.Equal(t, state, vain.Turn())
		require.Equal(t, Resume{Turn: state, Generation: generation}, vain.Resume(), "the state's, of whose session this Peer knows no more")
		require.Equal(t, generation, vain.Generation())
		third := peer(12, vain.Turn(), vain.Generation())
		run(h, third, 20, true)
		require.NoError(t, third.Err())
		require.Equal(t, state, third.Turn())
	}
}

// TestTurnWhileItLoads: a player that the host gives a snapshot within a session, as the host has dropped what he lacks, says what his game's state is until he takes that.
func TestTurnWhileItLoads(t *testing.T) {
	p, err := NewPeer(PeerConfig{Config: Config{Players: 2}, Session: 1}, &queue{})
	require.NoError(t, err)
	welcomed := func(w welcome) {
		require.NoError(t, p.welcomed(time.Second, &wire.Reader{P: w.append(nil)}))
	}
	welcomed(welcome{base: 1, delay: 3, active: 1, generation: 7})
	require.Equal(t, Running, p.State())
	p.next = 90 // turns later
	had := p.Resume()
	require.Equal(t, Resume{Turn: 90, Delay: 3, Active: 1, Generation: 7}, had)
	welcomed(welcome{base: 1000, start: 200, snapshot: 100, delay: 4, active: 3, generation: 7})
	require.Equal(t, Loading, p.State())
	require.EqualValues(t, 90, p.Turn())
	require.Equal(t, had, p.Resume())
}
