package stream

import (
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// liar opens and closes channels of streams and says on them whatever it likes, in whatever order. It belongs to its driver's goroutine.
type liar struct {
	rng  *rand.Rand
	conn *driver.Conn
	open []*channel.Channel
	fins map[*channel.Channel]bool // it said that no more data comes
	lies int
}

// lie does one thing.
func (l *liar) lie() {
	l.lies++
	var ch *channel.Channel
	if len(l.open) == 0 || l.rng.IntN(3) == 0 {
		var err error
		if ch, err = l.conn.Open(name, channel.Nop{}); err != nil {
			return
		}
		l.open = append(l.open, ch)
	} else {
		ch = l.open[l.rng.IntN(len(l.open))]
	}
	for range 1 + l.rng.IntN(3) {
		if ch.Closing() {
			break
		}
		_, _ = ch.SendBunch(&bunch.Out{Data: l.segments(ch), Reliable: true}) // where it has no room it says nothing
	}
	if l.rng.IntN(4) == 0 && !ch.Closing() {
		_ = ch.Close(bunch.Destroyed)
	}
	if l.rng.IntN(60) == 0 {
		for _, ch := range l.open {
			if !ch.Closing() {
				_ = ch.Close(bunch.Destroyed)
			}
		}
		l.open = l.open[:0]
	}
}

// segments are those that don't end the connection, mostly.
func (l *liar) segments(ch *channel.Channel) (p []byte) {
	for range 1 + l.rng.IntN(4) {
		kind := l.rng.IntN(12)
		if kind == 7 || kind < 3 {
			if l.fins[ch] && l.rng.IntN(1000) > 0 {
				continue
			}
			l.fins[ch] = l.fins[ch] || kind == 7
		}
		switch kind {
		case 0, 1, 2:
			n := 1 + l.rng.IntN(100)
			if l.rng.IntN(100) == 0 {
				n = 900
			}
			p = append(p, segData, byte(n), byte(n>>8))
			p = append(p, make([]byte, n)...)
		case 3, 4, 5, 6:
			credits := []uint64{0, 1, InitialCredit + l.rng.Uint64N(100), 1 << 30, math.MaxUint64, l.rng.Uint64()}
			p = binary.LittleEndian.AppendUint64(append(p, segCredit), credits[l.rng.IntN(len(credits))])
		case 7:
			p = append(p, segFin)
		case 8, 9:
			p = append(p, segStop)
		case 10:
			p = append(p, segRefused, byte(l.rng.Uint32()))
		case 11:
			if l.rng.IntN(1000) == 0 {
				p = append(p, byte(l.rng.Uint32()), byte(l.rng.Uint32()))
			}
		}
	}
	return p
}

// TestLiars: whatever a peer says on streams, and in whatever order it opens and closes them, the Listener's bounds hold, each call of its program
// returns by its deadline, and when the program has closed them and the connection has ended nothing is left of them.
func TestLiars(t *testing.T) {
	seeds := uint64(20)
	if os.Getenv("CI") != "" {
		seeds = 100
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			liars(t, seed)
			if t.Failed() {
				t.Fatal("seed ", seed)
			}
		})
	}
}

func liars(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	cfg := Config{Window: InitialCredit, Buffer: 1 + rng.IntN(30_000), MaxStreams: 1 + rng.IntN(8), MaxPerConn: 1 + rng.IntN(8), Backlog: 1 + rng.IntN(4)}
	l := Listen(name, cfg)
	both := driver.Config{Link: driver.PlainSalted{}, TickRate: 60, NetSpeed: 500_000, Prompt: rng.IntN(2) == 0}
	sc, cc := both, both
	sc.Channels, cc.Channels = []channel.Type{l.Type()}, []channel.Type{{Name: name, ClientOpen: true}}
	path := []netsim.Settings{}
	if rng.IntN(2) == 0 {
		path = []netsim.Settings{lossy, lossy}
	}
	server, client, _ := linked(t, sc, cc, path...)
	_, stopServer := running(t, server)
	_, stopClient := running(t, client)

	var programs sync.WaitGroup
	programs.Go(func() {
		rng := rand.New(rand.NewPCG(seed, 3))
		for n := uint64(0); ; n++ {
			s, err := l.Accept()
			if err != nil {
				return
			}
			programs.Go(func() { program(t, s, rand.New(rand.NewPCG(seed, n))) })
			time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
		}
	})
	told := &liar{rng: rand.New(rand.NewPCG(seed, 2))} // the driver's goroutine has it
	for range 2000 {
		client.Do(func() {
			if c := client.Server(); c != nil && c.Joined() {
				if told.conn != c {
					told.conn, told.open, told.fins = c, nil, map[*channel.Channel]bool{}
				}
				told.lie()
			}
		})
		time.Sleep(time.Duration(rng.IntN(10)) * time.Millisecond)
		l.mu.Lock()
		assert.LessOrEqual(t, l.open, cfg.MaxStreams)
		assert.LessOrEqual(t, len(l.waiting), cfg.Backlog)
		for _, n := range l.perConn {
			assert.LessOrEqual(t, n, cfg.MaxPerConn)
		}
		l.mu.Unlock()
	}
	if rng.IntN(2) == 0 {
		time.Sleep(20 * time.Second) // the programs close all, while the liar says nothing more
		l.mu.Lock()
		assert.Zero(t, l.open)
		l.mu.Unlock()
	}
	stopClient()
	require.Greater(t, told.lies, 10)
	time.Sleep(2 * time.Minute) // the server notices
	l.mu.Lock()
	assert.Empty(t, l.perConn)
	assert.Zero(t, l.open)
	l.mu.Unlock()
	stopServer()
	require.NoError(t, l.Close())
	programs.Wait()
}

// program reads and writes for a while.
func program(t *testing.T, s net.Conn, rng *rand.Rand) {
	until := time.Now().Add(time.Duration(rng.IntN(5000)) * time.Millisecond)
	assert.NoError(t, s.SetDeadline(until))
	var both sync.WaitGroup
	if rng.IntN(2) == 0 {
		both.Go(func() { _, _ = io.Copy(io.Discard, s) })
	}
	if rng.IntN(2) == 0 {
		both.Go(func() {
			for {
				if _, err := s.Write(make([]byte, rng.IntN(5000))); err != nil {
					return
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	both.Wait()
	assert.False(t, time.Now().After(until.Add(time.Second)), "a call outlived its deadline")
	if rng.IntN(3) == 0 {
		_ = s.(*Conn).CloseWrite()
		time.Sleep(time.Second)
	}
	assert.NoError(t, s.Close())
}
