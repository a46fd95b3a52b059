// Package netsim is a bad network: it delays, loses, repeats, reorders, corrupts
// and narrows a stream of datagrams, from one seed and in the caller's time.
//
// A [Link] is one direction. Datagrams are pushed in and come out when they are due:
//
//	link, err := netsim.NewLink(netsim.Settings{Loss: 10, LagMin: 20 * time.Millisecond, LagMax: 40 * time.Millisecond}, seed)
//	link.Push(now, datagram)
//	for p, ok := link.Pop(now); ok; p, ok = link.Pop(now) { ... }
//	wake at link.NextDeadline()
//
// The same seed and the same calls give the same datagrams. What happens to a
// datagram is decided in this order: too large for the MTU, lost (in a burst, or
// alone), no room in the queue, corrupted, delayed, reordered, repeated.
//
// Names and units follow Unreal's packet simulation settings without their Pkt:
// percentages 0 to 100, times as durations. Use netconn/udp/proxy to put the same network between real
// sockets.
package netsim

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Settings configures a link. The zero value is a perfect link. Percentages are from 0 to 100.
type Settings struct {
	// Loss is the percentage of datagrams lost, each independently.
	Loss float64
	// LossMinSize and LossMaxSize restrict Loss to datagrams of that many bytes. 0 is no bound.
	LossMinSize, LossMaxSize int
	// BurstLoss is the percentage of datagrams that begin a burst: that datagram and the BurstLength-1 after it are lost.
	BurstLoss   float64
	BurstLength int
	// Dup is the percentage of datagrams that arrive twice.
	Dup float64
	// Order is the percentage of datagrams that are held back by OrderDelay, so
	// that later ones overtake them.
	Order float64
	// OrderDelay is how long those are held back. Default 50 ms.
	OrderDelay time.Duration
	// Corrupt is the percentage of datagrams with one to three bits flipped.
	Corrupt float64
	// Lag is the one-way delay. LagVariance is how far it varies up and down, drawn for each datagram.
	Lag, LagVariance time.Duration
	// LagMin and LagMax replace Lag: each datagram's delay is drawn evenly between them.
	LagMin, LagMax time.Duration
	// Jitter is added to the delay of every other datagram.
	Jitter time.Duration
	// Bandwidth is in bits a second; 0 is no bound. Datagrams wait in a queue of at most QueueDelay, default 1 s. A datagram that would wait
	// longer is lost.
	Bandwidth  float64
	QueueDelay time.Duration
	// MTU is the size in bytes of the largest datagram; larger ones are lost. 0 is no bound.
	MTU int
	// MaxPackets is the most datagrams on the link, and MaxBytes the most bytes of them; more are lost. Default 65536, and 64 MiB.
	MaxPackets, MaxBytes int
}

// Average returns one direction of Unreal's profile "average": 1 % loss and 30 to 60 ms.
func Average() Settings {
	return Settings{Loss: 1, LagMin: 30 * time.Millisecond, LagMax: 60 * time.Millisecond}
}

// Bad returns one direction of Unreal's profile "bad": 5 % loss and 100 to 200 ms.
func Bad() Settings {
	return Settings{Loss: 5, LagMin: 100 * time.Millisecond, LagMax: 200 * time.Millisecond}
}

// ErrSettings: a setting is out of range. The errors that wrap it say which.
var ErrSettings = errors.New("netsim: settings")

