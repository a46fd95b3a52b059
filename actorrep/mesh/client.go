package mesh

import (
	"encoding/binary"
	"fmt"
	"time"
)

// ClientConfig configures a Client.
type ClientConfig struct {
	// Session is a random number, which tells this client from one of the same player before it: not 0.
	Session uint64
	// Server is the ID of the server where the player plays first, with which the client is connected.
	Server string
	// Send sends a packet to a server, which is valid during the call. It may be lost, late or doubled; without a connection it is dropped.
	Send func(server string, packet []byte)
	// Message is a message of Server.Send. Each comes once, in order.
	Message func(m []byte)
	// Ready reports whether the client, which is connected to the next server, shows its world: the actors are there and move. Until it does, the player plays on where it is.
	// Default: at once.
	Ready func(server string) bool
	// Moved: the player plays at another server from now on. The connection with the one before may end. May be nil.
	Moved func(server string)
}

// Client is a player's part of the mesh. It belongs to the goroutine that ticks the game.
type Client struct {
	cfg   ClientConfig
	now   time.Duration
	cur   place // where the player plays
	to    place // where it goes; no ID: nowhere
	epoch uint64
	tried uint64 // the newest travel from cur that is over
	out   stream
	next  uint64 // number of the next message
	sayAt time.Duration
	buf   []byte
	msgs  [][]byte
}

// place is a server as a client sees it.
type place struct {
	id      string
	ticket  []byte
	attempt uint64
	none    bool // it neither plays nor expects the player, or can't be reached any more
}

// clientKeepAlive is the time between two packets of a client that has nothing to say.
const clientKeepAlive = 100 * time.Millisecond

// NewClient returns a client, or an error that wraps ErrConfig.
func NewClient(cfg ClientConfig) (*Client, error) {
	if cfg.Session == 0 || cfg.Server == "" || cfg.Send == nil || cfg.Message == nil {
		return nil, fmt.Errorf("%w: Session, Server, Send and Message are needed", ErrConfig)
	}
	return &Client{cfg: cfg, cur: place{id: cfg.Server}, out: stream{first: 1}, next: 1}, nil
}

// Server returns the ID of the server where the player plays.
func (c *Client) Server() string { return c.cur.id }

// Next returns the server with which the client shall connect besides, and its ticket; ok is false when there is none. The game looks each tick: it dials a server that is new, and
// closes the connection with one that is neither Server nor Next.
func (c *Client) Next() (id string, ticket []byte, ok bool) {
	return c.to.id, c.to.ticket, c.to.id != ""
}

// Closed: the connection with a server has ended, and won't be made again.
func (c *Client) Closed(server string) {
	if p := c.place(server); p != nil {
		p.none = true
	}
}

// Lost reports whether no server plays the player any more: it must log in again.
func (c *Client) Lost() bool { return c.cur.none && (c.to.id == "" || c.to.none) }

// Send sends a message, such as an input or a call, to the server that plays the player. It arrives once, in order. ErrFull: MaxWaiting of them, or MaxWaitingBytes, wait.
func (c *Client) Send(m []byte) error { return c.out.push(m) }

// Waiting calls yield for each message that isn't acknowledged yet, the oldest first: what a prediction replays on the server's state. Don't change it.
func (c *Client) Waiting(yield func(m []byte) bool) {
	for _, m := range c.out.waiting {
		if !yield(m) {
			return
		}
	}
}

func (c *Client) place(server string) *place {
	switch server {
	case "":
	case c.cur.id:
		return &c.cur
	case c.to.id:
		return &c.to
	}
	return nil
}

// Step sends what is due. now is any clock that never goes back. Call it once a tick.
func (c *Client) Step(now time.Duration) {
	c.now = max(c.now, now)
	if len(c.out.waiting) == 0 && c.now < c.sayAt {
		return
	}
	c.sayAt = c.now + clientKeepAlive
	c.send(c.cur.id, c.to.attempt<<1|1)
	if c.to.id != "" {
		attempt := c.to.attempt
		if c.cfg.Ready != nil && !c.cfg.Ready(c.to.id) {
			attempt = 0
		}
		c.send(c.to.id, attempt<<1)
	}
}

func (c *Client) send(server string, attempt uint64) {
	b := binary.LittleEndian.AppendUint64(c.buf[:0], c.cfg.Session)
	b = binary.AppendUvarint(b, attempt)
	b = binary.AppendUvarint(b, c.next)
	c.buf = c.out.append(b, packBytes)
	c.cfg.Send(server, c.buf)
}

// Receive takes a packet of a server. An error means that the server isn't an honest one.
func (c *Client) Receive(server string, packet []byte) error {
	at := c.place(server)
	if at == nil {
		return nil
	}
	r := reader{b: packet}
	flags, epoch, attempt := r.byte(), r.number(), r.number()
	var to place
	if flags&flagGo != 0 {
		to = place{id: string(r.bytes(maxID)), ticket: r.bytes(MaxTicket), attempt: attempt}
	}
	var session, next, first uint64
	var msgs [][]byte
	if flags&flagPlays != 0 {
		session, next = r.fixed(), r.number()
		first, msgs = r.messages(c.msgs[:0], ofPlayer)
		c.msgs = msgs[:0]
	}
	if !r.end() {
		return errPacket
	}
	if flags&flagPlays == 0 {
		if at == &c.to || epoch == 0 {
			at.none = flags&flagArriving == 0
		}
		return nil
	}
	if epoch < c.epoch || session != c.cfg.Session {
		return nil
	}
	if epoch > c.epoch {
		c.epoch = epoch
		if at == &c.to {
			c.cur, c.to, c.tried = c.to, place{}, 0
			at = &c.cur
			if c.cfg.Moved != nil {
				c.cfg.Moved(server)
			}
		}
	}
	if at != &c.cur {
		return nil
	}
	at.none = false
	if flags&flagGoes == 0 {
		c.travel(flags&flagGo != 0, attempt, to)
	}
	if !c.out.ack(next) {
		return errPacket
	}
	for i, m := range msgs {
		if first+uint64(i) == c.next {
			c.next++
			c.sayAt = c.now
			c.cfg.Message(m)
		}
	}
	return nil
}

// travel takes where the present server sends the player. Packets overtake each other, so what is over doesn't begin again.
func (c *Client) travel(goes bool, attempt uint64, to place) {
	switch {
	case goes && attempt > c.tried && attempt > c.to.attempt && to.id != c.cur.id && to.id != "":
		to.ticket = append([]byte(nil), to.ticket...)
		c.to = to
	case !goes && attempt >= c.to.attempt && c.to.id != "":
		c.tried, c.to = attempt, place{}
	}
}
