package fleet

import (
	"crypto/rand"
	"errors"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/kv"
	"github.com/bunchnet/bunchnet/netconn/kv/kvsim"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// bench is a store, and machines that are stepped every 10 ms.
type bench struct {
	t        *testing.T
	w        *simtest.Simulation
	store    *kvsim.Store
	machines []kv.Machine
	servers  []*Server
	placers  []*Placer
	outcomes map[*Placer]map[uint64]Outcome
}

type stepped struct {
	b    *bench
	m    kv.Machine
	view *kvsim.View
}

func (s *stepped) Tick(now time.Time) error {
	kv.Tick(s.m, s.view, now.Sub(simtest.Epoch))
	if p, ok := s.m.(*Placer); ok {
		for _, o := range p.Outcomes() {
			s.b.outcomes[p][o.ID] = o
		}
	}
	return nil
}

func newBench(t *testing.T, seed uint64, trouble kvsim.Trouble) *bench {
	b := &bench{t: t, outcomes: map[*Placer]map[uint64]Outcome{}}
	b.w = simtest.NewSimulation(seed, func(h *simtest.Host) (simtest.Program, error) {
		if h.Index() == 0 {
			return b.store, nil
		}
		m := b.machines[h.Index()-1]
		return &stepped{b, m, b.store.View(h, m)}, nil
	})
	b.store = kvsim.New(b.w.AddHost("store", true), trouble)
	return b
}

func (b *bench) add(m kv.Machine) {
	b.machines = append(b.machines, m)
	b.w.AddHost("host"+strconv.Itoa(len(b.machines)), true).SetTick(10 * time.Millisecond)
}

func (b *bench) server(edit func(c *ServerConfig)) *Server {
	n := len(b.servers) + 1
	c := ServerConfig{Name: "s" + strconv.Itoa(n), Info: Info{Addrs: []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}), 7777)}, Capacity: 10, Region: "eu", Build: "1", Schema: 7}}
	if edit != nil {
		edit(&c)
	}
	s, err := NewServer(c)
	require.NoError(b.t, err)
	s.Ready()
	b.servers = append(b.servers, s)
	b.add(s)
	return s
}

func (b *bench) placer(edit func(c *PlacerConfig)) *Placer {
	var c PlacerConfig
	if edit != nil {
		edit(&c)
	}
	p, err := NewPlacer(c)
	require.NoError(b.t, err)
	b.placers = append(b.placers, p)
	b.outcomes[p] = map[uint64]Outcome{}
	b.add(p)
	return p
}

func (b *bench) run(d time.Duration) {
	b.w.RunUntil(b.w.Now() + d)
	require.Nil(b.t, b.w.Failure())
}

// place places a want, and waits for the outcome.
func (b *bench) place(p *Placer, w Want) (Placement, error) {
	id, err := p.Place(w)
	if err != nil {
		return Placement{}, err
	}
	for range 1000 {
		if o, ok := b.outcomes[p][id]; ok {
			return o.Placement, o.Err
		}
		b.run(10 * time.Millisecond)
	}
	b.t.Fatal("no outcome")
	return Placement{}, nil
}

// come has a client with a ticket ask a server once.
func come(s *Server, id uint64, t Ticket) netcode.Admission {
	var user [netcode.UserDataBytes]byte
	t.Write(&user)
	return s.Admit(netcode.ClientInfo{ID: id, UserData: &user})
}

// TestThousandAtOnce: 1000 players ask 20 placers in one moment for the 1000 seats of 10 servers, and 100 more for none: each server gets exactly its 100, and exactly
// 100 are told that all is full, by both policies, also when the store is slow and loses answers.
func TestThousandAtOnce(t *testing.T) {
	for _, policy := range []Policy{Fill, Spread} {
		for name, trouble := range map[string]kvsim.Trouble{"quick": {}, "slow": {Delay: 20 * time.Millisecond, Slow: 5, SlowBy: 300 * time.Millisecond, LostResult: 2}} {
			b := newBench(t, 1, trouble)
			for range 10 {
				b.server(func(c *ServerConfig) { c.Info.Capacity, c.OpTimeout = 100, 500*time.Millisecond })
			}
			for range 20 {
				b.placer(func(c *PlacerConfig) {
					c.Policy, c.Deadline, c.OpTimeout = policy, 10*time.Second, 500*time.Millisecond
				})
			}
			b.run(3 * time.Second)
			for i := range 1100 {
				_, err := b.placers[i%20].Place(Want{Build: "1", Schema: 7})
				require.NoError(t, err)
			}
			for n, end := 0, b.w.Now()+time.Minute; n < 1100; {
				require.Less(t, b.w.Now(), end, "%s: %d outcomes", name, n)
				b.run(100 * time.Millisecond)
				n = 0
				for _, p := range b.placers {
					n += len(b.outcomes[p])
				}
			}
			placed, full := map[string]int{}, 0
			for _, p := range b.placers {
				for _, o := range b.outcomes[p] {
					if o.Err != nil {
						require.ErrorIs(t, o.Err, ErrFull, name)
						full++
						continue
					}
					placed[o.Placement.Server.ID]++
				}
			}
			for _, s := range b.servers {
				require.LessOrEqual(t, placed[s.ID()], 100, name)
				if name == "quick" {
					require.Equal(t, 100, placed[s.ID()])
				}
				value, _, ok := b.store.Entry(seatsKey + s.ID())
				require.True(t, ok)
				rec, err := parseSeats(value)
				require.NoError(t, err)
				require.LessOrEqual(t, rec.taken(), 100)
			}
			if name == "quick" {
				require.Equal(t, 100, full)
			}
			t.Logf("policy %d, %s: %d full, the store %+v", policy, name, full, b.store.Counters)
		}
	}
}

