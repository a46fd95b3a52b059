package mesh

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/kv"
)

// The market is three servers in a row and a store, without a network: what one sends the others have in their next step. Two sheep trade while they walk from server to server. One op of the store, of all that
// a run has, goes wrong, or its server crashes at it.

// mishap is what happens at an op of the store.
type mishap struct {
	what    string
	crash   bool // of the server that asks
	lost    bool // it is never done
	unknown bool // the server hears at once that nobody knows
	doneAt  time.Duration
	toldAt  time.Duration
	untold  bool
}

var mishaps = []mishap{
	{what: "crash before", crash: true, lost: true},
	{what: "crash after", crash: true},
	{what: "crash, done 1 s later", crash: true, doneAt: time.Second},
	{what: "crash, done 2.5 s later", crash: true, doneAt: 2500 * time.Millisecond},
	{what: "crash, done 6 s later", crash: true, doneAt: 6 * time.Second},
	{what: "lost", lost: true, untold: true},
	{what: "lost, unknown", lost: true, unknown: true},
	{what: "done, unknown", unknown: true},
	{what: "done, no answer", untold: true},
	{what: "done 400 ms later, unknown", doneAt: 400 * time.Millisecond, unknown: true},
	{what: "done 3 s later, unknown", doneAt: 3 * time.Second, unknown: true},
	{what: "done 400 ms later", doneAt: 400 * time.Millisecond},
	{what: "done 600 ms later", doneAt: 600 * time.Millisecond},
	{what: "answer 450 ms later", toldAt: 450 * time.Millisecond},
	{what: "answer 700 ms later", toldAt: 700 * time.Millisecond},
	{what: "answer 3 s later", toldAt: 3 * time.Second},
}

type market struct {
	now     time.Duration
	keys    map[string]kv.Event
	ends    map[string]uint64 // when a key was deleted
	rev     uint64
	ops     int
	wrong   map[int]mishap // by number of the op
	hit     []string
	stalls  []*stall
	later   []laterOp
	starts  uint32
	sheep   []netguid.GUID
	acked   map[netguid.GUID]bool
	said    map[netguid.GUID]uint64 // the highest number of a deal that the store was said to have
	done    int                     // of the plot
	trouble string
	rng     *rand.Rand // nil: all clocks are right, and packets between servers come at once
	dealt   int
}

type laterOp struct {
	at time.Duration
	do func()
}

// stall is a server of the market.
type stall struct {
	m      *market
	id     string
	number uint32
	world  *actorrep.World
	zone   *Zone
	keeper *Keeper
	in     []kv.Event
	inbox  []func()
	dead   bool
	ahead  time.Duration // of its clock
	ppm    int64
}

func newMarket(wrong map[int]mishap, rng *rand.Rand) *market {
	m := &market{keys: map[string]kv.Event{}, ends: map[string]uint64{}, wrong: wrong, acked: map[netguid.GUID]bool{}, said: map[netguid.GUID]uint64{}, rng: rng}
	for i := range 3 {
		m.start(i)
	}
	return m
}

// start begins a server, whose zone is of this number when nobody has it.
func (m *market) start(zone int) {
	s := &stall{m: m, id: fmt.Sprintf("s%d", m.starts), number: m.starts}
	m.starts++
	if m.rng != nil {
		s.ahead, s.ppm = time.Duration(m.rng.Int64N(int64(2*time.Hour))), m.rng.Int64N(19001)-9500
	}
	s.world = actorrep.NewServer(actorrep.Config{IDs: netguid.Share{Server: s.number, Servers: 64}})
	m.check(s.world.Register("Sheep", (*sheep)(nil)))
	plan := Table{Cell: 100, Columns: 3, Servers: []string{"west", "mid", "east"}}
	own := plan
	own.Epoch, own.Servers = 1, []string{s.id, s.id, s.id}
	var err error
	s.zone, err = NewZone(ZoneConfig{ID: s.id, World: s.world, Game: s, Table: own, Margin: 10, Hysteresis: 1, Key: [32]byte{1}, Rand: &counted{n: byte(37 * s.number)}, ToServer: func(to string, b []byte) {
		b = slices.Clone(b)
		wait := time.Duration(0)
		if m.rng != nil {
			if m.rng.IntN(10) == 0 {
				return
			}
			wait = time.Duration(m.rng.Int64N(int64(50 * time.Millisecond)))
			if m.rng.IntN(20) == 0 {
				wait *= 60
			}
		}
		m.after(wait, func() {
			if o := m.byID(to); o != nil {
				o.inbox = append(o.inbox, func() { m.check(o.zone.Receive(s.id, b)) })
			}
		})
	}})
	m.check(err)
	s.keeper, err = NewKeeper(KeeperConfig{Zone: s.zone, Plan: plan, Zones: plan.Servers[zone : zone+1], Deals: s, Spread: time.Second, Checkpoint: time.Second, Save: s.save})
	m.check(err)
	m.stalls = append(m.stalls, s)
	m.watch(s)
}

