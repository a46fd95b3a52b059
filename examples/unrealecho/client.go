package main

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

const maxOutstanding = 24

type clientOptions struct {
	messages, channels int
	seed               uint64
	big                bool
}

// echoClient sends messages and checks their echoes.
type echoClient struct {
	opt      clientOptions
	rng      *rand.Rand
	conn     *driver.Conn
	channels []*stream
	sent     int
	nextID   uint32
	bigSent  bool
	result   *netconn.CloseResult
	problems []string

	reliable, unreliable, echoed, unechoed int
}

// stream is one channel and what is expected on it.
type stream struct {
	channel.Nop
	client  *echoClient
	ch      *channel.Channel
	waiting []uint32        // reliable ids, in the order their echoes must come
	loose   map[uint32]bool // unreliable ids without an echo yet
	seen    map[uint32]bool // unreliable ids with one
}

func newClient(c driver.Config, opt clientOptions) (driver.Config, *echoClient) {
	e := &echoClient{opt: opt, rng: rand.New(rand.NewPCG(opt.seed, 1)), bigSent: !opt.big}
	c = config(c)
	c.Channels = types(nil)
	c.NeverReuseIndex = true
	c.Joined = e.begin
	c.Closed = func(_ *driver.Conn, r netconn.CloseResult) { e.result = &r }
	return c, e
}

func (e *echoClient) problem(format string, args ...any) {
	if len(e.problems) < 10 {
		e.problems = append(e.problems, fmt.Sprintf(format, args...))
	}
}

// begin opens channel 0 with message 0.
func (e *echoClient) begin(c *driver.Conn) {
	e.conn = c
	if s := e.open(bunch.Control); s != nil {
		e.send(s, 32, true)
	}
}

func (e *echoClient) open(name bunch.Name) *stream {
	s := &stream{client: e, loose: map[uint32]bool{}, seen: map[uint32]bool{}}
	ch, err := e.conn.Open(name, s)
	if err != nil {
		e.problem("open %v: %v", name, err)
		return nil
	}
	s.ch = ch
	e.channels = append(e.channels, s)
	return s
}

// send sends a message of n bytes in all; false when there is no room for it now.
func (e *echoClient) send(s *stream, n int, reliable bool) bool {
	id := e.nextID
	_, err := s.ch.SendBunch(&bunch.Out{Data: encode(id, n-overhead), Reliable: reliable, NoMerge: true})
	switch {
	case errors.Is(err, channel.ErrReliableFull) || errors.Is(err, channel.ErrNotSent):
		return false
	case err != nil:
		e.problem("send: %v", err)
		return false
	}
	e.nextID++
	if reliable {
		e.reliable++
		s.waiting = append(s.waiting, id)
	} else {
		e.unreliable++
		s.loose[id] = true
	}
	return true
}

func (e *echoClient) outstanding() (n int) {
	for _, s := range e.channels {
		n += len(s.waiting)
	}
	return n
}

// step sends what there is room for, and closes when all is echoed.
func (e *echoClient) step() {
	if e.conn == nil || e.conn.Closed() || len(e.channels) == 0 || !e.channels[0].ch.OpenAcked() {
		return
	}
	for len(e.channels) < 1+e.opt.channels {
		if s := e.open(channelName); s == nil || !e.send(s, 40, true) {
			return
		}
	}
	if !e.bigSent {
		e.bigSent = true
		e.sendBig()
	}
	for e.sent < e.opt.messages && e.outstanding() < maxOutstanding {
		if !e.sendOne() {
			return
		}
		e.sent++
	}
	if e.sent == e.opt.messages && e.outstanding() == 0 && e.conn.Table().Unacked() == 0 {
		e.conn.Close(e.conn.Now(), "all echoed")
	}
}

// sendBig sends the largest payloads, and one too large.
func (e *echoClient) sendBig() {
	s := e.channels[0]
	for _, n := range []int{40_000, 65_536} {
		if !e.send(s, n, true) {
			e.problem("no room for %d bytes", n)
		}
	}
	if _, err := s.ch.SendBunch(&bunch.Out{Data: make([]byte, 65_537), Reliable: true}); !errors.Is(err, channel.ErrTooLarge) {
		e.problem("65537 bytes weren't refused: %v", err)
	}
}

// sendOne: 60 % small reliable, 10 % reliable up to 6 kB, 20 % small unreliable, 10 % unreliable of
// 900 to 3400 B.
func (e *echoClient) sendOne() bool {
	s := e.channels[e.rng.IntN(len(e.channels))]
	switch r := e.rng.IntN(10); {
	case r < 6:
		return e.send(s, overhead+e.rng.IntN(200), true)
	case r < 7:
		return e.send(s, overhead+e.rng.IntN(6000), true)
	case r < 9:
		return e.send(s, overhead+e.rng.IntN(200), false)
	}
	return e.send(s, 900+e.rng.IntN(2501), false)
}

// ReceivedBunch checks echoes; a server may have merged several.
func (s *stream) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	e := s.client
	b, whole := payload(in)
	if !whole {
		e.problem("an echo of %d bits", in.Bits)
		return
	}
	for len(b) > 0 {
		id, rest, err := decode(b)
		if err != nil {
			e.problem("an echo of %d bytes is corrupt", len(b))
			return
		}
		s.echo(id, in.Reliable)
		b = rest
	}
}

func (s *stream) echo(id uint32, reliable bool) {
	e := s.client
	e.echoed++
	switch {
	case reliable && len(s.waiting) > 0 && s.waiting[0] == id:
		s.waiting = s.waiting[1:]
	case reliable && s.loose[id]: // a large unreliable one that was made reliable
		delete(s.loose, id)
		s.seen[id] = true
	case reliable:
		e.problem("reliable echo %d came out of order or twice", id)
	case s.seen[id]:
		e.problem("unreliable echo %d came twice", id)
	case !s.loose[id]:
		e.problem("unreliable echo %d of nothing sent", id)
	default:
		delete(s.loose, id)
		s.seen[id] = true
	}
}

// verdict is nil when every reliable echo came and nothing was wrong.
func (e *echoClient) verdict() error {
	e.unechoed = 0
	for _, s := range e.channels {
		e.unechoed += len(s.loose)
	}
	switch {
	case len(e.problems) > 0:
		return errors.New(e.problems[0])
	case e.conn == nil:
		return errors.New("never connected")
	case e.sent < e.opt.messages || e.outstanding() > 0:
		return fmt.Errorf("%d of %d sent, %d reliable echoes missing", e.sent, e.opt.messages, e.outstanding())
	case e.result == nil || e.result.Code != netconn.ClosedByUs:
		return errors.New("the connection wasn't closed by us")
	}
	return nil
}

// ended is how the connection ended, or where it stands.
func (e *echoClient) ended() string {
	switch {
	case e.result != nil:
		return e.result.String()
	case e.conn == nil:
		return "not there yet; do both ends have the same --unreal?"
	}
	return "still open"
}

// failure is the verdict with what may explain it. err is the driver's; nil when the time was over or the connection had ended.
func (e *echoClient) failure(verdict, err error) error {
	failed := fmt.Errorf("%w (seed %d; %s); the connection: %s", verdict, e.opt.seed, e.summary(), e.ended())
	if err != nil {
		failed = fmt.Errorf("%w; the driver: %w", failed, err)
	}
	return failed
}

func (e *echoClient) summary() string {
	return fmt.Sprintf("sent %d reliable, %d unreliable; %d echoes, %d unreliable ones lost", e.reliable, e.unreliable, e.echoed, e.unechoed)
}
