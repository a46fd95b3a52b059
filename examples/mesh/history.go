package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// A history is what bots have asked and were answered, with times of one clock. Between its invocation and its completion an operation has happened at some moment; one whose result is unknown
// happened at some moment after its invocation, or never. check says whether there is an order of all moments in which each account is one list, to which lines are only added.

// result is how an operation ended, as its bot knows.
type result string

const (
	ok      result = "ok"
	failed  result = "fail"    // it has not happened, and won't
	unknown result = "unknown" // there was no answer
)

// operation is a trade, or a read of an account.
type operation struct {
	Bot            uint32
	Invoked, Ended time.Duration
	Result         result
	Why            string `json:",omitempty"` // it has failed, or is unknown
	Trade          uint64 `json:",omitempty"` // a trade's number; 0: it is a read
	Buyer, Seller  uint32 `json:",omitempty"`
	Price          int    `json:",omitempty"`
	Outcome        kind   `json:",omitempty"` // of a trade that is ok: got or refunded
	Account        uint32 `json:",omitempty"` // that was read
	Page           page
	Last           bool `json:",omitempty"` // a read after all trades have ended, up to the account's last line
}

// never is the end of an operation whose result is unknown.
const never = time.Duration(math.MaxInt64)

func (o *operation) ended() time.Duration {
	if o.Result == unknown {
		return never
	}
	return o.Ended
}

// place is where a line is.
type place struct {
	account uint32
	n       int
}

// judge is a check of a history.
type judge struct {
	accounts uint32
	reads    map[uint32][]*operation // of an account, by Invoked
	lines    map[place]entry
	at       map[uint64][]place // of a trade
	wrong    []string
}

// maxWrong bounds what a check tells.
const maxWrong = 20

func (j *judge) fail(format string, args ...any) {
	if len(j.wrong) < maxWrong {
		j.wrong = append(j.wrong, fmt.Sprintf(format, args...))
	}
}

// check returns what is wrong with a history of players 1 to accounts.
func check(history []operation, accounts uint32) []string {
	j := &judge{accounts: accounts, reads: map[uint32][]*operation{}, lines: map[place]entry{}, at: map[uint64][]place{}}
	trades := map[uint64]*operation{}
	for i := range history {
		o := &history[i]
		switch {
		case o.Trade != 0 && trades[o.Trade] != nil:
			j.fail("trade %d was begun twice", o.Trade)
		case o.Trade != 0:
			trades[o.Trade] = o
		case o.Result == ok:
			j.reads[o.Account] = append(j.reads[o.Account], o)
			j.learn(o)
		}
	}
	for _, reads := range j.reads {
		slices.SortStableFunc(reads, func(a, b *operation) int { return cmp.Compare(a.Invoked, b.Invoked) })
	}
	for a := uint32(1); a <= accounts; a++ {
		j.checkReads(a)
	}
	for trade, places := range j.at {
		if trades[trade] == nil {
			j.fail("created: trade %d is in %v, and nobody has begun it", trade, places)
		}
	}
	var order []*operation
	for _, o := range trades {
		order = append(order, o)
	}
	slices.SortFunc(order, func(a, b *operation) int { return cmp.Compare(a.Invoked, b.Invoked) })
	newest := map[uint32]int{} // of each buyer, the last line of its former trades that have ended
	for _, o := range order {
		j.checkTrade(o, newest)
	}
	j.checkSums()
	return j.wrong
}

// learn notes the lines that a read has told.
func (j *judge) learn(o *operation) {
	for i, e := range o.Page.Lines {
		at := place{o.Account, o.Page.First + i}
		had, known := j.lines[at]
		switch {
		case known && had != e:
			j.fail("fork: line %d of account %d is %v and %v", at.n, at.account, had, e)
		case !known:
			j.lines[at] = e
			j.at[e.Trade] = append(j.at[e.Trade], at)
		}
	}
}

// checkReads checks an account's reads: none is older than one that had ended before it began, and each has the sum of the lines before it.
func (j *judge) checkReads(account uint32) {
	reads := j.reads[account]
	if len(reads) == 0 || !slices.ContainsFunc(reads, func(o *operation) bool { return o.Last }) {
		j.fail("unread: account %d wasn't read at the end", account)
		return
	}
	byEnd := slices.Clone(reads)
	slices.SortStableFunc(byEnd, func(a, b *operation) int { return cmp.Compare(a.Ended, b.Ended) })
	most, last := 0, 0
	for _, o := range reads {
		for len(byEnd) > 0 && byEnd[0].Ended < o.Invoked {
			most = max(most, byEnd[0].Page.N)
			byEnd = byEnd[1:]
		}
		if o.Page.N < most {
			j.fail("stale: account %d had %d lines at %v, and %d had been read before", account, o.Page.N, o.Invoked, most)
		}
		if last = max(last, o.Page.N); o.Last && o.Page.N < last {
			j.fail("lost: account %d ends with %d lines, and had %d", account, o.Page.N, last)
		}
	}
	sums := make([][2]int, last+1)
	sums[0] = [2]int{startGold, startGems}
	overdrawn := false
	for n := range last {
		e, known := j.lines[place{account, n}]
		if !known {
			j.fail("unread: nobody has read line %d of account %d", n, account)
			return
		}
		gold, gems := e.change()
		sums[n+1] = [2]int{sums[n][0] + gold, sums[n][1] + gems}
		if below := sums[n+1][0] < 0 || sums[n+1][1] < 0; below && !overdrawn {
			j.fail("overdrawn: account %d has %v after line %d", account, sums[n+1], n)
			overdrawn = true
		}
	}
	for _, o := range reads {
		if has := [2]int{o.Page.Gold, o.Page.Gems}; has != sums[o.Page.N] {
			j.fail("sum: account %d has %v after %d lines, and they say %v", account, has, o.Page.N, sums[o.Page.N])
			return // the others follow from it
		}
	}
}