func (m *market) check(err error) {
	if err != nil && m.trouble == "" {
		m.trouble = err.Error()
	}
}

func (m *market) byID(id string) *stall {
	for _, s := range m.stalls {
		if s.id == id && !s.dead {
			return s
		}
	}
	return nil
}

func (m *market) watch(s *stall) {
	s.in = append(s.in, kv.Event{Kind: kv.Begin, Store: 1})
	for _, key := range slices.Sorted(maps.Keys(m.keys)) {
		if kv.Matches(s.keeper.Watches(), key) {
			s.in = append(s.in, m.keys[key])
		}
	}
	s.in = append(s.in, kv.Event{Kind: kv.Current})
}

// do has the store do an op that was begun when it had a revision.
func (m *market) do(op kv.Op, since uint64) kv.Event {
	have, ok := m.keys[op.Key]
	r := kv.Event{Kind: kv.Result, ID: op.ID}
	tell := func(e kv.Event) {
		for _, s := range m.stalls {
			if kv.Matches(s.keeper.Watches(), op.Key) {
				s.in = append(s.in, e)
			}
		}
	}
	switch {
	case op.Kind == kv.Get && !ok:
		r.Status = kv.Missing
	case op.Kind == kv.Get:
		r.Key, r.Value, r.Revision = op.Key, have.Value, have.Revision
	case op.Expect != kv.Any && op.Expect != have.Revision, op.Kind == kv.Put && !ok && m.ends[op.Key] > since:
		r.Status = kv.Conflict
	case op.Kind == kv.Put:
		m.rev++
		r.Revision = m.rev
		m.keys[op.Key] = kv.Event{Kind: kv.Changed, Key: op.Key, Value: op.Value, Revision: m.rev}
		tell(m.keys[op.Key])
	case ok:
		m.rev++
		delete(m.keys, op.Key)
		m.ends[op.Key] = m.rev
		tell(kv.Event{Kind: kv.Deleted, Key: op.Key, Revision: m.rev})
	}
	return r
}

// asked is an op of a server. It reports whether the server is still there.
func (m *market) asked(s *stall, op kv.Op) bool {
	m.ops++
	w, ok := m.wrong[m.ops]
	since := m.rev
	tell := func(e kv.Event) {
		if !w.untold && !w.unknown && !w.crash {
			m.after(w.toldAt, func() { s.in = append(s.in, e) })
		}
	}
	if ok {
		m.hit = append(m.hit, fmt.Sprintf("%s at op %d of %s at %v: %d %s", w.what, m.ops, s.id, m.now, op.Kind, op.Key))
	}
	if !w.lost {
		m.after(w.doneAt, func() { tell(m.do(op, since)) })
	}
	if w.unknown {
		s.in = append(s.in, kv.Event{Kind: kv.Result, ID: op.ID, Status: kv.Unknown})
	}
	if w.crash {
		m.crash(s)
	}
	return !s.dead
}

func (m *market) crash(s *stall) {
	s.dead = true
	zone := int(s.number) % 3
	m.after(700*time.Millisecond, func() { m.start(zone) })
}

