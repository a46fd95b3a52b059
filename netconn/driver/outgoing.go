package driver

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"net"
	"net/netip"
	"sync/atomic"

	"github.com/bunchnet/bunchnet/netconn/internal/sealing"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// outgoing is the datagrams that the next flush sends.
type outgoing struct {
	msgs    []udp.Message
	sealers []sealing.Sealer // of each of msgs; nil if its link doesn't encrypt
	n       int
	mem     []byte // the n datagrams, one behind the other, so that small ones need little of the cache
	used    int
	raw     bool       // one of the n lacks its encryption or checksum
	rooms   []sealRoom // by worker
	finish  func(part, worker int)

	finished []atomic.Bool // of each part of the n: none of it is raw any more
	ready    int           // so many parts from the first one are finished
	sent     int           // so many of the n are sent
}

// sealRoom keeps a worker's memory out of the cache lines of others.
type sealRoom struct {
	sealing.Room
	_ [128 - len(sealing.Room{})]byte
}

const (
	// sealPart is how many datagrams a core encrypts at a time.
	sealPart = 32
	// fewToSeal datagrams, and fewer, are encrypted on one core: another one would begin too late.
	fewToSeal = 128
	// sealBatch is how many a driver with several cores collects, if a tick has that many.
	sealBatch = 1024
)

// makeOutgoing makes an empty batch: of so many datagrams as the socket writes at once or, with several cores, of more.
func (d *Driver) makeOutgoing() {
	n, cores := d.socket.BatchSize(), d.cfg.Parallel.Workers()
	if cores > 1 {
		n = max(n, sealBatch)
	}
	d.out = outgoing{msgs: make([]udp.Message, n), mem: make([]byte, n*maxDatagram), sealers: make([]sealing.Sealer, n), rooms: make([]sealRoom, cores), finish: d.finishPart,
		finished: make([]atomic.Bool, parts(n))}
}

// parts is how many parts n datagrams have.
func parts(n int) int { return (n + sealPart - 1) / sealPart }

// write queues a datagram to be sent at the end of the tick, or earlier when the batch is full.
func (d *Driver) write(to netip.AddrPort, p []byte) { d.writeUnsealed(to, p, nil) }

// writeUnsealed is write of a packet that s seals, if there is one. What it is sealed with is in p already, so that it
// is the same packet whenever that is done, and whatever becomes of its connection until then.
func (d *Driver) writeUnsealed(to netip.AddrPort, p []byte, s sealing.Sealer) {
	size := len(p)
	if s != nil {
		size += sealing.Overhead
	}
	if size > maxDatagram-checksumBytes {
		d.Counters.SendErrors++
		return
	}
	o := &d.out
	m := &o.msgs[o.n]
	room := o.mem[o.used:]
	m.Buf, m.Addr = append(room[:0:size+checksumBytes], p...), to
	o.used += size + checksumBytes
	o.sealers[o.n] = s
	o.raw = o.raw || s != nil || d.cfg.Checksum
	d.Counters.DatagramsOut++
	d.Counters.BytesOut += uint64(size)
	if o.n++; o.n == len(o.msgs) {
		d.flush()
	}
}

// finishPart encrypts datagrams, and appends their checksums. The goroutine that flushes also sends what is finished, so that
// the other cores encrypt while it is in system calls.
func (d *Driver) finishPart(part, worker int) {
	o := &d.out
	for i := part * sealPart; i < min((part+1)*sealPart, o.n); i++ {
		m := &o.msgs[i]
		if s := o.sealers[i]; s != nil {
			m.Buf = s.Seal(m.Buf, &o.rooms[worker].Room)
		}
		if d.cfg.Checksum {
			m.Buf = binary.LittleEndian.AppendUint32(m.Buf, crc32.Checksum(m.Buf, castagnoli))
		}
	}
	o.finished[part].Store(true)
	if worker == 0 {
		d.sendFinished()
	}
}

// sendFinished sends the batches of the socket that are full and finished, in their order.
func (d *Driver) sendFinished() {
	o := &d.out
	for size := d.socket.BatchSize(); o.sent+size <= o.n; d.send(size) {
		for o.ready*sealPart < o.sent+size {
			if !o.finished[o.ready].Load() {
				return
			}
			o.ready++
		}
	}
}

// flush sends the batch.
func (d *Driver) flush() {
	o := &d.out
	defer o.reset() // after a panic, too: nothing is sent that isn't sealed, and nothing sealed twice
	if o.raw && !d.failed {
		cores := d.cfg.Parallel
		if o.n <= fewToSeal {
			cores = 1
		}
		cores.inOrder(parts(o.n), o.finish)
	}
	for o.sent < o.n {
		d.send(min(o.n-o.sent, d.socket.BatchSize()))
	}
}

func (o *outgoing) reset() {
	clear(o.sealers[:o.n])
	for i := range parts(o.n) {
		o.finished[i].Store(false)
	}
	o.n, o.used, o.raw, o.ready, o.sent = 0, 0, false, 0, 0
}

// send sends the next n datagrams. One that the system refuses is lost, as on the network: strangers may claim any source
// address.
func (d *Driver) send(n int) {
	o := &d.out
	batch := o.msgs[o.sent : o.sent+n]
	o.sent += n
	for len(batch) > 0 && !d.failed {
		n, err := d.socket.WriteBatch(batch)
		batch = batch[n:]
		if err == nil && n > 0 {
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			d.socketFailed(err)
			break
		}
		d.Counters.SendErrors++
		if len(batch) > 0 {
			batch = batch[1:]
		}
	}
}
