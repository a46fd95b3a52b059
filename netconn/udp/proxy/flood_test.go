package proxy

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// endless is a socket from which there is always more to read, up to a number that no proxy reads at once.
type endless struct {
	udp.Socket
	from netip.AddrPort
	read int
}

const tooMany = 1 << 20

func (e *endless) TryReadBatch(msgs []udp.Message) (int, error) {
	if e.read >= tooMany {
		return 0, nil
	}
	for i := range msgs {
		msgs[i].N, msgs[i].Addr = copy(msgs[i].Buf, "flood"), e.from
	}
	e.read += len(msgs)
	return len(msgs), nil
}

// TestFloodEndsNoStep: a Step ends although clients, or the server, send faster than it reads.
func TestFloodEndsNoStep(t *testing.T) {
	p, err := New(Config{Listen: "127.0.0.1:0", To: "127.0.0.1:9", Up: netsim.Settings{Loss: 100}, Down: netsim.Settings{Loss: 100}})
	require.NoError(t, err)
	front := &endless{Socket: p.front, from: netip.MustParseAddrPort("127.0.0.1:5")}
	p.front = front
	require.NoError(t, p.Step(time.Now()))
	require.Less(t, front.read, tooMany)
	require.Len(t, p.clients, 1)
	back := &endless{Socket: p.clients[0].back, from: p.to}
	p.clients[0].back = back
	require.NoError(t, p.Step(time.Now()))
	require.Less(t, back.read, tooMany)
	require.NoError(t, p.Close())

	a, _ := udp.Pair(p.to, front.from)
	around := &endless{Socket: a, from: front.from}
	impaired, err := Impair(around, netsim.Settings{}, netsim.Settings{Loss: 100}, 1)
	require.NoError(t, err)
	in := []udp.Message{{Buf: make([]byte, 100)}}
	_, err = impaired.TryReadBatch(in)
	require.NoError(t, err)
	require.Less(t, around.read, tooMany)
	require.NoError(t, impaired.Close())
}