func (m *market) after(d time.Duration, do func()) {
	if d == 0 {
		do()
		return
	}
	m.later = append(m.later, laterOp{m.now + d, do})
}

// step lets 10 ms pass.
func (m *market) step() {
	m.now += 10 * time.Millisecond
	later := m.later
	m.later = nil
	for _, l := range later {
		if l.at <= m.now {
			l.do()
		} else {
			m.later = append(m.later, l)
		}
	}
	for i := 0; i < len(m.stalls); i++ {
		s := m.stalls[i]
		if s.dead {
			continue
		}
		in, inbox := s.in, s.inbox
		s.in, s.inbox = nil, nil
		for _, f := range inbox {
			f()
		}
		now := m.now + s.ahead + m.now/1e6*time.Duration(s.ppm)
		for _, op := range slices.Clone(s.keeper.Step(now, in)) {
			if !m.asked(s, op) {
				break
			}
		}
		if !s.dead && s.keeper.Over() {
			m.crash(s)
		}
		if !s.dead {
			s.zone.Step(now)
		}
	}
	m.stalls = slices.DeleteFunc(m.stalls, func(s *stall) bool { return s.dead })
	m.play()
	for _, id := range m.sheep {
		n := ""
		for _, s := range m.stalls {
			if a, ok := s.world.Find(id).(*sheep); ok && s.zone.Owns(a) {
				n += " " + s.id
				if a.book.last < m.said[id] && m.trouble == "" {
					m.trouble = fmt.Sprintf("%v: sheep %v has dealt %d times at %s, and the store had said %d", m.now, id, a.book.last, s.id, m.said[id])
				}
			}
		}
		if strings.Count(n, " ") > 1 && m.trouble == "" {
			m.trouble = fmt.Sprintf("%v: sheep %v has authorities%s", m.now, id, n)
		}
	}
}

// at is a sheep of the market, and where it is.
func (m *market) at(i int) (*sheep, *stall) {
	if i < len(m.sheep) {
		for _, s := range m.stalls {
			if a, ok := s.world.Find(m.sheep[i]).(*sheep); ok && s.zone.Owns(a) {
				return a, s
			}
		}
	}
	return nil, nil
}

// play goes on with the plot, when what it needs is there.
func (m *market) play() {
	walk := func(i int, x float64) bool {
		a, s := m.at(i)
		if a == nil {
			return m.now > 6*time.Second // it is no more
		}
		a.X = x
		return m.now > 0 && s != nil
	}
	deal := func(i, to, gold int) bool {
		a, s := m.at(i)
		if a == nil || len(m.sheep) <= to {
			return m.now > 6*time.Second
		}
		if a.Gold < gold || s.keeper.Deal(a, m.sheep[to], []byte{byte(gold)}) != nil {
			return m.now > 6*time.Second
		}
		a.Gold -= gold
		n := a.book.last
		_ = s.keeper.Keep(a, func(err error) {
			if err == nil {
				m.said[a.GUID()] = max(m.said[a.GUID()], n)
			}
		})
		return true
	}
	plot := []struct {
		at time.Duration
		do func() bool
	}{
		{300 * time.Millisecond, func() bool { return m.lamb(0) }},
		{300 * time.Millisecond, func() bool { return m.lamb(1) }},
		{500 * time.Millisecond, func() bool { return len(m.acked) == 2 || m.now > 6*time.Second }},
		{500 * time.Millisecond, func() bool { return deal(0, 1, 5) }},
		{520 * time.Millisecond, func() bool { return walk(0, 150) }},
		{560 * time.Millisecond, func() bool { return deal(1, 0, 4) }},
		{600 * time.Millisecond, func() bool { return deal(0, 1, 2) }},
		{620 * time.Millisecond, func() bool { return walk(1, 250) }},
		{700 * time.Millisecond, func() bool { return walk(0, 250) }},
		{760 * time.Millisecond, func() bool { return walk(1, 50) }},
		{1300 * time.Millisecond, func() bool { return deal(1, 0, 3) }},
	}
	for m.done < len(plot) && m.now >= plot[m.done].at && plot[m.done].do() {
		m.done++
	}
}

