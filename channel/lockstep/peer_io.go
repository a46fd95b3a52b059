package lockstep

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/channel/lockstep/internal/wire"
)

// ackSoon is how many bytes of the stream a Peer takes before it says so at once.
const ackSoon = 2048

// Receive takes a packet from the host; it may be called between Next and Done. An error means that the packet was
// refused; except for a counter nothing has changed, unless State is Ended. Errors: ErrMalformed, ErrPlayer, ErrSession,
// ErrAhead, and those of Err.
func (p *Peer) Receive(now time.Duration, pkt []byte) error {
	now = p.clock.At(now)
	p.still.look(now, p.cfg.sendEvery())
	err := p.receive(now, pkt)
	switch err {
	case nil:
		p.silent = 0
		p.stats.PacketsReceived++
		p.stats.BytesReceived += uint64(len(pkt))
	case ErrMalformed:
		p.stats.RefusedMalformed++
	case ErrPlayer:
		p.stats.RefusedPlayer++
	case ErrSession:
		p.stats.RefusedSession++
	case ErrAhead:
		p.stats.RefusedAhead++
	}
	return err
}

func (p *Peer) receive(now time.Duration, pkt []byte) error {
	r := wire.Reader{P: pkt}
	e := readEnvelope(&r)
	switch {
	case r.Bad:
		return ErrMalformed
	case e.player != p.cfg.Player:
		return ErrPlayer
	case p.state == Ended, e.session != p.cfg.Session && !(e.typ == typeDenied && p.state != Connecting && e.session == p.welcome.key):
		return ErrSession
	}
	switch e.typ {
	case typeWelcome:
		return p.welcomed(now, &r)
	case typeStream:
		return p.stream(now, &r)
	case typeChallenge:
		proof := r.Uint64()
		if !r.Done() {
			return ErrMalformed
		}
		if p.state == Connecting && proof != p.proof {
			p.proof, p.nextSend = proof, now
		}
		return nil
	case typeParts:
		if turn := r.Count(); !r.Done() {
			return ErrMalformed
		} else if turn == p.doubted {
			p.doubted = -1
		}
		return nil
	case typeDenied:
		reason := DenyReason(r.Uint8())
		if !r.Done() {
			return ErrMalformed
		}
		p.reason = reason
		p.fail(fmt.Errorf("%w: %v", ErrDenied, reason))
		return ErrDenied
	}
	return ErrMalformed
}

func (p *Peer) welcomed(now time.Duration, r *wire.Reader) error {
	w, ok := readWelcome(r)
	if !ok || w.setup > MaxSetup || w.delay < 1 || w.delay > p.cfg.MaxDelay || w.active&^p.cfg.mask() != 0 {
		return ErrMalformed
	}
	p.lastHeard = now
	if p.state != Connecting && (w.base <= p.welcome.base || p.under) {
		return nil // said again, or it will be after Done
	}
	if w.snapshot > p.cfg.MaxSnapshot {
		p.fail(ErrSnapshotSize)
		return ErrSnapshotSize
	}
	if have := max(p.cfg.Have, p.next); w.snapshot == 0 && w.start != have {
		return ErrMalformed // there'd be a hole between what we have and what comes
	}
	p.life, p.doubted, p.lagging = 0, -1, false
	p.setup, p.accepted, p.snapshot, p.loaded = nil, 0, nil, 0
	p.recv.reset()
	for i := range p.early {
		p.early[i].data = p.early[i].data[:0]
	}
	p.kept = p.game()
	p.untaken = w.snapshot > 0
	p.welcome, p.state = w, Running
	if w.snapshot > 0 {
		p.state = Loading
	}
	p.next, p.hashNext, p.hashSent, p.hashAgain = w.start, w.start, w.start, w.start
	p.delay, p.active = w.delay, w.active
	p.news = true
	return nil
}

// stream takes what continues the stream.
func (p *Peer) stream(now time.Duration, r *wire.Reader) error {
	s, ok := readStream(r)
	switch {
	case !ok || s.waiting&^p.cfg.mask() != 0:
		return ErrMalformed
	case p.state == Connecting:
		return ErrSession // the welcome will come
	case s.hashes > p.next:
		return ErrAhead
	}
	p.lastHeard = now
	p.stamp, p.stampAt, p.stamped = s.stamp, now, !p.still.woken(now)
	p.waiting = s.waiting
	if p.life != 0 {
		p.acked = min(max(p.acked, s.inputs), p.sealed)
	}
	p.hashNext = max(p.hashNext, s.hashes)
	p.take(s.offset, s.data)
	if p.recv.bad {
		p.fail(ErrStream)
		return ErrStream
	}
	return nil
}

