package exercise

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// known is what clients may know of a thing.
type known struct {
	values *simtest.Values
	name   string   // the last that fits
	list   []uint16 // likewise
	born   int      // the tick in which it came
	shouts uint32
	unfit  map[string]bool // fields whose value doesn't fit; true when somebody was told
}

// What the fields of a thing take at most.
const (
	maxLevel = 200
	maxName  = 1024
	maxList  = 30
)

// The fields of which a thing's values are noted. The owner doesn't have Public, and others don't have Secret.
const (
	fieldLevel = iota
	fieldCount
	fieldX
	fieldY
	fieldName
	fieldPurse0
	fieldPurse1
	fieldPurse2
	fieldList
	fieldPushed
	fieldSecret
	fieldPublic
	fields
)

// know begins to note a thing's values.
func (p *program) know(t *thing) {
	t.known = &known{born: p.ticks, unfit: map[string]bool{}}
	t.known.values = p.g.w.NewValues(fmt.Sprint("thing ", t.GUID()), "Level", "Count", "X", "Y", "Name", "Purse[0]", "Purse[1]", "Purse[2]", "List", "Pushed", "Secret", "Public")
	p.things.known[t.GUID()] = t.known
	t.known.values.Set(fieldSecret, uint32(0)) // whose it isn't
	t.known.values.Set(fieldPublic, uint32(0))
	t.note()
}

// note notes a thing's values as clients are to see them.
func (t *thing) note() {
	k := t.known
	if len(t.Name) <= maxName {
		k.name = t.Name
		delete(k.unfit, "Name")
	}
	if len(t.List) <= maxList {
		k.list = slices.Clone(t.List)
		delete(k.unfit, "List")
	}
	if t.Level <= maxLevel {
		delete(k.unfit, "Level")
	}
	for i, v := range t.all(min(t.Level, maxLevel), k.name, k.list) {
		k.values.Set(i, v)
	}
}

func (t *thing) all(level uint8, name string, list []uint16) [fields]any {
	return [fields]any{level, t.Count, t.X, t.Y, name, t.Purse[0], t.Purse[1], t.Purse[2], fmt.Sprint(list), t.Pushed.Get(), t.Secret, t.Public}
}

// look compares a client's thing with what the server's was.
func (t *thing) look() {
	if t.sight == nil {
		return
	}
	for i, v := range t.all(t.Level, t.Name, t.List) {
		t.sight.Sees(i, v)
	}
}

// ran compares the values while a call runs. Others than the owner get a shout too.
func (t *thing) ran(mark uint32, owner bool) {
	if t.sight == nil {
		return
	}
	for i, v := range t.all(t.Level, t.Name, t.List) {
		if i == fieldPublic || i == fieldSecret && !owner {
			continue
		}
		t.sight.Ran(mark, i, v)
	}
}

// unfit sets a value now and then that doesn't fit, of a thing that the last Step has seen.
func (p *program) unfit() {
	if p.odd.IntN(40) > 0 || len(p.things.all) == 0 {
		return
	}
	t := p.things.all[p.odd.IntN(len(p.things.all))]
	if t.known.born == p.ticks {
		return
	}
	field := []string{"Level", "Name", "List"}[p.odd.IntN(3)]
	switch field {
	case "Level":
		t.Level = maxLevel + 1 + uint8(p.odd.IntN(50))
	case "Name":
		t.Name = strings.Repeat("n", maxName+1+p.odd.IntN(100))
	case "List":
		t.List = make([]uint16, maxList+1+p.odd.IntN(100))
	}
	if _, is := t.known.unfit[field]; !is {
		t.known.unfit[field] = false
	}
	t.note()
	if t.Dormant() {
		t.FlushDormancy()
	}
}

// checkTold checks that the last Step told of values that don't fit.
func (p *program) checkTold() {
	for _, t := range p.things.all {
		for _, field := range []string{"Level", "Name", "List"} {
			if told, is := t.known.unfit[field]; is && !told {
				p.g.w.Failf("whole", "%s: %s of thing %v doesn't fit, and nobody was told", p.h.Name(), field, t.GUID())
			}
		}
	}
}

// hasLeak reports whether an end has all its channels although its peer has acked everything that closes them.
func (p *program) hasLeak() bool {
	for _, e := range p.ends {
		if t := e.conn.Table(); e.alive() && t.Len() >= maxChannels/2 && t.Unacked() == 0 {
			return true
		}
	}
	return false
}

// told is told by a world of what doesn't get through.
func (p *program) told(err error) {
	if errors.Is(err, actorrep.ErrNoAnswer) {
		return // it is silent for long
	}
	if errors.Is(err, channel.ErrNoIndex) && !p.hasLeak() {
		return
	}
	var refused *actorrep.RefusedError
	errors.As(err, &refused)
	var of *actorrep.ActorError
	if errors.As(err, &of) {
		t, _ := of.Actor.(*thing)
		switch {
		case t == nil:
		case errors.Is(err, actorrep.ErrUnfit):
			if _, is := t.known.unfit[of.Name]; is {
				t.known.unfit[of.Name] = true
				return
			}
		case of.Name == "shout" && of.Peer != nil:
			e := of.Peer.User.(*end)
			e.toldOf[t.GUID()]++
			return
		case of.Name == "tell" && of.Peer != nil && t.calls != nil && t.calls.from == of.Peer.User:
			t.calls.Told()
			return
		case of.Name == "ask" && t.end != nil:
			n := 1
			if refused != nil {
				n = refused.Calls
			}
			t.end.toldAsk(t, n)
			return
		}
	}
	if refused != nil { // its thing has gone
		return
	}
	p.g.w.Failf("converge", "%s: %v", p.h.Name(), err)
}
