package main

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/stream"
)

// echoes answers streams with what they bring.
type echoes struct {
	listener *stream.Listener
	group    sync.WaitGroup
}

func newEchoes() *echoes {
	e := &echoes{listener: stream.Listen(streamName, stream.Config{MaxStreams: 1024, Backlog: 1024})}
	e.group.Go(func() {
		for {
			c, err := e.listener.Accept()
			if err != nil {
				return
			}
			e.group.Go(func() {
				_, _ = io.Copy(c, c) // the other end sees what became of it
				_ = c.Close()
			})
		}
	})
	return e
}

func (e *echoes) close() error {
	err := e.listener.Close()
	e.group.Wait()
	return err
}

// streams is a client's: one after the other, from a goroutine of its own.
type streams struct {
	cancel context.CancelFunc
	quiet  atomic.Bool // no new ones
	over   atomic.Bool // the goroutine has ended
	gone   atomic.Bool // the client has vanished: streams may break
	n      atomic.Uint64
	bytes  atomic.Uint64
	group  *sync.WaitGroup
}

func newStreams(d *driver.Driver, key uint64, rng *rand.Rand, group *sync.WaitGroup, problem func(string, ...any)) *streams {
	ctx, cancel := context.WithCancel(context.Background())
	s := &streams{cancel: cancel, group: group}
	group.Go(func() {
		defer s.over.Store(true)
		for i := uint64(0); !s.quiet.Load() && ctx.Err() == nil; i++ {
			if err := s.one(ctx, d, key, i, 1+rng.IntN(20_000)); err != nil && !s.gone.Load() {
				problem("stream %d: %v", i, err)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Duration(rng.Int64N(int64(2 * time.Second)))):
			}
		}
	})
	return s
}

// one sends size bytes and compares what comes back.
func (s *streams) one(ctx context.Context, d *driver.Driver, key, n uint64, size int) error {
	c, err := stream.Dial(ctx, d, streamName, stream.Config{})
	if err != nil {
		return err
	}
	defer c.Close()
	sent := make([]byte, size)
	fill(sent, key, n)
	if _, err := c.Write(sent); err != nil {
		return err
	}
	if err := c.CloseWrite(); err != nil {
		return err
	}
	got, err := io.ReadAll(c)
	switch {
	case err != nil:
		return err
	case !bytes.Equal(got, sent):
		return &net.OpError{Op: "compare", Net: "stream", Err: io.ErrUnexpectedEOF}
	}
	s.n.Add(1)
	s.bytes.Add(uint64(size))
	return nil
}