// Validate returns an error that wraps ErrSettings if a setting is out of range.
func (s *Settings) Validate() error {
	for _, p := range []struct {
		name string
		v    float64
	}{{"Loss", s.Loss}, {"BurstLoss", s.BurstLoss}, {"Dup", s.Dup}, {"Order", s.Order}, {"Corrupt", s.Corrupt}} {
		if !(p.v >= 0 && p.v <= 100) {
			return fmt.Errorf("%w: %s is %v; it is a percentage from 0 to 100", ErrSettings, p.name, p.v)
		}
	}
	for _, p := range []struct {
		name string
		v    int64
	}{{"Lag", int64(s.Lag)}, {"LagVariance", int64(s.LagVariance)}, {"LagMin", int64(s.LagMin)}, {"Jitter", int64(s.Jitter)}, {"OrderDelay", int64(s.OrderDelay)}, {"QueueDelay", int64(s.QueueDelay)},
		{"MTU", int64(s.MTU)}, {"MaxPackets", int64(s.MaxPackets)}, {"MaxBytes", int64(s.MaxBytes)}, {"LossMinSize", int64(s.LossMinSize)}, {"LossMaxSize", int64(s.LossMaxSize)}, {"BurstLength", int64(s.BurstLength)}} {
		if p.v < 0 {
			return fmt.Errorf("%w: %s %d must not be negative", ErrSettings, p.name, p.v)
		}
	}
	switch {
	case s.LagMax < s.LagMin:
		return fmt.Errorf("%w: LagMax %v is below LagMin %v", ErrSettings, s.LagMax, s.LagMin)
	case s.LagMax > 0 && (s.Lag > 0 || s.LagVariance > 0):
		return fmt.Errorf("%w: give either Lag and LagVariance, or LagMin and LagMax", ErrSettings)
	case s.LossMaxSize > 0 && s.LossMaxSize < s.LossMinSize:
		return fmt.Errorf("%w: LossMaxSize %d is below LossMinSize %d", ErrSettings, s.LossMaxSize, s.LossMinSize)
	case !(s.Bandwidth >= 0):
		return fmt.Errorf("%w: Bandwidth %v must not be negative", ErrSettings, s.Bandwidth)
	case s.BurstLoss > 0 && s.BurstLength < 1:
		return fmt.Errorf("%w: BurstLoss needs a BurstLength of at least 1", ErrSettings)
	}
	return nil
}

// Counters counts what a link did with datagrams. Passed and BytesPassed count the copies made by Dup, too. QueueFull counts those that were lost because of QueueDelay,
// MaxPackets or MaxBytes.
type Counters struct {
	Pushed, Passed                     uint64
	Lost, BurstLost, TooBig, QueueFull uint64
	Duplicated, Reordered, Corrupted   uint64
	BytesPushed, BytesPassed           uint64
}

// Link is one direction of a bad network. Not safe for concurrent use.
type Link struct {
	Counters Counters

	set   Settings
	rng   *rand.Rand
	queue []item // heap by due, then order
	bytes int    // of the datagrams in it
	free  [][]byte
	held  int // bytes of the buffers of both
	order uint64
	burst int
	odd   bool
	busy  time.Duration // when the last datagram has left the narrow place
	last  []byte        // handed out by Pop, reused at the next call
}

type item struct {
	due   time.Duration
	order uint64
	data  []byte
}

// NewLink returns a link.
func NewLink(s Settings, seed uint64) (*Link, error) {
	l := &Link{rng: rand.New(rand.NewPCG(seed, 0x6e657473696d))}
	return l, l.Set(s)
}

// Set changes the settings for datagrams that are pushed from now on. If it returns an error, nothing changes.
func (l *Link) Set(s Settings) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if s.OrderDelay == 0 {
		s.OrderDelay = 50 * time.Millisecond
	}
	if s.QueueDelay == 0 {
		s.QueueDelay = time.Second
	}
	if s.MaxPackets == 0 {
		s.MaxPackets = 65536
	}
	if s.MaxBytes == 0 {
		s.MaxBytes = 64 << 20
	}
	if l.set = s; s.BurstLoss == 0 {
		l.burst = 0
	}
	return nil
}

func (l *Link) chance(percent float64) bool { return percent > 0 && l.rng.Float64()*100 < percent }

// Push puts a copy of a datagram on the link.
func (l *Link) Push(now time.Duration, p []byte) {
	s, c := &l.set, &l.Counters
	c.Pushed++
	c.BytesPushed += uint64(len(p))
	switch {
	case s.MTU > 0 && len(p) > s.MTU:
		c.TooBig++
		return
	case l.inBurst():
		c.BurstLost++
		return
	case l.lossApplies(len(p)) && l.chance(s.Loss):
		c.Lost++
		return
	}
	if !l.fits(1, len(p)) {
		c.QueueFull++
		return
	}
	leaves, ok := l.transmit(now, len(p))
	if !ok {
		c.QueueFull++
		return
	}
	data := l.copyOf(p)
	if l.chance(s.Corrupt) && len(data) > 0 {
		c.Corrupted++
		last := uint32(math.MaxUint32)
		n := 1 + l.rng.Uint32N(3)
		for range n {
			at := l.rng.Uint32N(uint32(len(data)))*8 + l.rng.Uint32N(8)
			if n == 2 && at == last {
				break // or the datagram would be whole again
			}
			data[at/8] ^= 1 << (at % 8)
			last = at
		}
	}
	due := leaves + l.delay()
	if l.chance(s.Order) {
		c.Reordered++
		due += s.OrderDelay
	}
	if l.chance(s.Dup) && l.fits(2, 2*len(data)) {
		c.Duplicated++
		l.add(leaves+l.delay(), l.copyOf(data))
	}
	l.add(due, data)
}

