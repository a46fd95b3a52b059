package main

import (
	"encoding/binary"
	"errors"
)

// What a player begins with. The sums over all players are constant.
const (
	startGold = 100
	startGems = 5
)

// kind says what an entry of an account is.
type kind byte

// A trade is begun by a buyer, who pays gold for a gem. The seller's server takes the gold and gives a gem, or gives the gold back.
const (
	paid     kind = 1 + iota // the buyer's: gold goes
	sold                     // the seller's: the gold has come, and a gem goes
	declined                 // the seller's: it has no gem, and the gold goes back
	got                      // the buyer's: the gem has come
	refunded                 // the buyer's: the gold has come back
	returned                 // the buyer's: nobody knew the seller
)

func (k kind) String() string {
	return [...]string{"nothing", "paid", "sold", "declined", "got", "refunded", "returned"}[min(k, returned+1)%(returned+1)]
}

// entry is a line of an account.
type entry struct {
	Trade uint64
	Kind  kind
	Price int
}

// change is what an entry changes.
func (e entry) change() (gold, gems int) {
	switch e.Kind {
	case paid:
		return -e.Price, 0
	case sold:
		return e.Price, -1
	case got:
		return 0, 1
	case refunded, returned:
		return e.Price, 0
	}
	return 0, 0
}

// Bounds of an account.
const (
	maxLines = 256 // that are kept; who reads more seldom misses some
	pageSize = 60  // lines of an answer
)

// account is what is durable of a player. It is a part of its actor's state.
type account struct {
	Gold, Gems int
	N          int     // lines that there were
	Lines      []entry // the newest of them
	Buying     uint64  // its trade that isn't over; 0: none
	Owed       []owed  // what its Book hadn't room for yet; one for each other player at most
}

// owed is a gem or gold that goes to a buyer.
type owed struct {
	To   uint32
	Deal deal
}

// add writes a line.
func (a *account) add(e entry) {
	gold, gems := e.change()
	a.Gold, a.Gems, a.N = a.Gold+gold, a.Gems+gems, a.N+1
	if len(a.Lines) >= maxLines {
		a.Lines = append(a.Lines[:0], a.Lines[len(a.Lines)-maxLines+1:]...)
	}
	a.Lines = append(a.Lines, e)
}

// page is what a read of an account tells.
type page struct {
	N, Gold, Gems int
	First         int // number of the first of Lines
	Lines         []entry
}

// read returns the lines from number since on, as far as they are kept and go into an answer.
func (a *account) read(since int) page {
	p := page{N: a.N, Gold: a.Gold, Gems: a.Gems, First: max(since, a.N-len(a.Lines))}
	p.First = min(p.First, a.N)
	p.Lines = a.Lines[len(a.Lines)-(a.N-p.First):]
	p.Lines = p.Lines[:min(len(p.Lines), pageSize)]
	return p
}

func (p page) append(b []byte) []byte {
	for _, v := range []int{p.N, p.Gold, p.Gems, p.First, len(p.Lines)} {
		b = binary.AppendVarint(b, int64(v))
	}
	for _, e := range p.Lines {
		b = binary.AppendVarint(append(binary.AppendUvarint(b, e.Trade), byte(e.Kind)), int64(e.Price))
	}
	return b
}

var errShort = errors.New("a message is too short")

// words reads numbers of a message; bad when it is too short.
type words struct {
	b   []byte
	bad bool
}

func (w *words) unsigned() uint64 {
	v, n := binary.Uvarint(w.b)
	return take(w, v, n)
}

func (w *words) signed() int {
	v, n := binary.Varint(w.b)
	return int(take(w, v, n))
}

func take[T any](w *words, v T, n int) (none T) {
	if w.bad = w.bad || n <= 0; w.bad {
		return none
	}
	w.b = w.b[n:]
	return v
}

func readPage(b []byte) (p page, err error) {
	w := words{b: b}
	p = page{N: w.signed(), Gold: w.signed(), Gems: w.signed(), First: w.signed()}
	for n := w.signed(); n > 0 && !w.bad; n-- {
		e := entry{Trade: w.unsigned(), Kind: kind(w.unsigned()), Price: w.signed()}
		p.Lines = append(p.Lines, e)
	}
	if w.bad {
		return page{}, errShort
	}
	return p, nil
}

// deal is what goes by Keeper.Deal: gold for a gem, and what comes of it.
type deal struct {
	Kind  kind // paid, got or refunded
	Trade uint64
	Price int
}

func (d deal) append(b []byte) []byte {
	return binary.AppendVarint(binary.AppendUvarint(append(b, byte(d.Kind)), d.Trade), int64(d.Price))
}

func readDeal(b []byte) (deal, error) {
	w := words{b: b}
	d := deal{kind(w.unsigned()), w.unsigned(), w.signed()}
	if w.bad {
		return deal{}, errShort
	}
	return d, nil
}
