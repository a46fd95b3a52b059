package graph

import (
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
)

// Item is an actor in a graph.
type Item struct {
	// Actor is the actor.
	Actor actorrep.Actor
	// Index is a small number for a node's tables, from 1. No other actor has it while this one is in the graph.
	Index int

	node  Node
	owner *actorrep.Peer
	place int // index in the queue, plus 1; 0 when not in it
	news  news
}

// news says what has changed about an actor.
type news uint8

const (
	moved news = 1 << iota
	settings
)

// Viewer is a connection in a graph.
type Viewer struct {
	// Peer is the connection.
	Peer *actorrep.Peer
	// Index is a small number for a node's tables. No other connection has it while this one is in the graph.
	Index int

	target *Item
	pairs  []uint64 // how it sees each actor: two bits each
	joined time.Duration
}

const pairsPerWord = 32

// Sees is how the connection sees an actor now.
func (v *Viewer) Sees(it *Item) Sight { return v.sees(it.Index) }

func (v *Viewer) sees(i int) Sight {
	word := uint(i) / pairsPerWord
	if word >= uint(len(v.pairs)) {
		return Hidden
	}
	return Sight(v.pairs[word] >> (uint(i) % pairsPerWord * 2) & 3)
}

func (v *Viewer) set(it *Item, s Sight) {
	word, shift := it.Index/pairsPerWord, it.Index%pairsPerWord*2
	v.pairs = grown(v.pairs, word)
	v.pairs[word] = v.pairs[word]&^(3<<shift) | uint64(s)<<shift
}