// fits reports whether there is room for so many more datagrams, of so many bytes together.
func (l *Link) fits(packets, bytes int) bool {
	return len(l.queue)+packets <= l.set.MaxPackets && l.bytes+bytes <= l.set.MaxBytes
}

func (l *Link) inBurst() bool {
	if l.burst == 0 && l.chance(l.set.BurstLoss) {
		l.burst = l.set.BurstLength
	}
	if l.burst > 0 {
		l.burst--
		return true
	}
	return false
}

func (l *Link) lossApplies(size int) bool {
	return size >= l.set.LossMinSize && (l.set.LossMaxSize == 0 || size <= l.set.LossMaxSize)
}

// transmit is when a datagram of so many bytes has passed the narrow place.
func (l *Link) transmit(now time.Duration, size int) (time.Duration, bool) {
	if l.set.Bandwidth == 0 {
		return now, true
	}
	start := max(now, l.busy)
	if start-now > l.set.QueueDelay {
		return 0, false
	}
	l.busy = start + time.Duration(float64(size*8)/l.set.Bandwidth*float64(time.Second))
	return l.busy, true
}

// QueueDelay returns how long a datagram pushed now would wait for Bandwidth.
func (l *Link) QueueDelay(now time.Duration) time.Duration { return max(0, l.busy-now) }

func (l *Link) delay() time.Duration {
	s := &l.set
	d := s.Lag
	if s.LagMax > 0 {
		d = s.LagMin + time.Duration(l.rng.Float64()*float64(s.LagMax-s.LagMin))
	} else if s.LagVariance > 0 {
		d += time.Duration((2*l.rng.Float64() - 1) * float64(s.LagVariance))
	}
	if l.odd = !l.odd; l.odd {
		d += s.Jitter
	}
	return max(0, d)
}

// copyOf is a copy in a buffer of the link's.
func (l *Link) copyOf(p []byte) []byte {
	var b []byte
	if n := len(l.free); n > 0 {
		b, l.free = l.free[n-1][:0], l.free[:n-1]
	}
	had := cap(b)
	if had < len(p) {
		b = make([]byte, 0, max(len(p), smallBuffer))
	}
	l.held += cap(b) - had
	return append(b, p...)
}

// smallBuffer is for all datagrams of most networks.
const smallBuffer = 1536

// recycle takes back a buffer, but no large one while the buffers take more than the datagrams may.
func (l *Link) recycle(b []byte) {
	if cap(b) > smallBuffer && l.held > l.set.MaxBytes {
		l.held -= cap(b)
		return
	}
	l.free = append(l.free, b)
}

func less(a, b *item) bool { return a.due < b.due || a.due == b.due && a.order < b.order }

func (l *Link) add(due time.Duration, data []byte) {
	l.order++
	l.bytes += len(data)
	q := append(l.queue, item{due, l.order, data})
	i := len(q) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !less(&q[i], &q[parent]) {
			break
		}
		q[i], q[parent] = q[parent], q[i]
		i = parent
	}
	l.queue = q
}

// Pop returns the next datagram that is due at now. ok is false if there is none. p is valid until the next call.
func (l *Link) Pop(now time.Duration) (p []byte, ok bool) {
	if l.last != nil {
		l.recycle(l.last)
		l.last = nil
	}
	q := l.queue
	if len(q) == 0 || q[0].due > now {
		return nil, false
	}
	p = q[0].data
	n := len(q) - 1
	q[0], q[n] = q[n], item{}
	q = q[:n]
	for i := 0; ; {
		child := 2*i + 1
		if child >= n {
			break
		}
		if child+1 < n && less(&q[child+1], &q[child]) {
			child++
		}
		if !less(&q[child], &q[i]) {
			break
		}
		q[i], q[child] = q[child], q[i]
		i = child
	}
	l.queue, l.last = q, p
	l.bytes -= len(p)
	l.Counters.Passed++
	l.Counters.BytesPassed += uint64(len(p))
	return p, true
}

// Len returns the number of datagrams on the link.
func (l *Link) Len() int { return len(l.queue) }

// NextDeadline returns the time at which the next datagram is due. ok is false if there is none.
func (l *Link) NextDeadline() (at time.Duration, ok bool) {
	if len(l.queue) == 0 {
		return 0, false
	}
	return l.queue[0].due, true
}
