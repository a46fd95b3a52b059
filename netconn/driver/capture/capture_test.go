package capture_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/netconn/driver/capture"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/stretchr/testify/require"
)

const serverAddr = "10.0.0.1:7777"

// TestReplay captures a server and its clients over a lossy network, and replays each of them twice.
func TestReplay(t *testing.T) {
	a := record(t)
	require.Len(t, a.files, 4)
	for i, file := range a.files {
		boot := capture.Boot(bootServer)
		recorded := a.ends[i].rec.Program().(*end)
		if !recorded.world.IsServer() {
			boot = bootClient(serverAddr)
		} else {
			require.Equal(t, 3, recorded.joined)
		}
		var want bytes.Buffer
		recorded.State(&want)
		require.NotZero(t, want.Len())
		var first capture.Result
		for range 2 {
			result, err := capture.Replay(bytes.NewReader(file.Bytes()), boot)
			require.NoError(t, err)
			require.True(t, result.Complete)
			require.NoError(t, result.Err)
			require.Equal(t, a.ends[i].ticks, result.Ticks)
			require.Greater(t, result.States, 4)
			require.Equal(t, a.ends[i].ticks/50, result.Calls)
			var got bytes.Buffer
			result.Program.State(&got)
			require.Equal(t, want.String(), got.String())
			if first.Program != nil {
				require.Equal(t, first.State, result.State)
				require.Equal(t, first.Sent, result.Sent)
			}
			first = result
		}
	}
}

// TestDiverged replays through other code: the first tick with a difference is named.
func TestDiverged(t *testing.T) {
	file := record(t).server()
	_, err := capture.Replay(bytes.NewReader(file), func(o capture.Outside) (capture.Program, error) {
		p, err := bootServer(o)
		if err == nil {
			p.(*end).speed = 1.01
		}
		return p, err
	})
	require.ErrorIs(t, err, capture.ErrDiverged)
	require.ErrorContains(t, err, "in tick ")

	_, err = capture.Replay(bytes.NewReader(file), bootClient(serverAddr)) // another program altogether
	require.ErrorIs(t, err, capture.ErrDiverged)
}

// TestCutOff replays files that end anywhere: what is there is played.
func TestCutOff(t *testing.T) {
	file := record(t).server()
	whole, err := capture.Replay(bytes.NewReader(file), bootServer)
	require.NoError(t, err)
	for _, n := range []int{25, len(file) / 7, len(file) / 2, len(file) - 1} {
		result, err := capture.Replay(bytes.NewReader(file[:n]), bootServer)
		if errors.Is(err, capture.ErrFormat) || result.Program == nil {
			require.Less(t, n, 40, "cut at %d: %v", n, err)
			continue
		}
		require.NoError(t, err, "cut at %d", n)
		require.False(t, result.Complete)
		require.LessOrEqual(t, result.Ticks, whole.Ticks)
	}
}

// TestCutAnywhere: a file that is cut off is never said to have gone another way, wherever it is cut.
func TestCutAnywhere(t *testing.T) {
	whole := smallCapture(t, 0)
	for n := range whole {
		_, err := capture.Replay(bytes.NewReader(whole[:n]), bootSmall(0))
		require.NotErrorIs(t, err, capture.ErrDiverged, "cut at %d of %d", n, len(whole))
	}
	file := record(t).server()
	for n := 0; n < len(file); n++ {
		if n > 300 { // the head and the boot byte by byte
			n += len(file) / 53
		}
		n = min(n, len(file)-1)
		result, err := capture.Replay(bytes.NewReader(file[:n]), bootServer)
		require.NotErrorIs(t, err, capture.ErrDiverged, "cut at %d of %d", n, len(file))
		if err != nil {
			require.ErrorIs(t, err, capture.ErrFormat, "cut at %d of %d", n, len(file))
			require.Zero(t, result.Ticks, "cut at %d of %d: in the head or while booting", n, len(file))
		}
	}
}

// small is a program that takes something from everywhere outside.
type small struct {
	o     capture.Outside
	sum   uint64
	fails int // the tick that returns an error; negative panics
	ticks int
	msgs  [4]udp.Message
	rnd   [8]byte
	out   [1]udp.Message
}

