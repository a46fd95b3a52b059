package capture_test

import (
	"bytes"
	"io"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/capture"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

var bulkName = bunch.Name{Index: 300}

// bulk is a client that has always something to send.
type bulk struct {
	d  *driver.Driver
	ch *channel.Channel
}

func bulkConfig() driver.Config {
	return driver.Config{Link: driver.PlainSalted{}, Channels: []channel.Type{{Name: bulkName, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return channel.Nop{} }}}}
}

func bootBulk(o capture.Outside) (capture.Program, error) {
	d, err := driver.Dial("127.0.0.1:7777", o.Config(bulkConfig()))
	return &bulk{d: d}, err
}

func (b *bulk) Tick(now time.Time) error {
	b.d.TickDispatch(now)
	if c := b.d.Server(); c != nil && c.Joined() {
		if b.ch == nil {
			b.ch, _ = c.Open(bulkName, channel.Nop{})
		}
		if b.ch.Room() > 60 && c.Table().Unacked() < 40 {
			_, _ = b.ch.SendBunch(&bunch.Out{Data: make([]byte, 9000), Reliable: true})
		}
	}
	b.d.TickFlush(now)
	return b.d.Err()
}

func (b *bulk) Call([]byte) error { return nil }
func (b *bulk) State(io.Writer)   {}

// TestSizesAsWithoutACapture: a game that is captured has packets as large as it has otherwise, and its replay, too.
func TestSizesAsWithoutACapture(t *testing.T) {
	sizes := map[bool]int{}
	for _, captured := range []bool{false, true} {
		a, b := udp.Pair(netip.MustParseAddrPort("127.0.0.1:7777"), netip.MustParseAddrPort("127.0.0.1:1234"))
		now := time.Unix(1_700_000_000, 0)
		clock := func() time.Time { return now }
		cfg := bulkConfig()
		cfg.Socket, cfg.Clock = a, clock
		server, err := driver.Listen("", cfg)
		require.NoError(t, err)
		o := capture.Outside{Socket: b, Clock: clock}
		var file bytes.Buffer
		var rec *capture.Recorder
		var program capture.Program
		if captured {
			rec, err = capture.Record(&file, o, capture.Config{}, bootBulk)
			require.NoError(t, err)
			program = rec.Program()
		} else {
			program, err = bootBulk(o)
			require.NoError(t, err)
		}
		for range 600 {
			now = now.Add(16 * time.Millisecond)
			server.TickDispatch(now)
			server.TickFlush(now)
			if captured {
				require.NoError(t, rec.Tick(now))
			} else {
				require.NoError(t, program.Tick(now))
			}
		}
		sizes[captured] = program.(*bulk).d.Server().Stats().PacketSize
		if captured {
			require.NoError(t, rec.Close())
			r, err := capture.Replay(bytes.NewReader(file.Bytes()), bootBulk)
			require.NoError(t, err)
			require.True(t, r.Complete)
		}
	}
	require.Greater(t, sizes[false], 1024, "larger packets pass")
	require.Equal(t, sizes[false], sizes[true])
}