// TestChoice: near before far, the wanted server before all, the fullest or the emptiest by policy; not one that drains, is another build, is too far, too small, or
// isn't accepted; and each refusal says which of these it was.
func TestChoice(t *testing.T) {
	b := newBench(t, 1, kvsim.Trouble{})
	eu := b.server(nil)
	us := b.server(func(c *ServerConfig) { c.Info.Region, c.Info.Capacity = "us", 20 })
	old := b.server(func(c *ServerConfig) { c.Info.Build, c.Info.Builds = "0", []string{"0", "00"} })
	fill := b.placer(func(c *PlacerConfig) {
		c.MaxLatency = 100 * time.Millisecond
		c.Accept = func(i *Info) bool { return i.Load.TickP99 < time.Second }
	})
	spread := b.placer(func(c *PlacerConfig) { c.Policy = Spread })
	b.run(2 * time.Second)

	find := func(p *Placer, w Want) string {
		w.Schema = 7
		r, err := b.place(p, w)
		require.NoError(t, err)
		return r.Server.ID
	}
	near := map[string]time.Duration{"eu": 20 * time.Millisecond, "us": 90 * time.Millisecond}
	require.Equal(t, eu.ID(), find(fill, Want{Build: "1", Latency: near}))
	require.Equal(t, us.ID(), find(fill, Want{Build: "1", Latency: map[string]time.Duration{"eu": 95 * time.Millisecond, "us": 90 * time.Millisecond}}))
	require.Equal(t, us.ID(), find(fill, Want{Build: "1", Latency: near, Server: us.ID()}))
	require.Equal(t, us.ID(), find(fill, Want{Build: "1", Latency: near, Not: eu.ID()}))
	require.Equal(t, old.ID(), find(fill, Want{Build: "00"}))
	require.Equal(t, eu.ID(), find(fill, Want{Build: "1", Players: 9, Latency: near}))
	require.Equal(t, us.ID(), find(fill, Want{Build: "1", Latency: near}), "eu is full")
	require.Equal(t, us.ID(), find(spread, Want{Build: "1"}))

	for _, c := range []struct {
		w    Want
		want error
	}{
		{Want{Build: "2"}, ErrBuild},
		{Want{Schema: 8}, ErrBuild},
		{Want{Latency: map[string]time.Duration{"eu": time.Second}}, ErrRegion},
		{Want{Latency: map[string]time.Duration{}}, ErrRegion},
		{Want{Players: 21}, ErrTooLarge},
		{Want{Players: 20}, ErrFull},
		{Want{Players: 1 << 20}, ErrTooLarge},
		{Want{Party: "no spaces"}, ErrConfig},
	} {
		_, err := b.place(fill, c.w)
		require.ErrorIs(t, err, c.want, "%+v", c.w)
	}
	_, err := b.place(fill, Want{Build: "2"})
	var other *OtherBuild
	require.ErrorAs(t, err, &other)
	require.Equal(t, []string{"0", "00", "1"}, other.Builds)

	us.SetLoad(Load{TickP99: time.Second})
	old.Drain()
	b.run(2 * time.Second)
	_, err = b.place(fill, Want{})
	require.ErrorIs(t, err, ErrFull)
	require.Equal(t, us.ID(), find(spread, Want{}))
	for _, s := range b.servers {
		s.Drain()
	}
	b.run(2 * time.Second)
	_, err = b.place(fill, Want{})
	require.ErrorIs(t, err, ErrNoServers)
}

