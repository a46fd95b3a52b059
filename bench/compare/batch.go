package main

import (
	"sync"
	"sync/atomic"
	"time"
)

// batchRate is how often a second a batching client sends what was written: a game's ticks.
const batchRate = 120

// batched is a client that sends at ticks: Flush leaves it to the next one.
type batched struct {
	Conn
	dirty atomic.Bool
	stop  chan struct{}
	done  chan struct{}
	once  sync.Once
}

func newBatched(c Conn) *batched {
	b := &batched{Conn: c, stop: make(chan struct{}), done: make(chan struct{})}
	go b.run()
	return b
}

func (b *batched) run() {
	defer close(b.done)
	tick := time.NewTicker(time.Second / batchRate)
	defer tick.Stop()
	for {
		select {
		case <-b.stop:
			return
		case <-tick.C:
			if b.dirty.Swap(false) && b.Conn.Flush() != nil {
				return
			}
		}
	}
}

func (b *batched) Flush() error { b.dirty.Store(true); return nil }

func (b *batched) Close() error {
	b.once.Do(func() { close(b.stop) })
	<-b.done
	return b.Conn.Close()
}

// dial is the peer's Dial, batching when that is asked for and the peer doesn't do so by itself.
func (p *Peer) dial(addr string, o Options, h Handler) (Conn, error) {
	c, err := p.Dial(addr, o, h)
	if err != nil || !o.Batch || p.Ticks {
		return c, err
	}
	return newBatched(c), nil
}