// lamb makes a sheep with gold in a zone.
func (m *market) lamb(zone int) bool {
	for _, s := range m.stalls {
		if s.keeper.Holds(s.keeper.cfg.Plan.Servers[zone]) == 0 || s.keeper.z.table.Epoch < 2 {
			continue
		}
		a := &sheep{X: 50 + 100*float64(zone), Y: 50}
		a.Gold = 10
		m.check(s.world.Spawn(a))
		m.check(s.zone.Own(a, 1))
		id := a.GUID()
		m.sheep = append(m.sheep, id)
		m.check(s.keeper.Keep(a, func(err error) {
			if err == nil {
				m.acked[id] = true
			}
		}))
		return true
	}
	return false
}

// unsettled says what there is still to do.
func (m *market) unsettled() string {
	if m.done < 11 || m.now < 8*time.Second || len(m.later) > 0 && m.rng == nil {
		return "the plot goes on"
	}
	if len(m.stalls) != 3 {
		return fmt.Sprintf("%d servers", len(m.stalls))
	}
	for _, s := range m.stalls {
		if k := s.keeper; !k.mine.held || len(k.estates) > 0 || len(k.leases) != 3 || k.waiting > 0 || k.holds(s.id) != 1 {
			return fmt.Sprintf("%s isn't idle: %d estates, %d leases, %d wait, %d zones", s.id, len(k.estates), len(k.leases), k.waiting, k.holds(s.id))
		}
	}
	for i, id := range m.sheep {
		a, s := m.at(i)
		_, there := m.keys["mesh.actor."+fmt.Sprint(uint64(id))]
		switch {
		case a == nil && (m.acked[id] || there):
			return fmt.Sprintf("sheep %v is nowhere; in the store: %v, acked: %v", id, there, m.acked[id])
		case a != nil && !a.book.Idle():
			return fmt.Sprintf("sheep %v has deals: %+v", id, a.book)
		case a != nil && s.zone.table.At(a.X, a.Y) != s.id:
			return fmt.Sprintf("sheep %v is at %v, at %s", id, a.X, s.id)
		}
	}
	return ""
}

// run plays the market until all is settled.
func (m *market) run() string {
	for m.trouble == "" && m.unsettled() != "" {
		if m.now > 60*time.Second {
			return m.unsettled()
		}
		m.step()
	}
	if m.trouble != "" {
		return m.trouble
	}
	gold, minted, pages := 0, 0, 0
	for i := range m.sheep {
		if a, _ := m.at(i); a != nil {
			gold, minted = gold+a.Gold, minted+10
		}
	}
	for key := range m.keys {
		pages += b2i(strings.HasPrefix(key, "mesh.list."))
	}
	switch {
	case gold != minted:
		return fmt.Sprintf("there is %d gold, and %d was minted", gold, minted)
	case pages > 3:
		return fmt.Sprintf("the store has %d lists of 3 servers", pages)
	}
	return ""
}

func (s *stall) save(a Actor) []byte {
	b := a.(*sheep)
	state, err := json.Marshal(flock{X: b.X, Y: b.Y, Purse: b.purse, Book: b.book.Append(nil)})
	s.m.check(err)
	return state
}

func (s *stall) Make(string) Actor { return &sheep{} }

func (s *stall) Give(a Actor, _ string) ([]byte, bool) { return s.save(a), true }

func (s *stall) Take(a Actor, state []byte) error {
	var f flock
	if err := json.Unmarshal(state, &f); err != nil {
		return err
	}
	b := a.(*sheep)
	b.X, b.Y, b.purse, b.book = f.X, f.Y, f.Purse, Book{}
	_, err := b.book.Read(f.Book)
	return err
}

func (s *stall) Call(Actor, string, []byte) {}

func (s *stall) Undelivered(netguid.GUID, []byte) {}

func (s *stall) Deal(a Dealer, from netguid.GUID, deal []byte) {
	b := a.(*sheep)
	b.Gold += int(deal[0])
	s.m.dealt++
	if deal[0] == 5 && s.keeper.Deal(a, from, []byte{1}) == nil { // the other half of a trade
		b.Gold--
	}
}

