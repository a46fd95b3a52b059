package fleet

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/netconn/kv"
)

// ListConfig configures a List.
type ListConfig struct {
	// Name is the first part of the name of the list's mark in the store. Default "list".
	Name string
	Timing
	// Rand is the source of the mark's random part. Default crypto/rand.
	Rand io.Reader
}

// List is the servers of the fleet, read from the store by a watch. While the store is away it keeps what it had, and Age grows. It belongs
// to one goroutine.
//
// Every Beat the list writes a mark of its own to the store, which the watch returns. So it knows how old its contents may be, even when
// only the watch has stopped.
type List struct {
	// Bad counts announcements that couldn't be read, and those above MaxServers.
	Bad uint64

	timing  Timing
	mark    string
	ids     []string // sorted
	members map[string]*member
	began   bool // of a watch: all keys are being told
	current bool // they have been told once
	asOf    time.Duration
	now     time.Duration
	marks   []time.Duration // when the marks after told were written
	told    uint64          // number of the newest mark that came back
	markAt  time.Duration
	epochs  []epoch // marks that came back within the last Life/2, one each Life/16, the oldest first

	ask asker // the ops only when the list is a machine of its own
}

// epoch says that a revision was written at a time or later.
type epoch struct {
	at  time.Duration
	rev uint64
}

type member struct {
	info   *Info
	rev    uint64
	seen   time.Duration // when its announcement came last
	listed bool          // by the watch that has begun
}

// MaxServers is the most servers in a list. Further ones are left out, and counted in Bad.
const MaxServers = 10_000

// maxMarks bounds the marks that are waited for.
const maxMarks = 64

// NewList returns an empty list, or an error that wraps ErrConfig.
func NewList(cfg ListConfig) (*List, error) {
	l := &List{members: map[string]*member{}}
	cfg.Name = cmp.Or(cfg.Name, "list")
	if cfg.Rand == nil {
		cfg.Rand = rand.Reader
	}
	var err error
	if l.timing, err = cfg.Timing.filled(); err != nil {
		return nil, err
	}
	var random [8]byte
	if _, err := io.ReadFull(cfg.Rand, random[:]); err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	if !validName(cfg.Name) || len(cfg.Name) > 64 {
		return nil, fmt.Errorf("%w: Name %q must be 1 to 64 letters, digits, - and _", ErrConfig, cfg.Name)
	}
	l.mark = markKey + cfg.Name + "-" + hex.EncodeToString(random[:])
	l.ask.timeout = l.timing.OpTimeout
	return l, nil
}

// Watches implements kv.Machine.
func (l *List) Watches() []string { return []string{serverKey, l.mark} }

// Step implements kv.Machine.
func (l *List) Step(now time.Duration, in []kv.Event) []kv.Op {
	l.ask.out = l.ask.out[:0]
	for _, e := range in {
		l.event(max(l.now, now), e)
	}
	l.step(now, &l.ask)
	return l.ask.out
}

// event takes an event of the watch.
func (l *List) event(now time.Duration, e kv.Event) {
	l.now = max(l.now, now)
	id, server := strings.CutPrefix(e.Key, serverKey)
	switch {
	case e.Kind == kv.Result:
	case e.Kind == kv.Begin:
		l.began = true
		for _, m := range l.members {
			m.listed = false
		}
		if l.ask.anew(e) {
			l.epochs = nil
			for _, m := range l.members {
				m.rev = 0
			}
		}
	case e.Kind == kv.Current && l.began:
		l.began, l.current = false, true
		l.remove(func(m *member) bool { return !m.listed })
	case e.Kind == kv.Changed && e.Key == l.mark && len(e.Value) == 8:
		if n := binary.LittleEndian.Uint64(e.Value); n > l.told && n <= l.told+uint64(len(l.marks)) {
			i := n - l.told
			l.asOf = l.marks[i-1]
			l.marks, l.told = l.marks[i:], n
			if k := len(l.epochs); k == 0 || l.asOf-l.epochs[k-1].at >= l.timing.Life/16 {
				l.epochs = append(l.epochs, epoch{l.asOf, e.Revision})
			}
		}
	case e.Kind == kv.Changed && server:
		l.changed(id, e)
	case e.Kind == kv.Deleted && server:
		l.remove(func(m *member) bool { return m.info.ID == id && m.rev < e.Revision })
	}
}

func (l *List) changed(id string, e kv.Event) {
	m := l.members[id]
	if m != nil && e.Revision <= m.rev {
		m.listed = true
		return
	}
	info, err := parseInfo(id, e.Value)
	if err != nil || m == nil && len(l.ids) >= MaxServers {
		l.Bad++
		return
	}
	if m == nil {
		m = &member{}
		l.members[id] = m
		i, _ := slices.BinarySearch(l.ids, id)
		l.ids = slices.Insert(l.ids, i, id)
	}
	m.info, m.rev, m.seen, m.listed = info, e.Revision, l.now, true
}

// remove removes members.
func (l *List) remove(gone func(m *member) bool) {
	l.ids = slices.DeleteFunc(l.ids, func(id string) bool {
		if !gone(l.members[id]) {
			return false
		}
		delete(l.members, id)
		return true
	})
}

// step writes the mark, and removes who wasn't heard of for Expiry. While the list isn't current nobody is removed.
func (l *List) step(now time.Duration, ask *asker) {
	l.now = max(l.now, now)
	l.remove(func(m *member) bool { return l.asOf-m.seen > l.timing.Expiry })
	l.epochs = slices.DeleteFunc(l.epochs, func(e epoch) bool { return l.now-e.at > l.timing.young() })
	if l.now < l.markAt {
		return
	}
	l.markAt = l.now + l.timing.Beat
	if len(l.marks) == maxMarks {
		l.marks, l.told = l.marks[1:], l.told+1
	}
	l.marks = append(l.marks, l.now)
	ask.ask(kv.Op{Kind: kv.Put, Key: l.mark, Expect: kv.Any, TTL: 10 * l.timing.Expiry,
		Value: binary.LittleEndian.AppendUint64(nil, l.told+uint64(len(l.marks)))})
}

// young reports whether a revision is known to have been written within the last Timing.young.
func (l *List) young(rev uint64) bool { return len(l.epochs) > 0 && l.epochs[0].rev < rev }

// Current reports whether the list has been read at all. Before, it is empty.
func (l *List) Current() bool { return l.current }

// Age returns how old the list may be: it has every announcement that was written longer ago than that. Before the first mark has returned
// it is the time that the last Step was given.
func (l *List) Age() time.Duration { return l.now - l.asOf }

// Len returns the number of servers.
func (l *List) Len() int { return len(l.ids) }

// All calls yield for each server in the order of IDs, with the time since its announcement came. Don't change the Info.
func (l *List) All(yield func(i *Info, since time.Duration) bool) {
	for _, id := range l.ids {
		if m := l.members[id]; !yield(m.info, l.now-m.seen) {
			return
		}
	}
}

// get returns a server, or nil.
func (l *List) get(id string) *Info {
	if m := l.members[id]; m != nil {
		return m.info
	}
	return nil
}

// fresh reports whether the list may be used to place players: it says who is dead.
func (l *List) fresh() bool { return l.current && l.Age() <= l.timing.stale() }
