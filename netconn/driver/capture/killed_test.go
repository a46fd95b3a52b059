package capture_test

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/driver/capture"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

var serverPort, clientPort = netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.1:2")

var errHangs = errors.New("here it hangs")

// stuck is a small program that never leaves one of its ticks or calls. State is what it had read until then.
type stuck struct {
	*small
	at   int
	call bool
	then func()
}

func (s *stuck) Tick(now time.Time) error {
	err := s.small.Tick(now)
	if s.ticks == s.at && !s.call {
		s.then()
	}
	return err
}

func (s *stuck) Call(data []byte) error {
	err := s.small.Call(data)
	if s.ticks == s.at && s.call {
		s.then()
	}
	return err
}

// TestKilled: of a process that is killed in a tick or a call that never ends, or that a fatal error ends there, the file has all inputs until then: the replay comes to
// the same place with the same state.
func TestKilled(t *testing.T) {
	for _, call := range []bool{false, true} {
		for at := 1; at <= 4; at++ {
			var file bytes.Buffer
			var killed []byte // the file as it was then
			var had, has uint64
			mine, other := udp.Pair(serverPort, clientPort)
			clock := time.Unix(1000, 0)
			o := capture.Outside{Socket: mine, Clock: func() time.Time { clock = clock.Add(time.Millisecond); return clock }}
			rec, err := capture.Record(&file, o, capture.Config{StateEvery: 2}, func(o capture.Outside) (capture.Program, error) {
				s := &stuck{small: newSmall(o, 0), at: at, call: call}
				s.then = func() { killed, had = bytes.Clone(file.Bytes()), s.sum }
				return s, nil
			})
			require.NoError(t, err)
			for i := range at + 1 {
				_, err := other.WriteBatch([]udp.Message{{Buf: []byte{byte(i), 7}, Addr: serverPort}})
				require.NoError(t, err)
				require.NoError(t, rec.Tick(time.Unix(1000, int64(i)*16e6)))
				require.NoError(t, rec.Call([]byte("call")))
			}
			require.PanicsWithValue(t, errHangs, func() {
				_, err := capture.Replay(bytes.NewReader(killed), func(o capture.Outside) (capture.Program, error) {
					s := &stuck{small: newSmall(o, 0), at: at, call: call}
					s.then = func() { has = s.sum; panic(errHangs) }
					return s, nil
				})
				require.NoError(t, err)
			}, "at %d, call %v", at, call)
			require.Equal(t, had, has, "at %d, call %v", at, call)
			require.NoError(t, rec.Close())
		}
	}
}