// position is how much of the stream has come.
func (p *Peer) position() int64 {
	return p.welcome.base + int64(len(p.setup)) + int64(p.loaded) + p.recv.next
}

// take takes a piece of the stream, and what came before its turn and follows it.
func (p *Peer) take(offset int64, data []byte) {
	if offset > p.position() {
		p.keep(offset, data)
		return
	}
	p.add(offset, data)
	for i := 0; i < len(p.early); i++ {
		if e := &p.early[i]; len(e.data) > 0 && e.offset <= p.position() {
			p.add(e.offset, e.data)
			e.data = e.data[:0]
			i = -1
		}
	}
}

// earlyPieces is how many pieces of the stream are kept that came before their turn: those of the default Window.
const earlyPieces = 16

// earlyPiece is one; it has no data when the place is free.
type earlyPiece struct {
	offset int64
	data   []byte
}

// keep keeps a piece that came before its turn, if there is room.
func (p *Peer) keep(offset int64, data []byte) {
	var free *earlyPiece
	for i := range p.early {
		switch e := &p.early[i]; {
		case len(e.data) == 0:
			free = e
		case e.offset == offset && len(e.data) >= len(data):
			p.stats.DroppedRepeated++
			return
		}
	}
	if free == nil || len(data) == 0 || len(data) > p.cfg.MaxPacket {
		p.stats.DroppedGap++
		return
	}
	free.offset, free.data = offset, append(free.data[:0], data...)
}

// add takes a piece of the stream that continues what has come.
func (p *Peer) add(offset int64, data []byte) {
	pos := p.position()
	switch {
	case offset+int64(len(data)) <= pos:
		if len(data) > 0 {
			p.stats.DroppedRepeated++
		}
		return
	}
	data = data[pos-offset:]
	if n := min(p.welcome.setup-len(p.setup), len(data)); n > 0 {
		p.setup = append(p.setup, data[:n]...)
		p.unsaid += n
		data = data[n:]
	}
	if n := min(p.welcome.snapshot-p.loaded, len(data)); n > 0 {
		p.snapshot = append(p.snapshot, data[:n]...)
		p.loaded += n
		p.unsaid += n
		data = data[n:]
	}
	p.unsaid += p.recv.add(data)
	if p.unsaid >= ackSoon {
		p.news = true
	}
}

// Tick sends what is due: at once after Done, and otherwise each TurnInterval, and second.
func (p *Peer) Tick(now time.Duration) {
	if p.state == Ended {
		return
	}
	now = p.clock.At(now)
	if p.still.began && p.cfg.Timeout > 0 {
		p.silent += min(max(now-p.still.ticked, 0), p.longest())
	}
	p.still.tick(now, p.cfg.sendEvery())
	if p.cfg.Timeout > 0 && p.silent >= p.cfg.Timeout {
		p.fail(ErrTimeout)
		return
	}
	if !p.news && now < p.nextSend {
		return
	}
	p.news = false
	p.nextSend = now + p.cfg.sendEvery()
	if p.state == Connecting {
		h := hello{agreement: p.cfg.agreement(), proof: p.proof, have: p.cfg.Have, maxSnapshot: int64(p.cfg.MaxSnapshot), generation: p.cfg.Generation}
		p.send(now, h.append(p.open(typeHello)))
		return
	}
	if p.accepted > 0 && p.life == 0 {
		p.send(now, binary.AppendUvarint(p.open(typeReady), uint64(p.accepted)))
	}
	if p.doubted >= 0 && p.doubted >= p.next-hashWindow && p.doubted < p.next {
		pkt := binary.AppendUvarint(p.open(typeParts), uint64(p.doubted))
		for _, s := range p.partsOf(p.doubted) {
			pkt = binary.LittleEndian.AppendUint64(pkt, s)
		}
		p.send(now, pkt)
	}
	p.sendInput(now)
}

// longest is how much of the time between two Ticks counts as silence of the host, at most: a machine that stood still hasn't heard it.
func (p *Peer) longest() time.Duration { return min(maxTick, p.cfg.Timeout/2) }

