package fleet

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/kv"
	"github.com/bunchnet/bunchnet/netconn/kv/kvsim"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

var hostileAddrs = []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:7777")}

// TestPartyBringsMore: when more players come with a party's ticket than it has seats, those beyond have none, also before their server has heard of the placement: the seats of others stay theirs.
func TestPartyBringsMore(t *testing.T) {
	b := newBench(t, 1, kvsim.Trouble{})
	s := b.server(func(c *ServerConfig) { c.Info.Capacity = 4 })
	p := b.placer(nil)
	b.run(2 * time.Second)
	store, host := b.w.Host("store"), b.w.Host("host1")
	b.w.Cut(store, host)
	b.w.Cut(host, store)
	two, err := b.place(p, Want{Players: 2, Party: "two"})
	require.NoError(t, err)
	again, err := b.place(p, Want{Players: 3, Party: "two"})
	require.NoError(t, err)
	require.Equal(t, two.Ticket, again.Ticket)
	others, err := b.place(p, Want{Players: 2, Party: "others"})
	require.NoError(t, err)
	admitted := 0
	for id := range uint64(4) {
		if come(s, id+1, two.Ticket) == netcode.Admit {
			admitted++
		}
	}
	require.Equal(t, 2, admitted)
	require.Equal(t, netcode.Admit, come(s, 11, others.Ticket))
	require.Equal(t, netcode.Admit, come(s, 12, others.Ticket))
	b.w.Join(store, host)
	b.w.Join(host, store)
	b.run(5 * time.Second)
	require.Equal(t, 4, s.Players())
	require.Zero(t, p.Free(s.ID()))
}

// TestOtherBuilds: who is of a build that no server takes is told all builds that servers take, however many servers there are of each.
func TestOtherBuilds(t *testing.T) {
	b := newBench(t, 1, kvsim.Trouble{})
	for range 20 {
		b.server(nil)
	}
	b.server(func(c *ServerConfig) { c.Name, c.Info.Build, c.Info.Builds = "z", "5", []string{"3", "2"} })
	p := b.placer(nil)
	b.run(2 * time.Second)
	_, err := b.place(p, Want{Build: "9"})
	var other *OtherBuild
	require.ErrorAs(t, err, &other)
	require.Equal(t, []string{"1", "2", "3"}, other.Builds)
}

// TestLyingAnnouncements: what servers lie in their announcements and records ends no placer, is skipped and counted, and takes nobody's seat elsewhere.
func TestLyingAnnouncements(t *testing.T) {
	honest, err := NewServer(ServerConfig{Info: Info{Addrs: hostileAddrs, Capacity: 2}})
	require.NoError(t, err)
	p, err := NewPlacer(PlacerConfig{})
	require.NoError(t, err)
	good, err := honest.info.encode()
	require.NoError(t, err)
	bad := uint64(0)
	in := []kv.Event{{Kind: kv.Begin, Store: 1}}
	rev := uint64(0)
	tell := func(key, value string) {
		rev++
		in = append(in, kv.Event{Kind: kv.Changed, Key: key, Value: []byte(value), Revision: rev})
	}
	lie := func(key, value string) {
		bad++
		tell(key, value)
	}
	info := func(id, more string) string {
		return fmt.Sprintf(`{"id":%q,"addrs":["192.0.2.9:1"],"capacity":3,"state":"ready",%s}`, id, more)
	}
	lie("server.a", info("a", `"capacity":2147483648`))
	lie("server.b", info("b", `"capacity":-1`))
	lie("server.c", info("c", `"capacity":9223372036854775808`))
	lie("server.d", info("a", `"region":"another's id"`))
	lie("server.e", info("e", `"region":"`+strings.Repeat("x", 64<<10)+`"`))
	lie("server.f", info("f", `"builds":`+strings.Repeat("[", 4000)))
	lie("server.g", `{"id":"g","capacity":1,"state":"ready"}`)
	lie("server.", info("", `"region":""`))
	lie("server.x y", info("x y", `"region":""`))
	lie("server."+strings.Repeat("n", 64<<10), info(strings.Repeat("n", 64<<10), `"region":""`))
	lie("server.h", "")
	lie("server.i", info("i", `"addrs":["0.0.0.0:1"]`))
	lie("server.j", info("j", `"addrs":["192.0.2.1:0"]`))
	lie("server.k", info("k", `"addrs":["[fe80::1%eth0]:1"]`))
	tell("server.m", info("m", `"load":{"tick_p99":-9223372036854775808,"connections":-2147483648,"bytes_out":-1,"bytes_in":9223372036854775807}`)) // for people
	tell("server.o", info("o", `"state":"nonsense"`))
	tell(serverKey+honest.ID(), strings.Replace(string(good), `"starting"`, `"ready"`, 1))
	record := seats{capacity: 2, held: 1}
	tell(seatsKey+honest.ID(), string(record.encode()))
	record = seats{capacity: MaxCapacity, held: MaxCapacity, placements: []placement{{id: 1, seats: MaxCapacity}, {id: 2, seats: MaxCapacity}}}
	tell("seats.m", string(record.encode()))
	tell("seats.o", "\x02\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00")
	tell("seats."+strings.Repeat("n", 64<<10), string(record.encode()))
	in = append(in, kv.Event{Kind: kv.Current})
	mark := p.Step(0, in)[0]
	rev++
	p.Step(time.Millisecond, []kv.Event{{Kind: kv.Changed, Key: mark.Key, Value: mark.Value, Revision: rev}})
	require.Equal(t, bad, p.List().Bad)
	require.EqualValues(t, 1, p.Counters.Unreadable)
	require.Equal(t, 1, p.Free(honest.ID()))
	require.Zero(t, p.Free("m"))
	id, err := p.Place(Want{})
	require.NoError(t, err)
	var put kv.Op
	for _, op := range p.Step(2*time.Millisecond, nil) {
		if strings.HasPrefix(op.Key, seatsKey) {
			put = op
		}
	}
	require.Equal(t, seatsKey+honest.ID(), put.Key)
	p.Step(3*time.Millisecond, []kv.Event{{Kind: kv.Result, ID: put.ID, Revision: rev + 1}})
	o := p.Outcomes()
	require.Len(t, o, 1)
	require.Equal(t, id, o[0].ID)
	require.NoError(t, o[0].Err)
	require.Equal(t, honest.ID(), o[0].Placement.Server.ID)
}