var errSmall = errors.New("the thing went wrong")

func newSmall(o capture.Outside, fails int) *small {
	s := &small{o: o, fails: fails}
	for i := range s.msgs {
		s.msgs[i].Buf = make([]byte, 1500)
	}
	s.out[0] = udp.Message{Buf: []byte("out"), Addr: netip.MustParseAddrPort("127.0.0.1:2")}
	return s
}

func (s *small) Tick(now time.Time) error {
	s.ticks++
	s.sum = s.sum*31 + uint64(now.UnixNano()) + uint64(s.o.Clock().UnixNano())
	n, _ := s.o.Socket.TryReadBatch(s.msgs[:])
	for _, m := range s.msgs[:n] {
		for _, b := range m.Data() {
			s.sum = s.sum*31 + uint64(b)
		}
	}
	k, _ := s.o.Rand.Read(s.rnd[:])
	for _, b := range s.rnd[:k] {
		s.sum = s.sum*31 + uint64(b)
	}
	_, _ = s.o.Socket.WriteBatch(s.out[:])
	switch s.ticks {
	case s.fails:
		return errSmall
	case -s.fails:
		panic(errSmall)
	}
	return nil
}

func (s *small) Call(data []byte) error { s.sum += uint64(len(data)); return nil }

func (s *small) State(w io.Writer) {
	binary.LittleEndian.PutUint64(s.rnd[:], s.sum)
	_, _ = w.Write(s.rnd[:])
}