// NextDeadline is when Tick must be called next; ok is false when nothing is due.
func (p *Peer) NextDeadline() (at time.Duration, ok bool) {
	switch {
	case p.news:
		at = p.still.ticked // at once
	case p.still.began && p.cfg.Timeout > 0:
		at = min(p.nextSend, p.still.ticked+p.longest())
	default:
		at = p.nextSend
	}
	return p.clock.Outside(at), p.state != Ended
}

func (p *Peer) open(typ packetType) []byte {
	e := envelope{typ, p.cfg.Player, p.cfg.Session}
	if typ != typeHello {
		e.session = p.welcome.key
	}
	return e.append(p.packet[:0])
}

// sendInput sends all inputs and hashes that the host lacks, as far as they fit, oldest
// first; by a reliable transport those that weren't sent. When they don't fit, the next packet goes on with the rest, and inputs that were never sent have one of
// their own: the host would wait for them.
func (p *Peer) sendInput(now time.Duration) {
	limit := packetLimit(p.transport, p.cfg.MaxPacket)
	if limit < p.cfg.MaxInput+headerBytes {
		p.fail(ErrPacketSize)
		return
	}
	end, endHash, ok := p.sendInputs(now, max(p.acked, p.inSent), max(p.hashNext, p.hashSent), limit)
	if !ok {
		return
	}
	p.inSent, p.hashSent, p.unsaid = end, endHash, 0
	p.news = p.reliable && (end < p.sealed && p.life != 0 || endHash < p.next)
	if p.reliable {
		return
	}
	if p.inNew = max(p.inNew, end); p.inNew < p.sealed && p.life != 0 {
		if end, endHash, ok := p.sendInputs(now, p.inNew, endHash, limit); ok {
			p.inNew, p.hashSent = end, endHash
		}
	}
	if end == p.sealed {
		p.inSent = 0 // from the first one that isn't acked
	}
	if n := p.next - p.hashNext; p.hashSent == p.next && (n < 4*repeats || p.next-p.hashAgain >= n/repeats) {
		p.hashSent, p.hashAgain = 0, p.next // all that aren't acked go again, but where they are many not with each packet
	}
}

// sendInputs sends a packet of inputs and hashes from some turns on, and returns which didn't fit.
func (p *Peer) sendInputs(now time.Duration, first, firstHash int64, limit int) (end, endHash int64, ok bool) {
	in := input{received: p.position(), executed: p.next, life: p.life, first: first, stamp: p.stamp, hold: noHold}
	if held := (now - p.stampAt).Milliseconds(); p.stamped && held < noHold {
		in.hold = uint16(max(held, 0))
	}
	pkt := in.appendHead(p.open(typeInput))
	pkt, end = p.appendInputs(pkt, first, limit)
	pkt, endHash = p.appendHashes(pkt, firstHash, limit)
	return end, endHash, p.send(now, pkt)
}

// appendInputs leaves room for a hash.
func (p *Peer) appendInputs(pkt []byte, turn int64, limit int) ([]byte, int64) {
	const hashRoom = binary.MaxVarintLen64 + 8
	count := len(pkt)
	pkt = append(pkt, 0)
	for ; p.life != 0 && turn < p.sealed; turn++ {
		in := p.slot(turn)[:p.inputs.Lookup(turn).size]
		if len(pkt)+binary.MaxVarintLen16+len(in)+hashRoom > limit {
			break
		}
		pkt = append(binary.AppendUvarint(pkt, uint64(len(in))), in...)
		pkt[count]++
	}
	return pkt, turn
}

func (p *Peer) appendHashes(pkt []byte, turn int64, limit int) ([]byte, int64) {
	pkt = binary.AppendUvarint(pkt, uint64(turn))
	for ; turn < p.next && len(pkt)+8 <= limit; turn++ {
		pkt = binary.LittleEndian.AppendUint64(pkt, p.hashes[turn%hashWindow])
	}
	return pkt, turn
}

func (p *Peer) send(now time.Duration, pkt []byte) bool {
	if !p.bandwidth.allows(now, p.transport, p.cfg.sendEvery()) {
		p.stats.Paced++
		p.nextSend = now + p.cfg.sendEvery()/4
		return false
	}
	if err := p.transport.Send(p.clock.Outside(now), pkt); err != nil {
		p.stats.SendErrors++
		p.nextSend = now + p.cfg.sendEvery()/4
		return false
	}
	p.stats.PacketsSent++
	p.stats.BytesSent += uint64(len(pkt))
	return true
}
