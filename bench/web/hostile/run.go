package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/netconn/web"
)

const (
	strangers    = 16               // at once
	calmTime     = 30 * time.Second // after an attack, until all is as before
	moreMemory   = 64 << 20
	newcomerTime = 700 * time.Millisecond // 2 of 3 newcomers ask the door, which takes 2 requests a second of an address
)

// run has players play, and one attack after the other beside them.
func run(ctx context.Context, out io.Writer, length time.Duration, only string, seed uint64) (err error) {
	g, err := open(ctx)
	if err != nil {
		return err
	}
	var players []*player
	playing, end := context.WithCancel(ctx)
	defer func() {
		end()
		for _, p := range players {
			err = errors.Join(err, p.close())
		}
		err = errors.Join(err, g.close())
	}()
	ways := []web.Way{web.UDP, web.WebTransport, web.WebSocket, web.UDP, web.WebTransport, web.WebSocket}
	for _, way := range ways {
		p, ch, _, err := g.enter(ctx, way)
		if err != nil {
			return err
		}
		players = append(players, p)
		go p.play(playing, ch)
	}
	fmt.Fprintf(out, "%-30s %9s %9s %9s %12s %14s %7s %10s\n", "attack", "done", "refused", "sessions", "p99 echo ms", "newcomers ms", "again", "memory MB")
	quiet := attack{"none", func(ctx context.Context, _ *stranger) error { <-ctx.Done(); return nil }}
	for _, a := range append([]attack{quiet}, attacks...) {
		if a.name != quiet.name && !strings.Contains(a.name, only) {
			continue
		}
		if err := g.stand(ctx, out, a, players, length, seed); err != nil {
			return fmt.Errorf("%q: %w; %+v", a.name, err, g.door.Counters())
		}
	}
	return nil
}

// stand has the game stand one attack.
func (g *game) stand(ctx context.Context, out io.Writer, a attack, players []*player, length time.Duration, seed uint64) error {
	sessions, goroutines := g.door.Len(), runtime.NumGoroutine()
	before := heap()
	under, over := context.WithTimeout(ctx, length)
	defer over()
	type did struct{ n, refused int }
	ended := make(chan did, 1)
	go func() {
		n, refused := a.run(under, g.at, strangers, seed)
		ended <- did{n, refused}
	}()
	var slowest time.Duration
	most, again := 0, 0
	for i := 0; under.Err() == nil; i++ {
		way := []web.Way{web.WebTransport, web.WebSocket, web.UDP}[i%3]
		begin := time.Now()
		p, _, tries, err := g.enter(ctx, way)
		if err != nil {
			return err
		}
		slowest = max(slowest, time.Since(begin))
		again += tries - 1
		most = max(most, g.door.Len())
		if err := p.close(); err != nil {
			return err
		}
		select {
		case <-time.After(newcomerTime):
		case <-under.Done():
		}
	}
	d := <-ended
	memory := heap() - before
	worst := time.Duration(0)
	for _, p := range players {
		_, p99, lost := p.figures()
		if lost != nil {
			return fmt.Errorf("a player by %v lost its connection: %w", p.way, lost)
		}
		worst = max(worst, p99)
	}
	ms := func(d time.Duration) float64 { return d.Seconds() * 1000 }
	fmt.Fprintf(out, "%-30s %9d %9d %9d %12.0f %14.0f %7d %10.1f\n", a.name, d.n, d.refused, most, ms(worst), ms(slowest), again, float64(memory)/(1<<20))
	if memory > moreMemory {
		return fmt.Errorf("memory grew by %d bytes", memory)
	}
	if moved := g.door.Counters().Moved; moved > 0 {
		return fmt.Errorf("strangers moved %d connections", moved)
	}
	if most > maxConns {
		return fmt.Errorf("%d sessions, of %d", most, maxConns)
	}
	for end := time.Now().Add(calmTime); ; time.Sleep(100 * time.Millisecond) {
		waiting := 0
		for _, p := range players {
			n, _, lost := p.figures()
			if lost != nil {
				return fmt.Errorf("a player by %v lost its connection: %w", p.way, lost)
			}
			waiting = max(waiting, n)
		}
		if g.door.Len() <= sessions && runtime.NumGoroutine() <= goroutines+10 && waiting < 60 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%v later there are %d sessions of %d, %d goroutines of %d, and %d messages of a player without an echo", calmTime, g.door.Len(), sessions,
				runtime.NumGoroutine(), goroutines, waiting)
		}
	}
}

// heap is the bytes in use. What has a finalizer, as a stranger's WebSocket has, is free after the second collection, and what a pool holds after that.
func heap() int64 {
	for range 3 {
		runtime.GC()
		time.Sleep(10 * time.Millisecond) // finalizers have a goroutine of their own
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
