package driver

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/bunchnet/bunchnet/netconn/udp"
)

// maxShards is far above the cores of a machine.
const maxShards = 256

// ErrShards is ListenShards' for settings that shards can't have.
var ErrShards = errors.New("driver: shards")

// ListenShards opens n servers at one address, for machines with more cores than one driver can use. The kernel deals
// datagrams out by the addresses of both ends, so a client stays with one of them. Linux only; elsewhere the error is
// udp.ErrReusePort.
//
// Each is a server of its own: its connections, its callbacks, its MaxConns, and the goroutine that ticks it. So
// config is asked for each one's settings, in order, and what they share must be safe for that. With
// [Netcode] the slots and the memory of used tokens are each one's too: n times the clients fit, a client id may be at two
// of them, and a token may be used again from an address that the kernel gives to another. A client whose address changes
// may come to another shard, which doesn't know it; it has to connect again.
//
// Where one stops, the kernel deals the others' clients out anew. So end all together, as RunShards does.
func ListenShards(addr string, n int, config func(shard int) Config) ([]*Driver, error) {
	if n < 1 || n > maxShards {
		return nil, fmt.Errorf("%w: %d of them; there may be 1 to %d", ErrShards, n, maxShards)
	}
	port, err := freePort(addr)
	if err != nil {
		return nil, fmt.Errorf("driver: %w", err)
	}
	var all []*Driver
	for i := range n {
		d, err := listenShard(port, config(i))
		if err != nil {
			return nil, errors.Join(err, closeAll(all))
		}
		all = append(all, d)
	}
	return all, nil
}

// freePort is the address with a port that nobody has: shards would take a part of another server's datagrams.
func freePort(addr string) (netip.AddrPort, error) {
	s, err := udp.Listen(addr, udp.Config{})
	if err != nil {
		return netip.AddrPort{}, err
	}
	return s.LocalAddr(), s.Close()
}

func listenShard(addr netip.AddrPort, cfg Config) (*Driver, error) {
	if cfg.Socket != nil {
		return nil, fmt.Errorf("%w: Config.Socket is set; they open their own", ErrShards)
	}
	cfg.UDP.ReusePort = true
	return Listen(addr.String(), cfg)
}

func closeAll(all []*Driver) (err error) {
	for _, d := range all {
		err = errors.Join(err, d.Close())
	}
	return err
}

// RunShards runs drivers, each on a goroutine of its own and with step between its ticks, until ctx is done or one of
// them fails, then closes all. step may be nil.
func RunShards(ctx context.Context, all []*Driver, step func(shard int, now time.Time)) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, d := range all {
		var own func(time.Time)
		if step != nil {
			own = func(now time.Time) { step(i, now) }
		}
		wg.Go(func() {
			defer stop()
			errs[i] = d.Run(ctx, own)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