func (s *stall) Returned(a Dealer, _ netguid.GUID, deal []byte) { a.(*sheep).Gold += int(deal[0]) }

// TestEachOp: at each op of the store in a run, or at some of them without -whole, one thing goes wrong: the server that asked crashes before or after it, or it is done later, by a server that is over; or it is lost, late, or has no answer that says what happened. No gold is
// lost or doubled, nobody has two authorities, and all is settled in the end.
func TestEachOp(t *testing.T) {
	m := newMarket(nil, nil)
	if why := m.run(); why != "" {
		t.Fatal(why)
	}
	n, dealt := m.ops, m.dealt
	every := seedsToPlay(0, 3, 10)
	if *whole {
		every = 1
	}
	runs := 0
	for i, w := range mishaps {
		for k := 1 + i%every; k <= n; k += every {
			m := newMarket(map[int]mishap{k: w}, nil)
			if why := m.run(); why != "" {
				t.Errorf("%s: %s", m.hit, why)
			}
			runs++
		}
	}
	t.Logf("%d ops of the store, %d deals; %d runs", n, dealt, runs)
}

// TestSomeOps is TestEachOp with several ops that go wrong, by servers whose clocks are an hour and 1 % apart, and whose packets to each other are lost, late and out of order.
func TestSomeOps(t *testing.T) {
	n := uint64(seedsToPlay(*keptSeeds, 100, 20))
	for seed := *first; seed < *first+n; seed++ {
		rng := rand.New(rand.NewPCG(seed, 7))
		wrong := map[int]mishap{}
		for range 2 + rng.IntN(3) {
			wrong[1+rng.IntN(150)] = mishaps[rng.IntN(len(mishaps))]
		}
		m := newMarket(wrong, rng)
		if why := m.run(); why != "" {
			t.Errorf("seed %d: %s: %s", seed, m.hit, why)
		}
	}
}

// TestDealFlood: sixty sheep deal with one at another server, as often as they may, for a while: all comes, once, in bounded Books, and the servers keep their leases. Who asks for more is told.
func TestDealFlood(t *testing.T) {
	m := newMarket(nil, nil)
	for m.unsettled() != "" {
		m.step()
	}
	require.Empty(t, m.trouble)
	shop, far := m.at(0)
	var from *stall
	for _, s := range m.stalls {
		if s != far {
			from = s
		}
	}
	x := 100*float64(slices.Index(from.zone.table.Servers, from.id)) + 50
	var crowd []*sheep
	for range 60 {
		a := &sheep{X: x, Y: 50}
		a.Gold = 1000
		require.NoError(t, from.world.Spawn(a))
		require.NoError(t, from.zone.Own(a, 1))
		crowd = append(crowd, a)
	}
	before, gave, full, most := shop.Gold, 0, 0, 0
	for i := range 1200 {
		if i < 150 {
			for _, a := range crowd {
				switch err := from.keeper.Deal(a, shop.GUID(), append([]byte{1}, make([]byte, MaxDeal-1)...)); err {
				case nil:
					a.Gold--
					gave++
				case ErrFull:
					full++
				default:
					require.NoError(t, err)
				}
			}
		}
		m.step()
		require.LessOrEqual(t, from.keeper.waiting, maxWaiting)
		require.LessOrEqual(t, len(shop.book.Append(nil)), MaxBook)
		require.LessOrEqual(t, len(from.keeper.pending), maxActorOps+maxLooks+16)
		if n := shop.book.count(true); n > most {
			most = n
		}
	}
	require.Empty(t, m.trouble)
	require.NotZero(t, full)
	require.Equal(t, maxTaken, most)
	require.Len(t, m.stalls, 3)
	require.False(t, from.keeper.Over() || far.keeper.Over())
	for _, a := range crowd {
		require.True(t, a.book.Idle(), "%+v", a.book)
	}
	require.Equal(t, before+gave, shop.Gold)
	t.Logf("%d deals, and %d for which there was no room", gave, full)
}
