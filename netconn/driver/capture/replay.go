package capture

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/netconn/udp"
)

// Result is the outcome of a replay.
type Result struct {
	Program Program // the program in its state at the end
	Ticks   int
	Calls   int
	// State is the hash of the state at the end, Sent that of all datagrams sent.
	State, Sent uint64
	// States is how many states were compared.
	States int
	// Complete is whether the recording was closed. It is false if it was cut off, for example by a crash.
	Complete bool
	// Err is the last error that the program's Tick or Call returned. The recorded run returned the same.
	Err error
}

// Replay boots a program and gives it the recorded inputs. It returns an error that wraps ErrDiverged if the program reads other inputs, sends
// other datagrams or has another state than in the recorded run. Other errors are those of reading the file, such as ErrFormat.
func Replay(file io.Reader, boot Boot) (Result, error) {
	r, err := open(file)
	if err != nil {
		return Result{}, err
	}
	r.result.Program, err = boot(Outside{Socket: (*replayedSocket)(r), Clock: r.clock, Rand: (*replayedRand)(r)})
	r.fail(r.src.err)
	switch {
	case errors.Is(r.err, io.ErrUnexpectedEOF):
		return r.result, fmt.Errorf("%w: cut off before the program had booted", ErrFormat)
	case r.err != nil:
		return r.result, r.err
	case err != nil:
		return r.result, err
	}
	for r.err == nil && !r.ended {
		r.step()
	}
	r.result.Sent = uint64(r.sent)
	state := fnvBasis
	r.result.Program.State(&state)
	r.result.State = uint64(state)
	if errors.Is(r.err, io.ErrUnexpectedEOF) {
		r.err = nil // the file is cut off; everything before was the same
	}
	return r.result, r.err
}

// replayer plays a file.
type replayer struct {
	src    source
	local  netip.AddrPort
	batch  int
	whole  bool
	last   int64
	peeked event // read ahead; 0 for nothing
	sent   fnv
	writes uint64 // since the last failed one
	before uint64 // the peeked failed write, so many of them
	ended  bool
	result Result
	err    error
}

func open(file io.Reader) (*replayer, error) {
	r := &replayer{src: source{r: bufio.NewReader(file)}, sent: fnvBasis}
	head := make([]byte, len(magic))
	if _, err := io.ReadFull(r.src.r, head); err != nil || string(head) != magic {
		return nil, ErrFormat
	}
	r.local = r.src.addr()
	batch := int(r.src.uvarint(sendsWhole | maxMessages))
	r.batch, r.whole = batch&^sendsWhole, batch&sendsWhole != 0
	r.last = r.src.varint()
	if r.src.err != nil || r.batch == 0 || r.batch > maxMessages {
		return nil, fmt.Errorf("%w: its head", ErrFormat)
	}
	return r, nil
}

// step plays the next tick, call or check.
func (r *replayer) step() {
	var err error
	switch e := r.next(); e {
	case evTick:
		r.result.Ticks++
		now := r.time()
		if r.src.err == nil {
			err = r.result.Program.Tick(now)
			r.done(err)
		}
	case evCall:
		r.result.Calls++
		data := append([]byte(nil), r.src.bytes(maxBytes)...)
		if r.src.err == nil {
			err = r.result.Program.Call(data)
			r.done(err)
		}
	case evState:
		want := fnv(r.src.uint64())
		state := fnvBasis
		r.result.Program.State(&state)
		if r.result.States++; r.src.err == nil && state != want {
			r.diverge("the state is another: %016x, not %016x", state, want)
		}
	case evEnd:
		r.ended, r.result.Complete = true, true
	default:
		if r.src.err == nil {
			r.diverge("the program didn't ask for %v", e)
		}
	}
	r.fail(r.src.err)
}

// done compares the datagrams sent and the error of a tick or call with the recorded ones.
func (r *replayer) done(err error) {
	if r.err != nil || !r.expect(evDone) {
		return
	}
	want, text := fnv(r.src.uint64()), string(r.src.bytes(maxBytes))
	got := ""
	if err != nil {
		got = err.Error()
		r.result.Err = err
	}
	switch {
	case r.src.err != nil:
	case got[:min(len(got), maxBytes)] != text:
		r.diverge("the program returned %q, not %q", got, text)
	case r.sent != want:
		r.diverge("other datagrams were sent")
	}
}

