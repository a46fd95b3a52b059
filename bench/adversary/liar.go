package main

import (
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/history"
	"github.com/bunchnet/bunchnet/history/seqnum"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/handler"
	"github.com/bunchnet/bunchnet/packetnotify"
)

// dataName is the type of the channels that carry the game in these attacks; other is a second one.
var (
	dataName  = bunch.Name{Index: 300}
	otherName = bunch.Name{Index: 301}
)

const tick = time.Second / 60

// liar is a peer that writes the wire's bytes itself and keeps no rule unless an attack does. The victim is a
// netconn.Conn, its other end. Nothing is lost between them but what the attack throws away.
type liar struct {
	victim *netconn.Conn
	// result is why the victim's connection has ended; nil until then.
	result *netconn.CloseResult
	now    time.Duration

	seq    int64 // of the next packet
	newest int64 // the victim's newest packet; before its first one, that before it
	acked  int64 // the newest of them that the liar has acked or naked
	chSeq  map[uint32]int64
	chInit int64

	spent, got, gotPackets int // bytes sent by the liar, bytes and packets by the victim
	gotFull                int // bytes of the victim's packets that carry something
	// hears gets each of the victim's packets, its bunches still in r; nil ignores them.
	hears func(seq int64, h *packetnotify.Header, r *bitio.Reader)
	// trailer is put behind each packet, for a victim with coding.
	trailer []byte

	proto bunch.Protocol
	w     bitio.Writer
	buf   [2048]byte
}

// lie is a bunch that a liar sends.
type lie struct {
	bunch.Header
	data []byte
}

const (
	liarFirst   = 5000 // the liar's first packet
	victimFirst = 9000
)

// newLiar is a liar and its victim. The victim is a server unless edit says otherwise. get is the handlers of channels
// that the liar opens; nil takes everything and does nothing.
func newLiar(get func(*channel.Channel) channel.Handler, edit func(c *netconn.Config)) (*liar, error) {
	if get == nil {
		get = func(*channel.Channel) channel.Handler { return channel.Nop{} }
	}
	l := &liar{seq: liarFirst, newest: victimFirst - 1, acked: victimFirst - 1, chSeq: map[uint32]int64{}, chInit: liarFirst & int64(seqnum.Channel.Mask())}
	cfg := netconn.Config{Server: true, LowLevelSend: l.receive, Closed: func(r netconn.CloseResult) { l.result = &r },
		Channels: []channel.Type{
			{Name: bunch.Control, ClientOpen: true, ServerOpen: true, Static: true, Accept: get},
			{Name: dataName, ClientOpen: true, ServerOpen: true, Accept: get},
			{Name: otherName, ClientOpen: true, ServerOpen: true, Accept: get},
		}}
	if edit != nil {
		edit(&cfg)
	}
	if cfg.Protocol == (netconn.Protocol{}) {
		cfg.Protocol = netconn.Bunchnet()
	}
	bucketed(&cfg)
	l.proto = cfg.Protocol.Bunch
	var err error
	l.victim, err = netconn.New(cfg, 0, liarFirst, victimFirst)
	return l, err
}

// receive takes a packet of the victim's.
func (l *liar) receive(p []byte) {
	l.got += len(p)
	l.gotPackets++
	var r bitio.Reader
	var h packetnotify.Header
	if handler.Open(&r, p) != nil || h.Read(&r) != nil {
		return
	}
	if r.ReadBool() { // packet info
		if v := r.ReadBits(11); v>>10 != 0 {
			r.ReadUint8()
		}
	}
	if r.Remaining() > 0 {
		l.gotFull += len(p)
	}
	seq := seqnum.Packet.Expand(h.Seq, l.newest)
	l.newest = max(l.newest, seq)
	if l.hears != nil {
		l.hears(seq, &h, &r)
	}
}

// allYes and allNo are the histories of who has got everything, and nothing.
func allYes() (h history.History) {
	for range history.Bits {
		h.Add(true)
	}
	return h
}

func allNo() history.History { return history.History{} }

// send sends a packet that acks up to acked with a history, and carries lies.
func (l *liar) send(acked int64, h history.History, lies ...lie) error {
	l.begin(acked, h)
	for i := range lies {
		l.proto.Write(&l.w, &lies[i].Header, lies[i].data)
	}
	return l.end()
}

func (l *liar) begin(acked int64, h history.History) {
	l.w.Reset(l.buf[:])
	head := packetnotify.Header{Seq: seqnum.Packet.Truncate(l.seq), AckedSeq: seqnum.Packet.Truncate(acked), Words: history.MaxWords, History: h}
	head.Write(&l.w)
	l.w.WriteBool(false)
	l.acked = max(l.acked, acked)
}

func (l *liar) end() error {
	handler.WriteTerminator(&l.w)
	l.seq++
	p := append(l.w.Bytes(), l.trailer...)
	l.spent += len(p)
	return l.victim.ReceivedPacket(l.now, p)
}

// tell sends a packet that acks all that came, as an honest peer does.
func (l *liar) tell(lies ...lie) error { return l.send(l.newest, allYes(), lies...) }

// mute sends a packet that says nothing new about the victim's.
func (l *liar) mute(lies ...lie) error { return l.send(l.acked, allYes(), lies...) }

// reliable is a reliable bunch with the next sequence of its channel.
func (l *liar) reliable(ch uint32, name bunch.Name, data []byte) lie {
	seq, ok := l.chSeq[ch]
	if !ok {
		seq = l.chInit
	}
	l.chSeq[ch] = seq + 1
	return l.at(ch, name, seq+1, data)
}

// at is a reliable bunch with a sequence of the liar's choice.
func (l *liar) at(ch uint32, name bunch.Name, seq int64, data []byte) lie {
	return lie{bunch.Header{ChIndex: ch, Name: name, Reliable: true, WireSeq: l.proto.Sequences().Truncate(seq), Bits: len(data) * 8}, data}
}

// open is a reliable bunch that opens a channel.
func (l *liar) open(ch uint32, name bunch.Name, data []byte) lie {
	b := l.reliable(ch, name, data)
	b.Open = true
	return b
}

// openControl opens channel 0, as every client does first.
func (l *liar) openControl() error { return l.tell(l.open(0, bunch.Control, []byte("hello"))) }

// pass lets time pass for the victim: the end of a tick.
func (l *liar) pass(d time.Duration) {
	l.now += d
	l.victim.PostTickDispatch(l.now)
	l.victim.Tick(l.now)
}

// over reports whether the victim's connection has ended.
func (l *liar) over() bool { return l.victim.Closed() }