// TestStubbornStore: with a store that refuses, never answers, or answers what it wasn't asked, a want has an error at its Deadline, a server isn't announced, and stops in the end; and a store that fails
// at once isn't asked in each step.
func TestStubbornStore(t *testing.T) {
	for name, answer := range map[string]func(op kv.Op) []kv.Event{
		"conflict": func(op kv.Op) []kv.Event { return []kv.Event{{Kind: kv.Result, ID: op.ID, Status: kv.Conflict}} },
		"unknown":  func(op kv.Op) []kv.Event { return []kv.Event{{Kind: kv.Result, ID: op.ID, Status: kv.Unknown}} },
		"missing":  func(op kv.Op) []kv.Event { return []kv.Event{{Kind: kv.Result, ID: op.ID, Status: kv.Missing}} },
		"mute":     func(kv.Op) []kv.Event { return nil },
		"reads only": func(op kv.Op) []kv.Event {
			if op.Kind == kv.Get {
				return []kv.Event{{Kind: kv.Result, ID: op.ID, Status: kv.Missing}}
			}
			return []kv.Event{{Kind: kv.Result, ID: op.ID, Status: kv.Unknown}}
		},
		"twice": func(op kv.Op) []kv.Event {
			e := kv.Event{Kind: kv.Result, ID: op.ID, Status: kv.Unknown}
			return []kv.Event{e, e, {Kind: kv.Result, ID: op.ID + 1000}, {Kind: kv.Result, ID: 0, Status: kv.OK}}
		},
	} {
		s, err := NewServer(ServerConfig{Info: Info{Addrs: hostileAddrs, Capacity: 2}})
		require.NoError(t, err)
		s.Ready()
		ready := s.info
		p, err := NewPlacer(PlacerConfig{})
		require.NoError(t, err)
		b, err := ready.encode()
		require.NoError(t, err)
		rec := seats{capacity: 2}
		pIn := []kv.Event{{Kind: kv.Begin, Store: 1}, {Kind: kv.Changed, Key: serverKey + s.ID(), Value: b, Revision: 1}, {Kind: kv.Changed, Key: seatsKey + s.ID(), Value: rec.encode(), Revision: 2}, {Kind: kv.Current}}
		sIn := []kv.Event{{Kind: kv.Begin, Store: 1}, {Kind: kv.Current}}
		ops, opsOfServer, rev := 0, 0, uint64(10)
		var outcome *Outcome
		at := time.Duration(0)
		for ; at < 20*time.Second; at += 10 * time.Millisecond {
			if at == 2*time.Second {
				_, err = p.Place(Want{Player: 7})
				require.NoError(t, err)
			}
			var next []kv.Event
			for _, op := range p.Step(at, pIn) {
				ops++
				if strings.HasPrefix(op.Key, markKey) { // the list is fresh
					rev++
					next = append(next, kv.Event{Kind: kv.Changed, Key: op.Key, Value: op.Value, Revision: rev})
					rev++
					next = append(next, kv.Event{Kind: kv.Changed, Key: serverKey + s.ID(), Value: b, Revision: rev})
				}
				next = append(next, answer(op)...)
			}
			pIn, next = next, nil
			for _, op := range s.Step(at, sIn) {
				opsOfServer++
				next = append(next, answer(op)...)
			}
			sIn = next
			if o := p.Outcomes(); len(o) > 0 {
				require.Nil(t, outcome)
				outcome = &o[0]
			}
		}
		require.NotNil(t, outcome, name)
		require.Error(t, outcome.Err, name)
		require.Zero(t, len(p.wants))
		require.False(t, s.Announced())
		if name != "conflict" && name != "missing" { // which no store answers to all
			require.LessOrEqual(t, ops, 22+5*40, name)
			require.LessOrEqual(t, opsOfServer, 20*80, name)
		}
		t.Logf("%s: %v; %d ops of the placer, %d of the server in 20 s", name, outcome.Err, ops, opsOfServer)
		s.Drain()
		s.Stop()
		for until := at + 3*time.Second; !s.Stopped(); at += 10 * time.Millisecond {
			require.Less(t, at, until, name)
			ops := s.Step(at, sIn)
			sIn = sIn[:0]
			for _, op := range ops {
				sIn = append(sIn, answer(op)...)
			}
		}
	}
}

// TestOneTokenEverywhere: a client that brings one token to all of its servers at once has one seat at each.
func TestOneTokenEverywhere(t *testing.T) {
	b := newBench(t, 1, kvsim.Trouble{})
	for range 3 {
		b.server(nil)
	}
	p := b.placer(nil)
	b.run(2 * time.Second)
	pl, err := b.place(p, Want{Player: 5})
	require.NoError(t, err)
	in := 0
	for range 100 {
		for _, s := range b.servers {
			if s.Players() == 0 && come(s, 5, pl.Ticket) == netcode.Admit {
				in++
			}
		}
		b.run(20 * time.Millisecond)
	}
	b.run(time.Second)
	free := 0
	for _, s := range b.servers {
		free += p.Free(s.ID())
	}
	require.Equal(t, 3, in)
	require.Equal(t, 30-in, free)
}
