package ice

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/pion/stun/v4"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/internal/mailbox"
)

// asked is a relay without a server, which counts what it is asked to let in.
func asked(answer func(a netip.Addr) error) *relay {
	r := &relay{n: &node{began: time.Now()}, out: mailbox.NewOutbox(1 << 20), ended: make(chan struct{})}
	r.permits.of, r.permits.ask = map[netip.Addr]*permit{}, answer
	return r
}

// later lets time pass.
func (r *relay) later(d time.Duration) { r.n.began = r.n.began.Add(-d) }

// says writes to an address, waits for what that asks for, and returns how many datagrams wait to be sent.
func (r *relay) says(to netip.Addr) (waiting int) {
	r.write([]byte{1}, netip.AddrPortFrom(to, 5000))
	r.permits.asking.Wait()
	for r.out.Pop(nil) != nil {
		waiting++
	}
	return waiting
}

func numbered(i int) netip.Addr { return netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)}) }

// TestPermissionIsAskedForAgain: a relay that refused to let somebody in is asked again after a moment, not for each datagram.
func TestPermissionIsAskedForAgain(t *testing.T) {
	asks, refuse := 0, true
	r := asked(func(netip.Addr) error {
		if asks++; refuse {
			return errors.New("no")
		}
		return nil
	})
	to := numbered(1)
	for range 100 {
		require.Zero(t, r.says(to))
	}
	require.Equal(t, 1, asks)
	r.later(permitAgain)
	refuse = false
	require.Equal(t, 1, r.says(to), "the datagram that asked goes too")
	require.Equal(t, 1, r.says(to))
	require.Equal(t, 2, asks)
	require.Zero(t, r.permits.underway)
}

// TestPermissionIsKept: who is sent to is let in again before the relay forgets it, and sent to meanwhile; one that the relay has forgotten isn't.
func TestPermissionIsKept(t *testing.T) {
	asks := 0
	r := asked(func(netip.Addr) error { asks++; return nil })
	for range 60 * 60 {
		require.Equal(t, 1, r.says(numbered(1)))
		r.later(time.Second)
	}
	require.InDelta(t, time.Hour/permitFresh, asks, 1)
	r.later(permitLife)
	r.permits.ask = func(netip.Addr) error { return errors.New("no") }
	require.Zero(t, r.says(numbered(1)))
}

// TestPermissionsAreRenewed: a relay may have forgotten whom it lets in, since this machine slept; then all that are sent to are asked for again.
func TestPermissionsAreRenewed(t *testing.T) {
	asks := 0
	r := asked(func(netip.Addr) error { asks++; return nil })
	for range 3 {
		require.Equal(t, 1, r.says(numbered(1)))
		require.Equal(t, 1, r.says(numbered(2)))
	}
	require.Equal(t, 2, asks)
	r.permits.renew()
	for range 3 {
		require.Equal(t, 1, r.says(numbered(1)), "it may still be let in")
	}
	require.Equal(t, 3, asks)
}

// TestPermissionsAreGivenBack: addresses that nothing is sent to any more make room for others, those in use don't.
func TestPermissionsAreGivenBack(t *testing.T) {
	asks := map[netip.Addr]int{}
	r := asked(func(a netip.Addr) error { asks[a]++; return nil })
	for i := range maxPermits {
		require.Equal(t, 1, r.says(numbered(i)))
	}
	require.Zero(t, r.says(numbered(maxPermits)), "all are in use")
	for n := range 10 {
		r.later(permitIdle / 2)
		require.Equal(t, 1, r.says(numbered(0)))
		r.later(permitIdle / 2)
		require.Equal(t, 1, r.says(numbered(maxPermits+1+n)))
		require.Len(t, r.permits.of, maxPermits)
	}
	require.Contains(t, r.permits.of, numbered(0))
	for n := range 10 {
		require.NotContains(t, r.permits.of, numbered(1+n), "it waited for longest")
	}
	require.Equal(t, 3, asks[numbered(0)], "once, and every two minutes")
}

// TestIndication: what a relay is given to send on says to whom.
func TestIndication(t *testing.T) {
	to := net.UDPAddr{IP: net.IPv4(203, 0, 113, 9), Port: 5000}
	m, err := stun.Build(stun.TransactionID, stun.NewType(stun.MethodSend, stun.ClassIndication), &indication{to, []byte("hello")})
	require.NoError(t, err)
	got := stun.Message{Raw: m.Raw}
	require.NoError(t, got.Decode())
	var at stun.XORMappedAddress
	require.NoError(t, at.GetFromAs(&got, stun.AttrXORPeerAddress))
	require.Equal(t, "203.0.113.9:5000", at.String())
	data, err := got.Get(stun.AttrData)
	require.NoError(t, err)
	require.Equal(t, "hello", string(data))
}
