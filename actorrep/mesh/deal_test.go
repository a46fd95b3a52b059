package mesh

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/kv"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// drawDeals is drawKept or drawAway with gold that goes by Keeper.Deal.
func drawDeals(seed uint64) simtest.Script {
	s := drawKept(seed)
	if seed%4 == 0 {
		s = drawAway(seed)
	}
	s.Set("deals", "1")
	return s
}

// TestDeals is TestKept with sheep that deal by Keeper.Deal, at whichever servers they are: gold is neither lost nor doubled, and all is settled in the end.
func TestDeals(t *testing.T) {
	n := seedsToPlay(*keptSeeds, 6, 4)
	trades, dealt, back, restored := 0, 0, 0, 0
	for seed := *first; seed < *first+uint64(n); seed++ {
		r, g := playPlain(drawDeals(seed), nil)
		if !r.OK() {
			t.Fatalf("seed %d: %v\n%v", seed, r.Failure, r.Script)
		}
		trades, dealt, back, restored = trades+g.trades, dealt+g.dealt, back+g.cameBack, restored+g.restored
	}
	t.Logf("seeds %d to %d: %d deals were begun, %d came, %d were returned, %d actors were taken over", *first, *first+uint64(n)-1, trades, dealt, back, restored)
	if dealt == 0 || back == 0 || restored == 0 {
		t.Fatal("nothing was tried")
	}
}

// TestDealsPlanted plants faults in how deals are kept, said and settled, and expects each to be found.
func TestDealsPlanted(t *testing.T) {
	each := func(k *Keeper, f func(d *dealing)) {
		for _, a := range k.dealers {
			for i := range a.Dealings().deals {
				f(&a.Dealings().deals[i])
			}
		}
	}
	plants := []planted{
		{2, "it says a deal before the store has it", keeperFault{step: func(k *Keeper) {
			each(k, func(d *dealing) { d.kept = d.kept || !d.taken })
		}}},
		{3, "it says that a deal was taken before the store has it", keeperFault{step: func(k *Keeper) {
			each(k, func(d *dealing) { d.kept = d.kept || d.taken })
		}}},
		{1, "it doesn't note that it has had a deal", keeperFault{step: func(k *Keeper) {
			for _, a := range k.dealers {
				b := a.Dealings()
				b.deals = slices.DeleteFunc(b.deals, func(d dealing) bool { return d.taken })
			}
		}}},
		{3, "it settles before the store has it", keeperFault{step: func(k *Keeper) {
			for _, a := range k.list {
				k.tell(a, a.want, nil)
			}
		}}},
		{1, "it says a deal once", keeperFault{step: func(k *Keeper) {
			each(k, func(d *dealing) {
				if d.at > 0 {
					d.at = time.Hour
				}
			})
		}}},
		{1, "what is on its way is returned", keeperFault{step: func(k *Keeper) {
			for _, a := range k.dealers {
				b := a.Dealings()
				for _, d := range b.deals {
					if !d.taken && d.at > 0 && k.now > d.at-dealAgain+time.Second/4 {
						b.remove(false, d.with, d.n)
						k.cfg.Deals.Returned(a, d.with, d.deal)
					}
				}
			}
		}}},
	}
	expectFound(t, plants, 3, func(seed uint64, p planted) simtest.Result {
		r, _ := playPlain(drawDeals(seed), func(g *plain) { g.fault = p.keeperFault })
		return r
	})
}