// rig is a recorded small program, and the other end of its socket.
func rig(t testing.TB, w io.Writer, cfg capture.Config, fails int) (*capture.Recorder, udp.Socket) {
	mine, other := udp.Pair(netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.1:2"))
	clock := time.Unix(1000, 0)
	rec, err := capture.Record(w, capture.Outside{Socket: mine, Clock: func() time.Time { clock = clock.Add(time.Millisecond); return clock }}, cfg,
		func(o capture.Outside) (capture.Program, error) { return newSmall(o, fails), nil })
	require.NoError(t, err)
	return rec, other
}

func bootSmall(fails int) capture.Boot {
	return func(o capture.Outside) (capture.Program, error) { return newSmall(o, fails), nil }
}

func smallCapture(t testing.TB, fails int) []byte {
	var file bytes.Buffer
	rec, other := rig(t, &file, capture.Config{StateEvery: 3}, fails)
	for i := range 10 {
		_, err := other.WriteBatch([]udp.Message{{Buf: fmt.Appendf(nil, "datagram %d", i), Addr: netip.MustParseAddrPort("127.0.0.1:1")}})
		require.NoError(t, err)
		if err := rec.Tick(time.Unix(1000, int64(i)*16e6)); fails == 0 {
			require.NoError(t, err)
		}
		require.NoError(t, rec.Call([]byte("call")))
	}
	require.NoError(t, rec.Close())
	return file.Bytes()
}

// TestError: an error that a tick returned is returned again.
func TestError(t *testing.T) {
	result, err := capture.Replay(bytes.NewReader(smallCapture(t, 4)), bootSmall(4))
	require.NoError(t, err)
	require.ErrorIs(t, result.Err, errSmall)
	_, err = capture.Replay(bytes.NewReader(smallCapture(t, 4)), bootSmall(0))
	require.ErrorIs(t, err, capture.ErrDiverged)
	require.ErrorContains(t, err, "in tick 4")
}

// TestPanic: a crash is in the file, and crashes again.
func TestPanic(t *testing.T) {
	var file bytes.Buffer
	rec, _ := rig(t, &file, capture.Config{}, -3)
	tick := func() { _ = rec.Tick(time.Unix(1001, 0)) }
	tick()
	tick()
	require.PanicsWithValue(t, errSmall, tick)
	require.PanicsWithValue(t, errSmall, func() { _, _ = capture.Replay(bytes.NewReader(file.Bytes()), bootSmall(-3)) })
	result, err := capture.Replay(bytes.NewReader(file.Bytes()), bootSmall(0)) // when it is mended
	require.NoError(t, err)
	require.Equal(t, 3, result.Ticks)
	require.False(t, result.Complete)
}

// TestDamagedAnywhere: a file of which any bytes are others is a capture of another run, or damaged, and nothing else is said of it.
func TestDamagedAnywhere(t *testing.T) {
	file := smallCapture(t, 0)
	for at := len("bunchnet capture 1\n"); at < len(file); at++ {
		for _, b := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			for _, n := range []int{1, 12} {
				bad := bytes.Clone(file)
				for i := at; i < min(at+n, len(bad)); i++ {
					bad[i] = b
				}
				_, err := capture.Replay(bytes.NewReader(bad), bootSmall(0))
				if err != nil && !errors.Is(err, capture.ErrDiverged) {
					require.ErrorIs(t, err, capture.ErrFormat, "%d bytes of %d at %d", n, b, at)
				}
				if _, err = capture.Summarize(bytes.NewReader(bad)); err != nil {
					require.ErrorIs(t, err, capture.ErrFormat, "%d bytes of %d at %d", n, b, at)
				}
			}
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestBounds: what can't be written ends the recording, not the game.
func TestBounds(t *testing.T) {
	var file bytes.Buffer
	rec, _ := rig(t, &file, capture.Config{MaxBytes: 500}, 0)
	for i := range 100 {
		require.NoError(t, rec.Tick(time.Unix(1000, int64(i))))
	}
	require.ErrorIs(t, rec.Err(), capture.ErrFull)
	require.LessOrEqual(t, file.Len(), 500)
	_, err := capture.Replay(bytes.NewReader(file.Bytes()), bootSmall(0))
	require.NoError(t, err)

	require.ErrorIs(t, rec.Call(make([]byte, 1<<20)), capture.ErrTooLarge)
	require.ErrorIs(t, rec.Close(), capture.ErrFull)
	require.ErrorIs(t, rec.Tick(time.Unix(2000, 0)), capture.ErrEnded)
	require.ErrorIs(t, rec.Call(nil), capture.ErrEnded)

	rec, _ = rig(t, brokenWriter{}, capture.Config{}, 0)
	require.NoError(t, rec.Tick(time.Unix(1000, 0)))
	require.ErrorIs(t, rec.Err(), io.ErrClosedPipe)

	_, err = capture.Record(&file, capture.Outside{}, capture.Config{}, bootSmall(0))
	require.ErrorIs(t, err, capture.ErrOutside)
	_, err = capture.Replay(bytes.NewReader([]byte("something else altogether")), bootSmall(0))
	require.ErrorIs(t, err, capture.ErrFormat)
}

// sink is a socket that datagrams vanish in.
type sink struct{ udp.Socket }

func (sink) WriteBatch(msgs []udp.Message) (int, error) { return len(msgs), nil }

// TestAllocs: recording allocates nothing.
func TestAllocs(t *testing.T) {
	mine, _ := udp.Pair(netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.1:2"))
	rec, err := capture.Record(io.Discard, capture.Outside{Socket: sink{mine}}, capture.Config{StateEvery: 2}, bootSmall(0))
	require.NoError(t, err)
	at := time.Unix(1000, 0)
	tick := func() {
		at = at.Add(time.Millisecond)
		_ = rec.Tick(at)
		_ = rec.Call(nil)
	}
	for range 10 {
		tick()
	}
	require.Zero(t, testing.AllocsPerRun(200, tick))
}

// refuser refuses each third write.
type refuser struct {
	udp.Socket
	n   int
	err error
}

func (r *refuser) WriteBatch(msgs []udp.Message) (int, error) {
	if r.n++; r.n%3 == 0 {
		return 0, r.err
	}
	return len(msgs), nil
}

// writer is a program that writes twice a tick, and says how that went.
type writer struct {
	socket udp.Socket
	out    [1]udp.Message
	went   []string
}

func bootWriter(to string) capture.Boot {
	return func(o capture.Outside) (capture.Program, error) {
		return &writer{socket: o.Socket, out: [1]udp.Message{{Buf: []byte("out"), Addr: netip.MustParseAddrPort(to)}}}, nil
	}
}

func (w *writer) Tick(time.Time) error {
	for range 2 {
		n, err := w.socket.WriteBatch(w.out[:])
		w.went = append(w.went, fmt.Sprint(n, err != nil, errors.Is(err, net.ErrClosed)))
	}
	return nil
}

func (*writer) Call([]byte) error    { return nil }
func (w *writer) State(to io.Writer) { fmt.Fprint(to, w.went) }

// record10 records ten ticks of a writer, each third of whose writes fails.
func record10(t *testing.T, to string, failure error) (file []byte, w *writer) {
	mine, _ := udp.Pair(netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.1:2"))
	var out bytes.Buffer
	rec, err := capture.Record(&out, capture.Outside{Socket: &refuser{Socket: mine, err: failure}}, capture.Config{}, bootWriter(to))
	require.NoError(t, err)
	for i := range 10 {
		require.NoError(t, rec.Tick(time.Unix(1000, int64(i))))
	}
	require.NoError(t, rec.Close())
	return out.Bytes(), rec.Program().(*writer)
}

// TestWriteErrors: a recorded game goes on after whatever a system says of a datagram, as one does that isn't recorded, and is told of a socket that is closed.
func TestWriteErrors(t *testing.T) {
	for _, x := range []struct {
		err    error
		closed bool
	}{{syscall.ENOBUFS, false}, {errors.New("required key not available"), false}, {&net.OpError{Op: "write", Err: net.ErrClosed}, true}} {
		file, w := record10(t, "127.0.0.1:2", x.err)
		require.Equal(t, fmt.Sprint(0, true, x.closed), w.went[2], "%v", x.err)
		result, err := capture.Replay(bytes.NewReader(file), bootWriter("127.0.0.1:2"))
		require.NoError(t, err)
		require.Equal(t, w.went, result.Program.(*writer).went)
	}
}

// TestWhichWriteFailed: of several writes in a row the same ones fail in the replay.
func TestWhichWriteFailed(t *testing.T) {
	file, _ := record10(t, "127.0.0.1:2", syscall.ENOBUFS)
	result, err := capture.Replay(bytes.NewReader(file), bootWriter("127.0.0.1:2"))
	require.NoError(t, err)
	require.Equal(t, 1, result.States)
	s, err := capture.Summarize(bytes.NewReader(file))
	require.NoError(t, err)
	require.True(t, s.Complete)
}

// TestZonesDiffer: what goes out by another interface is another datagram.
func TestZonesDiffer(t *testing.T) {
	file, _ := record10(t, "[fe80::1%a]:2", syscall.ENOBUFS)
	_, err := capture.Replay(bytes.NewReader(file), bootWriter("[fe80::1%b]:2"))
	require.ErrorIs(t, err, capture.ErrDiverged)
}

// FuzzReplay: no file makes a replay panic.
func FuzzReplay(f *testing.F) {
	f.Add(smallCapture(f, 0))
	f.Add(smallCapture(f, 2))
	f.Add([]byte("bunchnet capture 1\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		result, err := capture.Replay(bytes.NewReader(file), bootSmall(0))
		if err == nil && result.Program == nil {
			t.Fatal("neither a program nor an error")
		}
	})
}

// TestSummarize counts what the recorder was given.
func TestSummarize(t *testing.T) {
	file := smallCapture(t, 0)
	s, err := capture.Summarize(bytes.NewReader(file))
	require.NoError(t, err)
	require.Equal(t, capture.Summary{Ticks: 10, Calls: 10, Datagrams: 10, Bytes: 100, Took: s.Took, Complete: true}, s)
	require.Positive(t, s.Took)
	s, err = capture.Summarize(bytes.NewReader(smallCapture(t, 10)))
	require.NoError(t, err)
	require.Equal(t, errSmall.Error(), s.Err)
	s, err = capture.Summarize(bytes.NewReader(file[:len(file)/2]))
	require.NoError(t, err)
	require.False(t, s.Complete)
	_, err = capture.Summarize(bytes.NewReader(file[1:]))
	require.ErrorIs(t, err, capture.ErrFormat)
}
