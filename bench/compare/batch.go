package main

import (
	"sync"
	"time"
)

// batchRate is how often a second a batching client sends what was written: a game's ticks.
const batchRate = 120

// batched is a client that sends at ticks: it keeps messages until the next one, since some peers send each at once.
type batched struct {
	Conn
	mu    sync.Mutex
	held  []byte // framed messages
	spare []byte
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
			if b.tick() != nil {
				return
			}
		}
	}
}

// tick sends what is held.
func (b *batched) tick() error {
	b.mu.Lock()
	b.held, b.spare = b.spare[:0], b.held
	b.mu.Unlock()
	if len(b.spare) == 0 {
		return nil
	}
	for msg, rest, ok := cutFrame(b.spare); ok; msg, rest, ok = cutFrame(rest) {
		if err := b.Conn.Send(msg); err != nil {
			return err
		}
	}
	return b.Conn.Flush()
}

func (b *batched) Send(msg []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = appendFrame(b.held, msg)
	return nil
}

func (b *batched) Flush() error { return nil }

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