// TestDealBounds: what can't be dealt is told to who asked, and nothing has begun.
func TestDealBounds(t *testing.T) {
	s := newShelf(t)
	away := false
	s.lost = func(kv.Op) bool { return away }
	a := &sheep{}
	require.NoError(t, s.world.Spawn(a))
	require.NoError(t, s.zone.Own(a, 1))
	require.ErrorIs(t, s.keeper.Deal(a, 102, nil), ErrNoActor, "there are no Deals")
	s.keeper.cfg.Deals = returns{}
	s.keeper.cfg.Away = 10 * time.Second
	require.ErrorIs(t, s.keeper.Deal(&sheep{}, 102, nil), ErrNoActor)
	require.ErrorIs(t, s.keeper.Deal(a, a.GUID(), nil), ErrNoActor)
	require.ErrorIs(t, s.keeper.Deal(a, 0, nil), ErrNoActor)
	require.ErrorIs(t, s.keeper.Deal(a, 102, make([]byte, MaxDeal+1)), ErrTooLong)
	require.True(t, a.book.Idle())
	s.run(100 * time.Millisecond)
	away = true
	s.run(2500 * time.Millisecond)
	require.False(t, s.keeper.Over())
	require.ErrorIs(t, s.keeper.Deal(a, 102, nil), ErrAway)
	away = false
	s.run(2 * time.Second)
	for range MaxDeals {
		require.NoError(t, s.keeper.Deal(a, 102, make([]byte, MaxDeal)))
	}
	require.ErrorIs(t, s.keeper.Deal(a, 102, nil), ErrFull)
	for i := range uint64(maxTaken + 1) { // the last one has no room, and is repeated
		said := zoneMessage{kind: zoneDeal, id: a.GUID(), from: 1 << 31, number: 1<<63 + i, origin: "b"}
		for range 2 {
			s.keeper.dealt(&said)
			require.EqualValues(t, min(i, maxTaken), a.Name, "it wasn't asked for")
		}
		if len(a.book.wanted) > 0 {
			said.nonce = a.book.wanted[0].nonce
		}
		for range 2 {
			s.keeper.dealt(&said)
			require.EqualValues(t, min(i+1, maxTaken), a.Name)
		}
	}
	require.Equal(t, maxTaken, int(a.Name))
	book := a.book.Append(nil)
	require.LessOrEqual(t, len(book), MaxBook)
	var b Book
	rest, err := b.Read(append(slices.Clone(book), 7))
	require.NoError(t, err)
	require.Equal(t, []byte{7}, rest)
	require.Equal(t, book, b.Append(nil))
	for n := range book {
		_, err := b.Read(book[:n])
		require.Error(t, err)
	}
	require.Equal(t, book, b.Append(nil), "what can't be read changes nothing")
	b.deals = append(b.deals, dealing{})
	_, err = b.Read(b.Append(nil))
	require.Error(t, err)
	s.run(2 * time.Second) // the store has no actor 102, and none 1<<31
	require.True(t, a.book.Idle(), "%+v", a.book)
	require.EqualValues(t, MaxDeals, a.Count)
}

// returns counts what was returned and what came.
type returns struct{}

func (returns) Deal(a Dealer, _ netguid.GUID, _ []byte)     { a.(*sheep).Name++ }
func (returns) Returned(a Dealer, _ netguid.GUID, _ []byte) { a.(*sheep).Count++ }

// TestDealWanted: a deal that was asked for and doesn't come gives way to another after a while, and not before.
func TestDealWanted(t *testing.T) {
	s := newShelf(t)
	s.keeper.cfg.Deals = returns{}
	a := &sheep{}
	require.NoError(t, s.world.Spawn(a))
	require.NoError(t, s.zone.Own(a, 1))
	s.run(100 * time.Millisecond)
	said := zoneMessage{kind: zoneDeal, id: a.GUID(), from: 1 << 31, origin: "b"}
	for said.number = range uint64(maxTaken + 1) {
		s.keeper.dealt(&said)
	}
	s.run(wantedFor - 10*time.Millisecond)
	s.keeper.dealt(&said)
	require.Len(t, a.book.wanted, maxTaken)
	require.NotEqual(t, said.number, a.book.wanted[maxTaken-1].n)
	s.run(10 * time.Millisecond)
	s.keeper.dealt(&said)
	require.Len(t, a.book.wanted, maxTaken)
	require.Equal(t, said.number, a.book.wanted[maxTaken-1].n)
}