// TestParty: the members of a party get seats on one server from different placers, asked in one moment; a party that fits nowhere gets none; the seats of a party
// that two placers booked are taken back.
func TestParty(t *testing.T) {
	for seed := range uint64(20) {
		b := newBench(t, seed, kvsim.Trouble{})
		for range 3 {
			b.server(func(c *ServerConfig) { c.Info.Capacity = 5 })
		}
		for range 4 {
			b.placer(nil)
		}
		b.run(2 * time.Second)
		var ids []uint64
		for _, p := range b.placers {
			for range 2 { // and one of them asks again
				id, err := p.Place(Want{Party: "friends", Players: 4})
				require.NoError(t, err)
				ids = append(ids, id)
			}
		}
		b.run(2 * time.Second)
		first := b.outcomes[b.placers[0]][ids[0]]
		require.NoError(t, first.Err)
		for i, id := range ids {
			o := b.outcomes[b.placers[i/2]][id]
			require.NoError(t, o.Err)
			require.Equal(t, first.Placement.Ticket.placement, o.Placement.Ticket.placement, "seed %d", seed)
		}
		taken := 0
		for _, s := range b.servers {
			value, _, _ := b.store.Entry(seatsKey + s.ID())
			rec, err := parseSeats(value)
			require.NoError(t, err)
			taken += rec.taken()
			if s.ID() != first.Placement.Server.ID {
				continue
			}
			for id := range uint64(4) {
				require.Equal(t, netcode.Admit, come(s, id+1, first.Placement.Ticket))
			}
			require.Equal(t, netcode.Wait, come(s, 9, first.Placement.Ticket), "a fifth waits for the one seat that is left")
		}
		require.Equal(t, 4, taken, "seed %d", seed)
		_, err := b.place(b.placers[0], Want{Party: "too-many", Players: 6})
		require.ErrorIs(t, err, ErrTooLarge)
	}
}

// TestAsksAgain: a player with a party of its own has one seat however often it asks, at whichever placer, and its first token has other servers.
func TestAsksAgain(t *testing.T) {
	b := newBench(t, 1, kvsim.Trouble{})
	s := b.server(nil)
	b.server(nil)
	b.placer(nil)
	b.placer(nil)
	b.run(2 * time.Second)
	for i := range 20 {
		pl, err := b.place(b.placers[i%2], Want{Party: "player-7", Server: s.ID()})
		require.NoError(t, err)
		require.Equal(t, s.ID(), pl.Server.ID)
		if i == 0 {
			require.Len(t, pl.Backups, 1)
		}
	}
	require.Equal(t, 9, b.placers[0].Free(s.ID()))
	_, err := b.place(b.placers[0], Want{Party: "two", Players: 2})
	require.NoError(t, err)
}

// TestPartyStaysTogether: a member who wants to leave its party's server is placed there all the same.
func TestPartyStaysTogether(t *testing.T) {
	b := newBench(t, 1, kvsim.Trouble{})
	b.server(nil)
	b.server(nil)
	b.placer(nil)
	b.placer(nil)
	b.run(2 * time.Second)
	one, err := b.place(b.placers[0], Want{Party: "two", Players: 2})
	require.NoError(t, err)
	other, err := b.place(b.placers[1], Want{Party: "two", Players: 2, Not: one.Server.ID})
	require.NoError(t, err)
	require.Equal(t, one, other)
}

// seatsFor counts the seats of good placements in the store.
func (b *bench) seatsFor() (n int) {
	for _, s := range b.servers {
		value, _, _ := b.store.Entry(seatsKey + s.ID())
		rec, _ := parseSeats(value)
		for _, p := range rec.placements {
			if !p.revoked {
				n += p.seats
			}
		}
	}
	return n
}

// TestOneAccount: a player who asks once a second for three times the life of a seat, at all placers in turn, has one seat at each moment, and the last ticket is as good as
// the first. It may go elsewhere: then the seat before is revoked.
func TestOneAccount(t *testing.T) {
	b := newBench(t, 1, kvsim.Trouble{})
	for range 3 {
		b.server(nil)
	}
	for range 4 {
		b.placer(nil)
	}
	b.run(20 * time.Second)
	tickets := map[Ticket]bool{}
	var pl Placement
	for i := range 180 {
		var err error
		pl, err = b.place(b.placers[i%4], Want{Player: 7})
		require.NoError(t, err)
		tickets[pl.Ticket] = true
		b.run(time.Second)
		require.Equal(t, 1, b.seatsFor(), "second %d", i)
	}
	require.Less(t, len(tickets), 20, "the same placement for Life/2")
	for i := range 10 {
		not := pl.Server.ID
		var err error
		pl, err = b.place(b.placers[i%4], Want{Player: 7, Not: not})
		require.NoError(t, err)
		require.NotEqual(t, not, pl.Server.ID)
		b.run(time.Second)
		require.Equal(t, 1, b.seatsFor())
	}
	for _, s := range b.servers {
		if s.ID() != pl.Server.ID {
			require.Equal(t, netcode.Wait, come(s, 7, pl.Ticket))
			continue
		}
		require.Equal(t, netcode.Admit, come(s, 7, pl.Ticket))
		b.run(time.Second)
		again, err := b.place(b.placers[0], Want{Player: 7, Server: s.ID()})
		require.NoError(t, err)
		require.NotEqual(t, pl.Ticket, again.Ticket, "the seat before is used")
		require.Equal(t, netcode.Admit, come(s, 7, again.Ticket))
		b.run(time.Second)
		require.Equal(t, 9, b.placers[0].Free(s.ID()))
	}
}

