package main

import (
	"fmt"
	"slices"
	"time"
)

// truth is who has played which actor in which epoch, as servers and clients say. Nobody plays an actor while another does.
type truth struct {
	actors    map[uint32][]tenure // the newest epochs of an actor, in order
	wrong     []string
	moves     int
	handovers []handover // the newest
}

// tenure is a server's time with an actor.
type tenure struct {
	epoch       uint32
	start       int
	first, last int64 // 0: only clients have told of it
}

// handover is an actor that has gone to another server.
type handover struct {
	Actor    uint32
	From, To int // starts of servers
	At       time.Time
}

// maxTenures bounds what is kept of an actor, and maxHandovers what is shown.
const (
	maxTenures   = 16
	maxHandovers = 256
)

func (t *truth) fail(format string, args ...any) {
	if len(t.wrong) < maxWrong {
		t.wrong = append(t.wrong, fmt.Sprintf(format, args...))
	}
}

// find returns an actor's tenure of an epoch; nil for one so old that it isn't kept.
func (t *truth) find(actor, epoch uint32, start int) *tenure {
	list := t.actors[actor]
	i, known := slices.BinarySearchFunc(list, epoch, func(x tenure, epoch uint32) int { return int(int64(x.epoch) - int64(epoch)) })
	if !known {
		if i == 0 && len(list) >= maxTenures {
			return nil
		}
		list = slices.Insert(list, i, tenure{epoch: epoch, start: start})
		if len(list) > maxTenures {
			list, i = slices.Delete(list, 0, 1), i-1
		}
		t.actors[actor] = list
	}
	if list[i].start != start {
		t.fail("authority: actor %d is played by starts %d and %d in epoch %d", actor, list[i].start, start, epoch)
	}
	return &list[i]
}

// seen: a client sees an actor that a server has changed in an epoch.
func (t *truth) seen(actor uint32, who uint64) {
	t.find(actor, uint32(who), int(who>>32))
}

// played: a server says when it has played an actor.
func (t *truth) played(start int, p span) {
	x := t.find(p.Actor, p.Epoch, start)
	if x == nil {
		return
	}
	fresh := x.first == 0
	x.first, x.last = p.First, p.Last
	list := t.actors[p.Actor]
	for i, o := range list {
		switch {
		case o.first == 0 || o.epoch == p.Epoch:
		case o.epoch < p.Epoch && o.last > p.First:
			t.both(p.Actor, o, *x)
		case o.epoch > p.Epoch && p.Last > o.first:
			t.both(p.Actor, *x, o)
		}
		if fresh && o.epoch == p.Epoch && i > 0 && list[i-1].start != start {
			t.moves++
			t.handovers = append(t.handovers, handover{p.Actor, list[i-1].start, start, time.Now()})
			t.handovers = t.handovers[max(0, len(t.handovers)-maxHandovers):]
		}
	}
}

// both: an actor was played in an epoch when it was in a newer one already.
func (t *truth) both(actor uint32, old, newer tenure) {
	t.fail("authority: actor %d was played by start %d in epoch %d until %v after start %d began to, in epoch %d", actor, old.start, old.epoch, time.Duration(old.last-newer.first), newer.start, newer.epoch)
}

// since returns when an actor was first played by another start than one, in a newer epoch; false when it hasn't been.
func (t *truth) since(actor uint32, start int) (at int64, again bool) {
	for _, x := range t.actors[actor] {
		switch {
		case x.start == start:
			at, again = 0, false
		case x.first > 0 && !again:
			at, again = x.first, true
		}
	}
	return at, again
}
