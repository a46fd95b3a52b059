package main

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// simSocket is a socket on a simulated link, in virtual time.
type simSocket struct {
	now    *time.Duration
	local  netip.AddrPort
	peer   *simSocket
	link   *netsim.Link // to the peer
	closed bool
}

func simPair(t *testing.T, now *time.Duration, s netsim.Settings, seed uint64) (a, b *simSocket) {
	a = &simSocket{now: now, local: netip.MustParseAddrPort("127.0.0.1:7777")}
	b = &simSocket{now: now, local: netip.MustParseAddrPort("127.0.0.1:1111"), peer: a}
	a.peer = b
	var err error
	a.link, err = netsim.NewLink(s, seed)
	require.NoError(t, err)
	b.link, err = netsim.NewLink(s, seed+1)
	require.NoError(t, err)
	return a, b
}

func (s *simSocket) LocalAddr() netip.AddrPort              { return s.local }
func (s *simSocket) BatchSize() int                         { return 16 }
func (s *simSocket) SetReadDeadline(time.Time) error        { return nil }
func (s *simSocket) ReadBatch(m []udp.Message) (int, error) { return s.TryReadBatch(m) }
func (s *simSocket) Close() error                           { s.closed = true; return nil }
func (s *simSocket) WriteBatch(msgs []udp.Message) (int, error) {
	if s.closed {
		return 0, net.ErrClosed
	}
	for i := range msgs {
		s.link.Push(*s.now, msgs[i].Buf)
	}
	return len(msgs), nil
}
func (s *simSocket) TryReadBatch(msgs []udp.Message) (int, error) {
	for i := range msgs {
		p, ok := s.peer.link.Pop(*s.now)
		if !ok {
			return i, nil
		}
		msgs[i].N, msgs[i].Addr = copy(msgs[i].Buf, p), s.peer.local
	}
	return len(msgs), nil
}

func TestEchoUnderLoss(t *testing.T) {
	for _, loss := range []float64{0, 10, 30, 60} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%v%%/seed %d", loss, seed), func(t *testing.T) {
				s := netsim.Settings{Loss: loss, LagMin: 5 * time.Millisecond, LagMax: 15 * time.Millisecond}
				if loss > 0 {
					s.Dup, s.Order, s.Corrupt = 5, 5, 3
				}
				runEcho(t, s, seed)
			})
		}
	}
}

func runEcho(t *testing.T, s netsim.Settings, seed uint64) {
	var now time.Duration
	a, b := simPair(t, &now, s, seed)
	scfg, srv := newServer(driver.Unreal51(driver.Config{Socket: a, Checksum: true}))
	sd, err := driver.Listen("", scfg)
	require.NoError(t, err)
	ccfg, cl := newClient(driver.Unreal51(driver.Config{Socket: b, Checksum: true}), clientOptions{messages: 300, channels: 2, seed: seed, big: true})
	cd, err := driver.Dial("127.0.0.1:7777", ccfg)
	require.NoError(t, err)
	start := time.Now()
	for now < 20*time.Minute && cl.result == nil {
		now += time.Second / 60
		at := start.Add(now)
		sd.TickDispatch(at)
		cd.TickDispatch(at)
		cl.step()
		sd.TickFlush(at)
		cd.TickFlush(at)
		require.NoError(t, sd.Err())
		require.NoError(t, cd.Err())
	}
	require.NoError(t, cl.verdict(), "seed %d: %s, %v, server %+v", seed, cl.summary(), cl.result, srv)
	require.Zero(t, srv.failed)
	t.Logf("seed %d: %s in %v of virtual time", seed, cl.summary(), now)
}

// TestFailure: a failure names the driver's error when there is one.
func TestFailure(t *testing.T) {
	_, e := newClient(driver.Unreal51(driver.Config{}), clientOptions{seed: 7})
	require.NotContains(t, e.failure(e.verdict(), nil).Error(), "driver")
	err := e.failure(e.verdict(), net.ErrClosed)
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorContains(t, err, "never connected (seed 7;")
	require.ErrorContains(t, err, "; the driver: "+net.ErrClosed.Error())
}

func TestMessageCodec(t *testing.T) {
	b := append(encode(7, 100), encode(8, 0)...)
	id, rest, err := decode(b)
	require.NoError(t, err)
	require.EqualValues(t, 7, id)
	id, rest, err = decode(rest)
	require.NoError(t, err)
	require.EqualValues(t, 8, id)
	require.Empty(t, rest)
	b[50] ^= 1
	_, _, err = decode(b)
	require.ErrorIs(t, err, errCorrupt)
}
