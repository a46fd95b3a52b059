package ackbits

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// model does by maps, full ids and patience what Endpoint does.
type model struct {
	window    int64
	lossAfter time.Duration
	next      int64
	oldest    int64 // not as old as lossAfter at the last tick
	sentAt    map[int64]time.Duration
	got       map[int64]bool
	acked     map[int64]bool
	lost      map[int64]bool
	newest    int64
	fates     []event
}

type event struct {
	acked bool
	id    int64
}

func newModel(c Config) *model {
	return &model{window: int64(c.Window), lossAfter: c.LossAfter, newest: -1,
		sentAt: map[int64]time.Duration{}, got: map[int64]bool{}, acked: map[int64]bool{}, lost: map[int64]bool{}}
}

// wide is a header that doesn't wrap.
type wide struct {
	id, ack int64
	acks    []int64
}

func (m *model) send(now time.Duration) wide {
	if old := m.next - m.window; old >= 0 {
		m.lose(old)
	}
	w := wide{id: m.next, ack: m.newest}
	for id := m.newest - 31; id <= m.newest; id++ {
		if m.got[id] {
			w.acks = append(w.acks, id)
		}
	}
	m.sentAt[m.next] = now
	m.next++
	return w
}

func (m *model) lose(id int64) {
	if !m.acked[id] && !m.lost[id] {
		m.lost[id] = true
		m.fates = append(m.fates, event{false, id})
	}
}

func (m *model) receive(w wide) bool {
	if m.got[w.id] || w.id <= m.newest-m.window {
		return false
	}
	m.got[w.id] = true
	m.newest = max(m.newest, w.id)
	for _, id := range w.acks {
		if !m.acked[id] && id >= m.next-m.window {
			m.acked[id] = true
			m.fates = append(m.fates, event{true, id})
		}
	}
	return true
}

func (m *model) tick(now time.Duration) {
	for ; m.oldest < m.next && now-m.sentAt[m.oldest] >= m.lossAfter; m.oldest++ {
		m.lose(m.oldest)
	}
}

type recorder struct{ fates []event }

func (r *recorder) PacketAcked(id int64) { r.fates = append(r.fates, event{true, id}) }
func (r *recorder) PacketLost(id int64)  { r.fates = append(r.fates, event{false, id}) }

type side struct {
	e   *Endpoint
	m   *model
	rec *recorder
}

type flying struct {
	to  int
	due time.Duration
	p   []byte
	w   wide
}

// badLink runs two ends against their models.
func badLink(t *testing.T, seed uint64, steps int, loss float64, step, delay time.Duration) [2]side {
	rng := rand.New(rand.NewPCG(seed, 1))
	var sides [2]side
	for i := range sides {
		cfg, err := Config{}.filled()
		require.NoError(t, err)
		rec := &recorder{}
		e, err := New(Config{}, rec)
		require.NoError(t, err)
		sides[i] = side{e, newModel(cfg), rec}
	}
	var air []flying
	var now time.Duration
	for n := range steps {
		now += step
		for i := range sides {
			s := &sides[i]
			if rng.IntN(4) == 0 {
				continue // so that the two rates differ
			}
			p, id := s.e.Send(now, nil, 3)
			w := s.m.send(now)
			require.Equal(t, w.id, id)
			for copies := 1; copies > 0; copies-- {
				if rng.Float64() < 0.1 {
					copies++
				}
				if rng.Float64() >= loss {
					late := time.Duration(rng.Int64N(int64(delay) + 1))
					air = append(air, flying{1 - i, now + late, append(p[:len(p):len(p)], 1, 2, 3), w})
				}
			}
		}
		air = slices.DeleteFunc(air, func(f flying) bool {
			if f.due > now {
				return false
			}
			s := &sides[f.to]
			payload, id, err := s.e.Receive(now, f.p)
			if want := s.m.receive(f.w); want != (err == nil) || want && (id != f.w.id || string(payload) != "\x01\x02\x03") {
				t.Fatalf("seed %d step %d: got packet %d %x, %v; sent was %d", seed, n, id, payload, err, f.w.id)
			}
			return true
		})
		for i := range sides {
			s := &sides[i]
			s.e.Tick(now)
			s.m.tick(now)
			if !slices.Equal(s.m.fates, s.rec.fates) {
				require.Equal(t, s.m.fates, s.rec.fates, "seed %d step %d side %d", seed, n, i)
			}
			s.m.fates, s.rec.fates = s.m.fates[:0], s.rec.fates[:0]
		}
	}
	for i := range sides { // each packet has met exactly one or, late, two fates
		s := &sides[i]
		s.e.Tick(now + time.Hour)
		s.m.tick(now + time.Hour)
		require.Equal(t, s.m.fates, s.rec.fates)
		for id := range s.m.next {
			require.True(t, s.m.acked[id] || s.m.lost[id], "seed %d: packet %d has no fate", seed, id)
		}
		st := s.e.Stats()
		require.EqualValues(t, len(s.m.acked), st.PacketsAcked)
		require.EqualValues(t, len(s.m.lost), st.PacketsLost)
		require.Equal(t, int(st.PacketsSent), int(st.PacketsAcked+st.PacketsLost-st.AckedLate))
	}
	return sides
}

func TestModel(t *testing.T) {
	for seed := range uint64(30) {
		badLink(t, seed, 3000, float64(seed%10)*0.1, 5*time.Millisecond, time.Duration(seed%4)*40*time.Millisecond)
	}
}

// TestModelWraps sends more than twice the sequence space.
func TestModelWraps(t *testing.T) {
	sides := badLink(t, 7, 190_000, 0.2, 10*time.Millisecond, 60*time.Millisecond)
	for _, s := range sides {
		require.Greater(t, s.e.NextID(), int64(2*65536))
	}
}

// TestModelNearlyAllLost wraps at 99 % loss, where whole windows pass between two
// packets that arrive: an entry left over from a round before would be taken for news.
func TestModelNearlyAllLost(t *testing.T) {
	sides := badLink(t, 8, 190_000, 0.99, 10*time.Millisecond, 60*time.Millisecond)
	for _, s := range sides {
		st := s.e.Stats()
		require.Greater(t, st.PacketsReceived, uint64(1000))
		require.Less(t, st.PacketsAcked, st.PacketsSent/20)
	}
}
