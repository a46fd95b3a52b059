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

// ErrShards is wrapped by the error of ListenShards when n isn't from 1 to 256, or a shard's Config has a Socket: shards open their own.
var ErrShards = errors.New("driver: shards")

// ListenShards opens n servers at one address, 1 to 256, for machines with more cores than one driver can use. The kernel
// distributes datagrams by the addresses of both ends, so a client stays with one server. Linux only; elsewhere it
// returns udp.ErrReusePort.
//
// Each server has its own connections, callbacks, MaxConns and goroutine. So config is called for each one's settings,
// in order, and whatever the settings share must be safe for concurrent use. With Netcode, slots and the memory of used
// tokens are each server's own too: n times the clients fit, a client id may be connected to two of them, and a token
// may be used again from an address that the kernel gives to another. A client whose address changes may come to another
// server, which doesn't know it, and must connect again.
//
// When one server stops, the kernel distributes the other servers' clients anew. So end all together, as RunShards does.
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

// freePort is the address with a port that nobody listens at. On a port in use the shards would take a part of the other server's
// datagrams.
func freePort(addr string) (netip.AddrPort, error) {
	s, err := udp.Listen(addr, udp.Config{})
	if err != nil {
		return netip.AddrPort{}, err
	}
	return s.LocalAddr(), s.Close()
}

func listenShard(addr netip.AddrPort, cfg Config) (*Driver, error) {
	if cfg.Socket != nil {
		return nil, fmt.Errorf("%w: Config.Socket is set; they open their own; another socket needs a driver of its own, which RunShards runs beside them", ErrShards)
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

// RunShards runs drivers, each on its own goroutine and with step between its ticks, until ctx is done or one of them
// fails. Then it closes all. step may be nil.
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
