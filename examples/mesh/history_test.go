package main

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// model is players and one honest server, whose answers are late or get lost. It makes histories that are right.
type model struct {
	rng      *rand.Rand
	now      time.Duration
	accounts map[uint32]*account
	known    map[uint32]int
	history  []operation
	trade    uint64
	after    []func() // what happens later, in turn
}

func (m *model) wait() time.Duration {
	m.now += 1 + time.Duration(m.rng.IntN(int(time.Millisecond)))
	return m.now
}

// busy is players that trade, one after the other, with parts of former trades in between.
func busy(seed uint64, players uint32, n int) *model {
	m := &model{rng: rand.New(rand.NewPCG(seed, 1)), accounts: map[uint32]*account{}, known: map[uint32]int{}}
	for p := uint32(1); p <= players; p++ {
		m.accounts[p] = &account{Gold: startGold, Gems: startGems}
	}
	for range n {
		m.buy(1+m.rng.Uint32N(players), 1+m.rng.Uint32N(players))
		for len(m.after) > 0 && m.rng.IntN(3) > 0 {
			m.next()
		}
		for range m.rng.IntN(3) {
			m.read(1+m.rng.Uint32N(players), false)
		}
	}
	for len(m.after) > 0 {
		m.next()
	}
	for p := uint32(1); p <= players; p++ {
		for m.known[p] < m.accounts[p].N {
			m.read(p, false)
		}
		m.read(p, true)
	}
	return m
}

func (m *model) next() {
	f := m.after[0]
	m.after = m.after[1:]
	f()
}

func (m *model) read(p uint32, last bool) {
	o := operation{Account: p, Invoked: m.wait(), Result: ok, Last: last}
	o.Page = m.accounts[p].read(m.known[p])
	o.Page.Lines = slices.Clone(o.Page.Lines)
	m.known[p] = o.Page.First + len(o.Page.Lines)
	o.Ended = m.wait()
	m.history = append(m.history, o)
}

func (m *model) buy(buyer, seller uint32) {
	if buyer == seller || slices.ContainsFunc(m.history, func(o operation) bool { return o.Buyer == buyer && o.Ended == 0 }) {
		return
	}
	m.trade++
	o := operation{Trade: m.trade, Buyer: buyer, Seller: seller, Price: 1 + m.rng.IntN(30), Invoked: m.wait()}
	i := len(m.history)
	m.history = append(m.history, o)
	end := func(r result, outcome kind) {
		if r == ok && m.rng.IntN(5) == 0 {
			r = unknown // the answer gets lost
		}
		m.history[i].Result, m.history[i].Outcome, m.history[i].Ended = r, outcome, m.wait()
	}
	b, s := m.accounts[buyer], m.accounts[seller]
	if b.Gold < o.Price {
		end(failed, 0)
		return
	}
	if m.rng.IntN(20) == 0 {
		end(unknown, 0) // the request got lost
		return
	}
	b.add(entry{o.Trade, paid, o.Price})
	m.after = append(m.after, func() {
		k, outcome := sold, got
		if s.Gems == 0 {
			k, outcome = declined, refunded
		}
		s.add(entry{o.Trade, k, o.Price})
		m.after = append(m.after, func() {
			b.add(entry{o.Trade, outcome, o.Price})
			end(ok, outcome)
		})
	})
}

// TestCheckTakesWhatIsRight: histories of an honest server are right, whatever was lost of its answers.
func TestCheckTakesWhatIsRight(t *testing.T) {
	for seed := range uint64(50) {
		m := busy(seed, 2+uint32(seed%7), 200)
		if wrong := check(m.history, uint32(len(m.accounts))); len(wrong) > 0 {
			t.Fatalf("seed %d: %s", seed, strings.Join(wrong, "\n"))
		}
	}
}