// TestOneAccountFull: a player whose own seat is the last one keeps it when it asks again, early or late.
func TestOneAccountFull(t *testing.T) {
	b := newBench(t, 1, kvsim.Trouble{})
	s := b.server(func(c *ServerConfig) { c.Info.Capacity = 1 })
	p := b.placer(nil)
	b.run(2 * time.Second)
	var pl Placement
	for range 9 {
		var err error
		pl, err = b.place(p, Want{Player: 7})
		require.NoError(t, err)
		_, err = b.place(p, Want{Player: 8})
		require.ErrorIs(t, err, ErrFull)
		b.run(14 * time.Second)
	}
	require.Equal(t, netcode.Refuse, come(s, 8, Ticket{}))
	require.Equal(t, netcode.Admit, come(s, 7, pl.Ticket))
}

// TestOneAccountRace: a player asks all placers in one moment, for different servers, again and again, with a store that is slow: in the end it has one seat, and at least one of the answers is
// good there. Servers that are told so go on.
func TestOneAccountRace(t *testing.T) {
	for seed := range uint64(20) {
		b := newBench(t, seed, kvsim.Trouble{Delay: 5 * time.Millisecond, Slow: 10, SlowBy: 200 * time.Millisecond})
		for range 3 {
			b.server(func(c *ServerConfig) { c.Life = 6 * time.Second })
		}
		for range 4 {
			b.placer(func(c *PlacerConfig) { c.Life = 6 * time.Second })
		}
		b.run(4 * time.Second)
		for round := range 4 {
			good := map[uint64]bool{}
			var ids [8]uint64
			for i := range ids {
				var err error
				ids[i], err = b.placers[i%4].Place(Want{Player: 7, Server: b.servers[(i+round)%3].ID()})
				require.NoError(t, err)
			}
			b.run(2500 * time.Millisecond)
			for i, id := range ids {
				o := b.outcomes[b.placers[i%4]][id]
				require.NoError(t, o.Err, "seed %d", seed)
				good[slot(o.Placement.Ticket.placement)] = true
			}
			require.Equal(t, 1, b.seatsFor(), "seed %d, round %d", seed, round)
			for _, s := range b.servers {
				value, _, _ := b.store.Entry(seatsKey + s.ID())
				rec, err := parseSeats(value)
				require.NoError(t, err)
				for _, p := range rec.placements {
					require.True(t, good[slot(p.id)], "seed %d: a seat that nobody was told of", seed)
				}
			}
		}
	}
}

// TestRenewedSeat: a player's seat is renewed while its server can't hear of it. The server lets it in with the new ticket after the seat would have lapsed, who has come
// and gone by the old number comes again by the new one, and who is here by the old one has one seat.
func TestRenewedSeat(t *testing.T) {
	for _, name := range []string{"is here", "came", "never came"} {
		b := newBench(t, 1, kvsim.Trouble{})
		s := b.server(func(c *ServerConfig) { c.Info.Capacity, c.Life = 2, 6*time.Second })
		p := b.placer(func(c *PlacerConfig) { c.Life = 6 * time.Second })
		b.run(2 * time.Second)
		old, err := b.place(p, Want{Player: 7})
		require.NoError(t, err)
		b.run(8 * time.Second)
		store, host := b.w.Host("store"), b.w.Host("host1")
		b.w.Cut(store, host)
		b.w.Cut(host, store)
		if name != "never came" {
			require.Equal(t, netcode.Admit, come(s, 7, old.Ticket))
		}
		if name == "came" {
			s.Left(7)
		}
		pl, err := b.place(p, Want{Player: 7})
		require.NoError(t, err)
		require.Equal(t, renewed(old.Ticket.placement), pl.Ticket.placement, name)
		b.run(5 * time.Second)
		if name != "is here" {
			require.Equal(t, netcode.Admit, come(s, 7, pl.Ticket), name)
		}
		b.w.Join(store, host)
		b.w.Join(host, store)
		b.run(3 * time.Second)
		require.Equal(t, 1, s.Players())
		value, _, _ := b.store.Entry(seatsKey + s.ID())
		rec, err := parseSeats(value)
		require.NoError(t, err)
		require.Equal(t, seats{capacity: 2, held: 1}, rec, name)
	}
}