// sees checks the reads of an account by the line at n: who asks after it is certainly there has it, and who was answered before it could be hasn't.
func (j *judge) sees(at place, from, certain time.Duration, trade uint64) {
	for _, o := range j.reads[at.account] {
		switch {
		case o.Invoked > certain && o.Page.N <= at.n:
			j.fail("stale: account %d is read at %v without line %d of trade %d, which was there at %v", at.account, o.Invoked, at.n, trade, certain)
			return
		case o.Ended < from && o.Page.N > at.n:
			j.fail("early: account %d is read at %v with line %d of trade %d, which was begun at %v", at.account, o.Ended, at.n, trade, from)
			return
		}
	}
}

// seen is when a line was certainly there, by reads.
func (j *judge) seen(at place) time.Duration {
	t := never
	for _, o := range j.reads[at.account] {
		if o.Page.N > at.n {
			t = min(t, o.Ended)
		}
	}
	return t
}

// checkTrade checks a trade against the lines: all of it once, or nothing.
func (j *judge) checkTrade(o *operation, newest map[uint32]int) {
	find := func(account uint32, kinds ...kind) (place, bool) {
		var found []place
		for _, at := range j.at[o.Trade] {
			if at.account == account && slices.Contains(kinds, j.lines[at].Kind) {
				found = append(found, at)
			}
		}
		if len(found) > 1 {
			j.fail("doubled: trade %d is in lines %v", o.Trade, found)
		}
		if len(found) == 0 {
			return place{}, false
		}
		return found[0], true
	}
	for _, at := range j.at[o.Trade] {
		if e := j.lines[at]; e.Price != o.Price || at.account != o.Buyer && at.account != o.Seller || (at.account == o.Seller) != (e.Kind == sold || e.Kind == declined) {
			j.fail("created: line %d of account %d is %v, and it is trade %d of %d with %d for %d", at.n, at.account, e, o.Trade, o.Buyer, o.Seller, o.Price)
			return
		}
	}
	pay, payed := find(o.Buyer, paid)
	sale, handled := find(o.Seller, sold, declined)
	end, ended := find(o.Buyer, got, refunded, returned)
	switch {
	case o.Result == failed && len(j.at[o.Trade]) > 0:
		j.fail("failed: trade %d was said to have failed, and is in %v", o.Trade, j.at[o.Trade])
		return
	case o.Result == failed || o.Result == unknown && len(j.at[o.Trade]) == 0:
		return
	case !payed || !ended || handled == (j.lines[end].Kind == returned):
		j.fail("lost: trade %d (%s) has lines %v only", o.Trade, o.Result, j.at[o.Trade])
		return
	case handled && (j.lines[sale].Kind == sold) != (j.lines[end].Kind == got):
		j.fail("lost: trade %d was %s at the seller's and %s at the buyer's", o.Trade, j.lines[sale].Kind, j.lines[end].Kind)
		return
	case o.Result == ok && j.lines[end].Kind != o.Outcome:
		j.fail("answer: trade %d was said to be %s, and is %s", o.Trade, o.Outcome, j.lines[end].Kind)
		return
	case pay.n >= end.n:
		j.fail("order: trade %d ends in line %d and begins in line %d", o.Trade, end.n, pay.n)
		return
	}
	// What is certain of a later line is certain of those before it.
	atEnd := min(j.seen(end), o.ended())
	atPay := min(j.seen(pay), atEnd)
	if handled {
		atSale := min(j.seen(sale), atEnd)
		j.sees(sale, o.Invoked, atSale, o.Trade)
		atPay = min(atPay, atSale)
	}
	j.sees(pay, o.Invoked, atPay, o.Trade)
	j.sees(end, o.Invoked, atEnd, o.Trade)
	if last, was := newest[o.Buyer]; was && pay.n <= last { // a bot has one trade at a time, and begins another when it was answered
		j.fail("order: trade %d was begun when line %d of account %d had been told, and is line %d", o.Trade, last, o.Buyer, pay.n)
	}
	if o.Result == ok {
		newest[o.Buyer] = max(newest[o.Buyer], end.n)
	}
}

// checkSums checks that gold and gems are what they were.
func (j *judge) checkSums() {
	gold, gems := 0, 0
	for a := uint32(1); a <= j.accounts; a++ {
		i := slices.IndexFunc(j.reads[a], func(o *operation) bool { return o.Last })
		if i < 0 {
			return // it was told
		}
		gold, gems = gold+j.reads[a][i].Page.Gold, gems+j.reads[a][i].Page.Gems
	}
	if n := int(j.accounts); gold != n*startGold || gems != n*startGems {
		j.fail("sum: there are %d gold and %d gems, and there were %d and %d", gold, gems, n*startGold, n*startGems)
	}
}