// TestCheckFindsPlantedFaults: each way in which a store of accounts goes wrong is found in a history that was right, and is called by its name.
func TestCheckFindsPlantedFaults(t *testing.T) {
	const players = 5
	last := func(m *model, p uint32) *operation {
		i := slices.IndexFunc(m.history, func(o operation) bool { return o.Last && o.Account == p })
		return &m.history[i]
	}
	done := func(m *model) *operation { // a trade that was told to be over
		i := slices.IndexFunc(m.history, func(o operation) bool { return o.Result == ok && o.Outcome == got })
		return &m.history[i]
	}
	line := func(m *model, trade uint64, k kind) (*operation, int) { // the read that told a line first
		for i := range m.history {
			for n, e := range m.history[i].Page.Lines {
				if e.Trade == trade && e.Kind == k {
					return &m.history[i], n
				}
			}
		}
		t.Fatalf("nobody has read %v of trade %d", k, trade)
		return nil, 0
	}
	for _, fault := range []struct {
		what, found string
		plant       func(m *model)
	}{
		{"a trade that was told is taken back at its seller", "lost", func(m *model) {
			o, n := line(m, done(m).Trade, sold)
			o.Page.Lines[n].Trade = 1 << 40
		}},
		{"a payment comes twice", "doubled", func(m *model) {
			trade := done(m).Trade
			l := last(m, done(m).Seller)
			l.Page.Lines = append(l.Page.Lines, entry{trade, sold, done(m).Price})
			l.Page.First = l.Page.N
			l.Page.N++
			l.Page.Gold += done(m).Price
			l.Page.Gems--
		}},
		{"gold comes from nowhere", "sum", func(m *model) { last(m, 2).Page.Gold++ }},
		{"a gem goes", "sum", func(m *model) { last(m, 3).Page.Gems-- }},
		{"a line that nobody has written", "created", func(m *model) {
			l := last(m, 1)
			l.Page.First, l.Page.N, l.Page.Lines = l.Page.N, l.Page.N+1, []entry{{1 << 40, declined, 3}}
		}},
		{"another price", "created", func(m *model) {
			o, n := line(m, done(m).Trade, paid)
			o.Page.Lines[n].Price++
		}},
		{"two servers write an account", "fork", func(m *model) {
			o, n := line(m, done(m).Trade, paid)
			again := *o
			again.Page.Lines = slices.Clone(o.Page.Lines)
			again.Page.Lines[n].Trade++
			m.history = append(m.history, again)
		}},
		{"a read of an old copy", "stale", func(m *model) {
			m.history = append(m.history, operation{Account: 1, Result: ok, Invoked: m.now + 1, Ended: m.now + 2, Page: page{Gold: startGold, Gems: startGems}})
		}},
		{"a read without a trade that was told before", "stale", func(m *model) {
			o := done(m)
			r, n := line(m, o.Trade, got)
			sum := account{Gold: startGold, Gems: startGems}
			for at := range r.Page.First + n {
				for _, h := range m.history {
					if h.Trade == 0 && h.Account == o.Buyer && at >= h.Page.First && at < h.Page.First+len(h.Page.Lines) {
						sum.add(h.Page.Lines[at-h.Page.First])
						break
					}
				}
			}
			m.history = append(m.history, operation{Account: o.Buyer, Result: ok, Invoked: o.Ended + 1, Ended: o.Ended + 2, Page: page{N: sum.N, Gold: sum.Gold, Gems: sum.Gems, First: sum.N}})
		}},
		{"a trade is there before it was begun", "early", func(m *model) {
			o := done(m)
			at := m.now + 1
			o.Invoked, o.Ended = at, at+1
		}},
		{"what failed has happened", "failed", func(m *model) { done(m).Result = failed }},
		{"what was bought is told to be refunded", "answer", func(m *model) { done(m).Outcome = refunded }},
		{"the seller gives a gem and the buyer gets the gold back", "lost", func(m *model) {
			o, n := line(m, done(m).Trade, got)
			o.Page.Lines[n].Kind = refunded
		}},
		{"an answer without a trade", "lost", func(m *model) {
			m.history = append(m.history, operation{Trade: 1 << 40, Buyer: 1, Seller: 2, Price: 1, Result: ok, Outcome: got, Invoked: 1, Ended: 2})
		}},
		{"an unknown trade is there by half", "lost", func(m *model) {
			l := last(m, 1)
			m.history = append(m.history, operation{Trade: 1 << 40, Buyer: 1, Seller: 2, Price: 1, Result: unknown, Invoked: l.Invoked - 1})
			l.Page.First, l.Page.N, l.Page.Lines = l.Page.N, l.Page.N+1, []entry{{1 << 40, paid, 1}}
			l.Page.Gold--
		}},
		{"an account isn't read", "unread", func(m *model) { last(m, 4).Result = unknown }},
		{"a line isn't read", "unread", func(m *model) {
			o, _ := line(m, done(m).Trade, paid)
			o.Page.First += len(o.Page.Lines)
			o.Page.Lines = nil
		}},
		{"the end is before what was read", "lost", func(m *model) {
			l := last(m, 1)
			more := *l
			more.Last, more.Page.N, more.Page.First = false, l.Page.N+1, l.Page.N
			more.Page.Lines = []entry{{1 << 40, declined, 1}}
			more.Invoked--
			m.history = append(m.history, more)
		}},
		{"a number is used twice", "twice", func(m *model) { m.history = append(m.history, *done(m)) }},
	} {
		for seed := range uint64(5) {
			m := busy(seed, players, 200)
			fault.plant(m)
			wrong := check(m.history, players)
			if !slices.ContainsFunc(wrong, func(s string) bool { return strings.Contains(s, fault.found) }) {
				t.Errorf("seed %d: %s: found %q", seed, fault.what, wrong)
			}
		}
	}
}

// TestPages: a page and a deal are read as they were written, and a shorter one is refused.
func TestPages(t *testing.T) {
	a := account{Gold: startGold, Gems: startGems}
	for i := range 3 * maxLines {
		a.add(entry{uint64(i), []kind{paid, refunded}[i%2], 7})
	}
	if len(a.Lines) != maxLines || a.N != 3*maxLines || a.Gold != startGold {
		t.Fatalf("%d lines of %d, %d gold", len(a.Lines), a.N, a.Gold)
	}
	for since, want := range map[int]int{0: 2 * maxLines, a.N - 10: a.N - 10, a.N: a.N, a.N + 5: a.N} {
		if p := a.read(since); p.First != want || len(p.Lines) != min(pageSize, a.N-p.First) {
			t.Fatalf("since %d: from %d on %d lines", since, p.First, len(p.Lines))
		}
	}
	b := a.read(0).append(nil)
	if len(b) > 900 { // it goes into a call
		t.Fatalf("%d bytes", len(b))
	}
	if p, err := readPage(b); err != nil || p.N != a.N || !slices.Equal(p.Lines, a.read(0).Lines) {
		t.Fatal(p, err)
	}
	for n := range b {
		if _, err := readPage(b[:n]); err == nil {
			t.Fatalf("%d of %d bytes are a page", n, len(b))
		}
	}
	d := deal{got, 1 << 40, 5}
	if r, err := readDeal(d.append(nil)); err != nil || r != d {
		t.Fatal(r, err)
	}
}
