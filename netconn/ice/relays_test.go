package ice

import (
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/stun/v4"
	"github.com/stretchr/testify/require"
)

// TestUnreadableRelay: a relay by TCP is lost whose message, by the length in its header, ends before it begins; so the host can be closed.
func TestUnreadableRelay(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			m, err := stun.Build(stun.TransactionID, stun.NewType(stun.MethodData, stun.ClassIndication))
			if err == nil {
				m.Raw[2], m.Raw[3] = 0xff, 0xec
				_, _ = c.Write(m.Raw)
			}
			defer c.Close()
		}
	}()
	cfg := local()
	cfg.Servers = []Server{{URL: "turn:" + l.Addr().String() + "?transport=tcp", Username: "ann", Password: "secret"}}
	h, err := Listen(HostConfig{Config: cfg})
	require.NoError(t, err)
	eventually(t, "it is no relay", func() bool { return h.Counters().RelayErrors > 0 })
	closed := make(chan error, 1)
	go func() { closed <- h.Close() }()
	select {
	case err := <-closed:
		require.NoError(t, err)
	case <-time.After(patience):
		t.Fatal("Close hangs")
	}
	require.NoError(t, l.Close())
	<-done
}

// stunServer answers each message that comes to a port as answer says. Close ends it, and then done is closed.
func stunServer(t *testing.T, answer func(m *stun.Message) []stun.Setter) (pc net.PacketConn, done <-chan struct{}) {
	pc, err := net.ListenPacket("udp4", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for p := make([]byte, 1500); ; {
			k, from, err := pc.ReadFrom(p)
			if err != nil {
				return
			}
			m := stun.Message{Raw: p[:k]}
			if m.Decode() != nil {
				continue
			}
			said, err := stun.Build(append([]stun.Setter{&m}, answer(&m)...)...)
			if err == nil {
				_, _ = pc.WriteTo(said.Raw, from)
			}
		}
	}()
	return pc, ended
}

// TestBriefRelay: a relay that gives an address for no time isn't asked for it again all the time. One that gives it for long is used.
func TestBriefRelay(t *testing.T) {
	for _, life := range []byte{0, leastLife - 1, leastLife} {
		var refreshed atomic.Int64
		pc, done := stunServer(t, func(m *stun.Message) []stun.Setter {
			says := []stun.Setter{stun.NewType(m.Type.Method, stun.ClassSuccessResponse), stun.RawAttribute{Type: stun.AttrLifetime, Value: []byte{0, 0, 0, life}}}
			switch {
			case m.Type.Method == stun.MethodRefresh:
				refreshed.Add(1)
			case m.Type.Method == stun.MethodAllocate && !m.Contains(stun.AttrMessageIntegrity):
				says = []stun.Setter{stun.NewType(m.Type.Method, stun.ClassErrorResponse), stun.CodeUnauthorized, stun.NewRealm("test"), stun.NewNonce("nonce")}
			case m.Type.Method == stun.MethodAllocate:
				says = append(says, relayedAddress(netip.MustParseAddrPort("127.0.0.1:50000")))
			}
			return says
		})
		cfg := local()
		cfg.RelayOnly, cfg.Servers = true, []Server{{URL: "turn:" + pc.LocalAddr().String() + "?transport=udp", Username: "ann", Password: "secret"}}
		h, err := Listen(HostConfig{Config: cfg})
		require.NoError(t, err)
		if life < leastLife {
			eventually(t, "it is no relay", func() bool { return h.Counters().RelayErrors > 0 })
			require.Empty(t, h.Candidates())
		} else {
			eventually(t, "it is a relay", func() bool { return len(h.Candidates()) == 1 })
		}
		require.LessOrEqual(t, refreshed.Load(), int64(1), "life %d", life)
		require.NoError(t, h.Close())
		require.NoError(t, pc.Close())
		<-done
	}
}

type relayedAddress netip.AddrPort

func (a relayedAddress) AddTo(m *stun.Message) error {
	at := netip.AddrPort(a)
	return stun.XORMappedAddress{IP: at.Addr().AsSlice(), Port: int(at.Port())}.AddToAs(m, stun.AttrXORRelayedAddress)
}