// TestStoreAnew: a store that was lost and made anew begins with revision 1. Servers announce themselves again, with who is there and who may come; players are placed; a ticket from before counts
// if its seat is there, and never as one that isn't seen yet.
func TestStoreAnew(t *testing.T) {
	b := newBench(t, 1, kvsim.Trouble{})
	s := b.server(nil)
	p := b.placer(nil)
	b.run(30 * time.Second)
	old, err := b.place(p, Want{Players: 4})
	require.NoError(t, err)
	used, err := b.place(p, Want{Player: 9})
	require.NoError(t, err)
	require.Equal(t, netcode.Admit, come(s, 9, used.Ticket))
	s.Left(9)
	b.run(time.Second)
	require.Equal(t, netcode.Admit, come(s, 1, old.Ticket))
	b.run(time.Second)
	pending, err := p.Place(Want{Player: 5})
	require.NoError(t, err)
	b.store.Anew()
	b.run(4 * time.Second)
	require.NoError(t, b.outcomes[p][pending].Err)
	require.True(t, s.Announced())
	require.Equal(t, 1, p.List().Len())
	require.Equal(t, 5, p.Free(s.ID()), "one who is there, three who may come, and the one who was being placed")
	pl, err := b.place(p, Want{Player: 6})
	require.NoError(t, err)
	b.run(time.Second)
	require.Equal(t, netcode.Admit, come(s, 2, old.Ticket))
	require.Equal(t, netcode.Admit, come(s, 6, pl.Ticket))
	require.Equal(t, netcode.Wait, come(s, 9, used.Ticket))
	require.Less(t, p.List().Age(), 2*time.Second)
}

// TestStoreAway: while the store is away the list stays and grows old, players with tickets come in, walk-ins are refused, and nobody is placed; then all goes on.
func TestStoreAway(t *testing.T) {
	b := newBench(t, 1, kvsim.Trouble{})
	s := b.server(nil)
	p := b.placer(nil)
	b.run(2 * time.Second)
	pl, err := b.place(p, Want{})
	require.NoError(t, err)
	store := b.w.Host("store")
	store.Pause(time.Minute)
	b.run(30 * time.Second)
	require.Equal(t, 1, p.List().Len())
	require.Greater(t, p.List().Age(), 29*time.Second)
	require.False(t, s.Announced())
	require.Equal(t, netcode.Admit, come(s, 1, pl.Ticket))
	require.Equal(t, netcode.Wait, come(s, 2, Ticket{}))
	_, err = b.place(p, Want{})
	require.ErrorIs(t, err, ErrUnavailable)
	require.Equal(t, netcode.Wait, come(s, 3, Ticket{}))
	store.Wake()
	b.run(10 * time.Second)
	require.Less(t, p.List().Age(), 2*time.Second)
	require.True(t, s.Announced())
	_, err = b.place(p, Want{})
	require.NoError(t, err)
}

// TestWalkIn: a client without a placement waits until the store has a seat for it, and is refused when there is none; its seat is free when it leaves or never comes.
func TestWalkIn(t *testing.T) {
	b := newBench(t, 1, kvsim.Trouble{})
	s := b.server(func(c *ServerConfig) { c.Info.Capacity = 2 })
	p := b.placer(nil)
	b.run(2 * time.Second)
	require.Equal(t, netcode.Wait, come(s, 1, Ticket{}))
	require.Equal(t, netcode.Wait, come(s, 2, Ticket{}))
	require.Equal(t, netcode.Refuse, come(s, 3, Ticket{}))
	b.run(200 * time.Millisecond)
	require.Equal(t, netcode.Admit, come(s, 1, Ticket{}))
	_, err := b.place(p, Want{})
	require.ErrorIs(t, err, ErrFull)
	b.run(10 * time.Second) // 2 never comes back
	pl, err := b.place(p, Want{})
	require.NoError(t, err)
	require.Equal(t, netcode.Refuse, come(s, 3, Ticket{}))
	require.Equal(t, netcode.Admit, come(s, 4, pl.Ticket))
	require.Equal(t, netcode.Admit, come(s, 4, Ticket{}), "it dials again")
	s.Left(4)
	require.Equal(t, 2, s.Players())
	s.Left(4)
	require.Equal(t, 1, s.Players())
	require.Equal(t, netcode.Wait, come(s, 5, Ticket{}))
	require.EqualValues(t, 2, s.Counters.Refused)
}

