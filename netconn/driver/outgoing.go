package driver

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"net"
	"net/netip"

	"github.com/bunchnet/bunchnet/netconn/internal/sealing"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// outgoing is the datagrams that the next flush sends.
type outgoing struct {
	msgs    []udp.Message
	sealers []sealing.Sealer // of each of msgs; nil if its link doesn't encrypt
	n       int
	raw     bool       // one of the n lacks its encryption or checksum
	rooms   []sealRoom // by worker
	finish  func(part, worker int)
}

// sealRoom keeps a worker's memory out of the cache lines of others.
type sealRoom struct {
	sealing.Room
	_ [128 - len(sealing.Room{})]byte
}

const (
	// sealPart is how many datagrams a core encrypts at a time. That many, or fewer, take less time than another core needs to begin.
	sealPart = 32
	// sealBatch is how many a driver with several cores collects, if a tick has that many.
	sealBatch = 1024
)

// makeOutgoing makes an empty batch: of so many datagrams as the socket writes at once or, with several cores, of more.
func (d *Driver) makeOutgoing() {
	n, cores := d.socket.BatchSize(), d.cfg.Parallel.Workers()
	if cores > 1 {
		n = max(n, sealBatch)
	}
	d.out = outgoing{msgs: buffers(n, 0), sealers: make([]sealing.Sealer, n), rooms: make([]sealRoom, cores), finish: d.finishPart}
}

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
	m.Buf, m.Addr = append(m.Buf[:0], p...), to
	o.sealers[o.n] = s
	o.raw = o.raw || s != nil || d.cfg.Checksum
	d.Counters.DatagramsOut++
	d.Counters.BytesOut += uint64(size)
	if o.n++; o.n == len(o.msgs) {
		d.flush()
	}
}

// finishPart encrypts datagrams, and appends their checksums.
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
}

// flush sends the batch. A datagram that the system refuses is lost, as on the network: strangers may claim any source
// address.
func (d *Driver) flush() {
	o := &d.out
	defer func() { clear(o.sealers[:o.n]); o.n, o.raw = 0, false }() // after a panic, too: nothing is sent that isn't sealed, and nothing sealed twice
	if o.raw && d.err == nil {
		d.cfg.Parallel.Run((o.n+sealPart-1)/sealPart, o.finish)
	}
	for batch := o.msgs[:o.n]; len(batch) > 0 && d.err == nil; {
		n, err := d.socket.WriteBatch(batch[:min(len(batch), d.socket.BatchSize())])
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