func (r *replayer) next() event {
	if e := r.peeked; e != 0 {
		r.peeked = 0
		return e
	}
	return r.src.event()
}

// expect takes the next event, which must be of that kind.
func (r *replayer) expect(want event) bool {
	if r.err != nil {
		return false
	}
	e := r.next()
	if r.src.err != nil {
		r.fail(r.src.err)
		return false
	}
	if e != want {
		r.diverge("the program came to %v, the recorded one to %v", want, e)
		return false
	}
	return true
}

func (r *replayer) diverge(format string, args ...any) {
	r.fail(fmt.Errorf("%w in tick %d: %s", ErrDiverged, r.result.Ticks, fmt.Sprintf(format, args...)))
}

func (r *replayer) fail(err error) {
	if r.err == nil && err != nil {
		r.err = err
	}
}

func (r *replayer) time() time.Time {
	r.last += r.src.varint()
	return time.Unix(0, r.last).UTC()
}

func (r *replayer) clock() time.Time {
	if !r.ended && r.expect(evClock) {
		return r.time()
	}
	return time.Unix(0, r.last).UTC()
}

// replayedRand is the randomness that the program is given.
type replayedRand replayer

func (s *replayedRand) Read(p []byte) (int, error) {
	r := (*replayer)(s)
	if r.ended || !r.expect(evRand) {
		return 0, io.ErrUnexpectedEOF
	}
	b := r.src.bytes(maxBytes)
	if r.src.err != nil {
		r.fail(r.src.err)
		return 0, io.ErrUnexpectedEOF
	}
	if len(b) > len(p) || len(b) == 0 && len(p) > 0 {
		r.diverge("the program asked for %d random bytes, the recorded one got %d", len(p), len(b))
		return 0, io.ErrUnexpectedEOF
	}
	return copy(p, b), nil
}

// replayedSocket is the socket that the program is given.
type replayedSocket replayer

func (s *replayedSocket) TryReadBatch(msgs []udp.Message) (int, error) {
	r := (*replayer)(s)
	if r.ended || !r.expect(evRead) {
		return 0, nil
	}
	n := int(r.src.uvarint(maxMessages))
	if n > len(msgs) {
		r.diverge("the program asked for %d datagrams at most, the recorded one got %d", len(msgs), n)
		return 0, nil
	}
	for i := range n {
		m := &msgs[i]
		m.Addr = r.src.addr()
		m.N = copy(m.Buf, r.src.bytes(maxBytes))
	}
	f := failure(r.src.byte())
	if r.src.err != nil {
		r.fail(r.src.err)
		return 0, nil
	}
	return n, f.err()
}

func (s *replayedSocket) ReadBatch(msgs []udp.Message) (int, error) { return s.TryReadBatch(msgs) }

func (s *replayedSocket) WriteBatch(msgs []udp.Message) (int, error) {
	r := (*replayer)(s)
	r.sent.sent(msgs)
	if r.ended || r.err != nil {
		return len(msgs), nil
	}
	if r.peeked == 0 {
		if r.peeked = r.src.event(); r.peeked == evWrite {
			r.before = r.src.uvarint(math.MaxUint64)
		}
	}
	if r.src.err != nil || r.peeked != evWrite || r.writes != r.before {
		r.writes++
		return len(msgs), nil
	}
	r.peeked, r.writes = 0, 0
	n, f := int(r.src.uvarint(maxMessages)), failure(r.src.byte())
	return min(n, len(msgs)), f.err()
}

// SendsWhole is for the function of that name.
func (s *replayedSocket) SendsWhole() bool { return s.whole }

func (s *replayedSocket) BatchSize() int                { return s.batch }
func (s *replayedSocket) LocalAddr() netip.AddrPort     { return s.local }
func (*replayedSocket) SetReadDeadline(time.Time) error { return nil }
func (*replayedSocket) Close() error                    { return nil }