// TestWalkInWithoutStore: while the store doesn't answer a walk-in is refused after 2 s, so that it tries the next server.
func TestWalkInWithoutStore(t *testing.T) {
	b := newBench(t, 1, kvsim.Trouble{})
	s := b.server(nil)
	b.run(2 * time.Second)
	b.w.Host("store").Pause(time.Minute)
	began := b.w.Now()
	for come(s, 1, Ticket{}) == netcode.Wait {
		b.run(100 * time.Millisecond)
		require.LessOrEqual(t, b.w.Now()-began, 2200*time.Millisecond)
	}
	require.GreaterOrEqual(t, b.w.Now()-began, 1900*time.Millisecond)
	require.Zero(t, s.Players())
}

// TestWalkInWithoutOutcome: a walk-in whose seat is in the store, though nobody told the server, is let in.
func TestWalkInWithoutOutcome(t *testing.T) {
	s, err := NewServer(ServerConfig{Info: Info{Addrs: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:1")}, Capacity: 1}})
	require.NoError(t, err)
	s.Ready()
	store, rev, lost, now := map[string]kv.Event{}, uint64(0), 0, time.Duration(0)
	var in []kv.Event
	answer := netcode.Wait
	for ; now < time.Second && answer == netcode.Wait; now += 10 * time.Millisecond {
		if now > 200*time.Millisecond {
			answer = come(s, 1, Ticket{})
		}
		out := s.Step(now, in)
		in = nil
		for _, op := range out {
			e := store[op.Key]
			e.ID = op.ID
			switch {
			case op.Kind == kv.Get && e.Revision == 0:
				e.Status = kv.Missing
			case op.Kind == kv.Put:
				rev++
				store[op.Key] = kv.Event{Key: op.Key, Value: op.Value, Revision: rev}
				e = kv.Event{ID: op.ID, Revision: rev}
				if rec, err := parseSeats(op.Value); err == nil && rec.held == 1 && lost == 0 {
					lost++
					e = kv.Event{ID: op.ID, Status: kv.Unknown}
				}
			}
			in = append(in, e)
		}
	}
	require.Equal(t, 1, lost)
	require.Equal(t, netcode.Admit, answer)
}

// TestOtherVersion: a server whose record of seats can't be read, such as one of another version, is left out: the others' players are placed, or told that all is full, as
// ever. Its record is counted.
func TestOtherVersion(t *testing.T) {
	b := newBench(t, 1, kvsim.Trouble{})
	b.server(func(c *ServerConfig) { c.Info.Capacity = 1 })
	p := b.placer(nil)
	other := Info{ID: "other-1", Addrs: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.9:1")}, Capacity: 1000, State: Ready, Build: "1", Schema: 7}
	announced, err := other.encode()
	require.NoError(t, err)
	w := &writer{}
	b.add(w)
	b.run(time.Second)
	w.ops = []kv.Op{{ID: 1, Kind: kv.Put, Key: serverKey + other.ID, Value: announced}, {ID: 2, Kind: kv.Put, Key: seatsKey + other.ID, Value: []byte{seatsVersion + 1, 0, 1, 2, 3}}}
	b.run(2 * time.Second)
	require.Equal(t, 2, p.List().Len())
	_, err = b.place(p, Want{})
	require.NoError(t, err)
	began := b.w.Now()
	_, err = b.place(p, Want{})
	require.ErrorIs(t, err, ErrFull)
	require.Less(t, b.w.Now()-began, time.Second)
	require.NotZero(t, p.Counters.Unreadable)
}

// writer is a machine that writes once.
type writer struct{ ops []kv.Op }

func (w *writer) Watches() []string { return nil }

func (w *writer) Step(time.Duration, []kv.Event) (out []kv.Op) {
	out, w.ops = w.ops, nil
	return out
}

// TestSpreadTie: placers that see servers equally empty don't all take the same one, which they would write one after another; one placer goes through all of them.
func TestSpreadTie(t *testing.T) {
	b := newBench(t, 1, kvsim.Trouble{})
	const servers = 20
	for range servers {
		b.server(nil)
	}
	first := map[string]int{}
	for range 20 {
		b.placer(func(c *PlacerConfig) { c.Policy = Spread })
	}
	b.run(2 * time.Second)
	for _, p := range b.placers {
		_, err := p.Place(Want{})
		require.NoError(t, err)
	}
	b.run(time.Second)
	conflicts := uint64(0)
	for _, p := range b.placers {
		conflicts += p.Counters.Conflicts
		for _, o := range b.outcomes[p] {
			require.NoError(t, o.Err)
			first[o.Placement.Server.ID]++
		}
	}
	t.Log(len(first), "servers,", conflicts, "conflicts")
	require.Less(t, conflicts, uint64(60), "with one order for all placers there are about 95")
	for range 2 * servers {
		_, err := b.place(b.placers[0], Want{})
		require.NoError(t, err)
	}
	for id, n := range first {
		require.LessOrEqual(t, n, 5, id)
	}
}

// TestEarly: a client may come before its server has heard of its placement.
func TestEarly(t *testing.T) {
	b := newBench(t, 1, kvsim.Trouble{})
	s := b.server(func(c *ServerConfig) { c.Info.Capacity = 3 })
	p := b.placer(nil)
	b.run(2 * time.Second)
	b.w.Cut(b.w.Host("store"), b.w.Host("host1"))
	b.w.Cut(b.w.Host("host1"), b.w.Host("store"))
	pl, err := b.place(p, Want{Players: 2})
	require.NoError(t, err)
	require.Equal(t, netcode.Admit, come(s, 1, pl.Ticket))
	b.w.Join(b.w.Host("store"), b.w.Host("host1"))
	b.w.Join(b.w.Host("host1"), b.w.Host("store"))
	b.run(5 * time.Second)
	require.Equal(t, 1, p.Free(s.ID()))
	require.Equal(t, netcode.Admit, come(s, 2, pl.Ticket))
	b.run(time.Second)
	require.Equal(t, 1, p.Free(s.ID()))
	require.Equal(t, 2, s.Players())
}

// TestLapse: seats for players who never come are free after twice Life, and not before.
func TestLapse(t *testing.T) {
	b := newBench(t, 1, kvsim.Trouble{})
	s := b.server(func(c *ServerConfig) { c.Life = 6 * time.Second })
	p := b.placer(func(c *PlacerConfig) { c.Life = 6 * time.Second })
	b.run(2 * time.Second)
	_, err := b.place(p, Want{Players: 10})
	require.NoError(t, err)
	b.run(11 * time.Second)
	require.Zero(t, p.Free(s.ID()))
	b.run(2 * time.Second)
	require.Equal(t, 10, p.Free(s.ID()))
	require.EqualValues(t, 10, s.Counters.Lapsed)
}

// TestDrainAndStop: a server that drains gets nobody new, lets in who was placed before, is drained when all have gone, and deletes its keys.
func TestDrainAndStop(t *testing.T) {
	b := newBench(t, 1, kvsim.Trouble{})
	s := b.server(nil)
	p := b.placer(nil)
	b.run(2 * time.Second)
	require.True(t, s.Announced())
	pl, err := b.place(p, Want{Players: 2})
	require.NoError(t, err)
	s.Drain()
	require.False(t, s.Announced())
	b.run(time.Second)
	require.True(t, s.Announced())
	_, err = b.place(p, Want{})
	require.ErrorIs(t, err, ErrNoServers)
	require.Equal(t, netcode.Admit, come(s, 1, pl.Ticket))
	require.Equal(t, netcode.Admit, come(s, 2, pl.Ticket))
	require.Equal(t, netcode.Refuse, come(s, 3, Ticket{}))
	s.Left(1)
	b.run(time.Second)
	require.False(t, s.Drained())
	s.Left(2)
	b.run(time.Second)
	require.True(t, s.Drained())
	s.Stop()
	b.run(time.Second)
	require.True(t, s.Stopped())
	require.Equal(t, netcode.Refuse, come(s, 4, Ticket{}))
	require.Zero(t, p.List().Len())
	for _, key := range []string{serverKey, seatsKey} {
		_, _, ok := b.store.Entry(key + s.ID())
		require.False(t, ok)
	}
}

// TestWipedStore: when a store has lost everything, servers announce themselves again, with who is there.
func TestWipedStore(t *testing.T) {
	b := newBench(t, 1, kvsim.Trouble{})
	s := b.server(nil)
	p := b.placer(nil)
	b.run(2 * time.Second)
	pl, err := b.place(p, Want{Players: 4})
	require.NoError(t, err)
	b.run(time.Second)
	require.Equal(t, netcode.Admit, come(s, 1, pl.Ticket))
	b.run(time.Second)
	b.store.Wipe()
	b.run(3 * time.Second)
	require.Equal(t, 1, p.List().Len())
	require.Equal(t, 6, p.Free(s.ID()), "one who is there, three who may come")
	require.Equal(t, netcode.Admit, come(s, 2, pl.Ticket))
}

// TestConfigErrors: settings that can't work are refused, in words.
func TestConfigErrors(t *testing.T) {
	addrs := []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:1")}
	for _, c := range []ServerConfig{
		{},
		{Info: Info{Addrs: addrs}},
		{Info: Info{Addrs: addrs, Capacity: MaxCapacity + 1}},
		{Info: Info{Addrs: []netip.AddrPort{netip.MustParseAddrPort("0.0.0.0:1")}, Capacity: 1}},
		{Info: Info{Addrs: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:0")}, Capacity: 1}},
		{Info: Info{Addrs: addrs, Capacity: 1}, Name: "a.b"},
		{Info: Info{Addrs: addrs, Capacity: 1}, Timing: Timing{Expiry: 2 * time.Second}},
		{Info: Info{Addrs: addrs, Capacity: 1, Builds: make([]string, 5000)}},
	} {
		_, err := NewServer(c)
		require.ErrorIs(t, err, ErrConfig, "%+v", c)
	}
	for _, c := range []PlacerConfig{{Policy: 2}, {Deadline: time.Minute}, {Backups: 32}, {ListConfig: ListConfig{Name: "a b"}}, {ListConfig: ListConfig{Timing: Timing{Life: 1}}}} {
		_, err := NewPlacer(c)
		require.ErrorIs(t, err, ErrConfig, "%+v", c)
	}
	p, err := NewPlacer(PlacerConfig{MaxWants: 1})
	require.NoError(t, err)
	_, err = p.Place(Want{})
	require.NoError(t, err)
	_, err = p.Place(Want{})
	require.ErrorIs(t, err, ErrBusy)
	_, err = NewServer(ServerConfig{Info: Info{Addrs: addrs, Capacity: 1}, Rand: noRandom{}})
	require.ErrorIs(t, err, errNoRandom)
}

type noRandom struct{}

var errNoRandom = errors.New("no randomness")

func (noRandom) Read([]byte) (int, error) { return 0, errNoRandom }

// TestTicket: a ticket goes through a token's user data beside the game's own.
func TestTicket(t *testing.T) {
	var user [netcode.UserDataBytes]byte
	for i := range user {
		user[i] = 0xee
	}
	require.Equal(t, Ticket{}, readTicket(&user))
	want := Ticket{1, 2, 3, MaxCapacity}
	want.Write(&user)
	require.Equal(t, want, readTicket(&user))
	require.EqualValues(t, 0xee, user[netcode.UserDataBytes-TicketBytes-1])
}

// FuzzSeats: what is read is written the same, whatever it is, and what isn't a record is refused.
func FuzzSeats(f *testing.F) {
	f.Add((&seats{capacity: 5, held: 2, placements: []placement{{7, 2, false}, {8, 1, true}}}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseSeats(b)
		if err != nil {
			return
		}
		again, err := parseSeats(s.encode())
		require.NoError(t, err)
		require.Equal(t, s, again)
		require.LessOrEqual(t, len(s.encode()), kv.MaxValue)
	})
}

// FuzzInfo: an announcement of anybody is one that could have been made, or refused.
func FuzzInfo(f *testing.F) {
	s, err := NewServer(ServerConfig{Info: Info{Addrs: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:1")}, Capacity: 3, Builds: []string{"1"}}, Rand: rand.Reader})
	require.NoError(f, err)
	b, err := s.info.encode()
	require.NoError(f, err)
	f.Add(s.ID(), b)
	f.Fuzz(func(t *testing.T, id string, b []byte) {
		if i, err := parseInfo(id, b); err == nil {
			require.NoError(t, i.check())
			require.Equal(t, id, i.ID)
		}
	})
}

// FuzzParty: the same of a party's placement.
func FuzzParty(f *testing.F) {
	f.Add(encodeParty("s1-abc", Ticket{1, 2, 3, 4}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if server, ticket, err := parseParty(b); err == nil {
			require.Equal(t, b, encodeParty(server, ticket))
		}
	})
}

// TestLateWrites: a write that happens long after it was given up keeps no seat: when all is quiet, each server's record has the placements that were told, and no others.
func TestLateWrites(t *testing.T) {
	for seed := range uint64(10) {
		b := newBench(t, seed, kvsim.Trouble{Delay: 20 * time.Millisecond, Slow: 20, SlowBy: time.Second, LostOp: 3, LostResult: 3})
		for range 5 {
			b.server(func(c *ServerConfig) { c.Info.Capacity = 20 })
		}
		for range 4 {
			b.placer(func(c *PlacerConfig) {
				c.Policy, c.Deadline, c.OpTimeout = Spread, time.Second, 300*time.Millisecond
			})
		}
		b.run(5 * time.Second)
		failed := 0
		placed := map[string]int{}
		for i := range 120 { // more than there are seats
			for _, p := range b.placers {
				if i%4 == 0 {
					_, err := p.Place(Want{})
					require.NoError(t, err)
				}
			}
			b.run(50 * time.Millisecond)
		}
		b.run(10 * time.Second)
		for _, p := range b.placers {
			for _, o := range b.outcomes[p] {
				if o.Err == nil {
					placed[o.Placement.Server.ID]++
				} else {
					failed++
				}
			}
		}
		for _, s := range b.servers {
			value, _, ok := b.store.Entry(seatsKey + s.ID())
			require.True(t, ok)
			rec, err := parseSeats(value)
			require.NoError(t, err)
			require.Equal(t, placed[s.ID()], rec.taken(), "seed %d, %d failed, %v", seed, failed, placed)
		}
	}
}
