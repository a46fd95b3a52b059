package web

import (
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// Answer returns a server's UDP socket that answers the probes of DialBest, each with as many bytes as the probe has. One goroutine must do all its reads
// and writes, as a driver does.
func Answer(s udp.Socket) udp.Socket { return &answering{Socket: s} }

// answering is a socket of Answer.
type answering struct {
	udp.Socket
	answers []udp.Message
	probes  sieve
}

// Counters returns those of the socket.
func (a *answering) Counters() udp.Counters {
	c, _ := udp.CountersOf(a.Socket)
	return c
}

// SendsWhole is for the function of that name.
func (a *answering) SendsWhole() bool { return udp.SendsWhole(a.Socket) }

// TryReadBatch implements udp.Socket.
func (a *answering) TryReadBatch(msgs []udp.Message) (int, error) {
	return a.probes.tryRead(a, a.Socket, msgs)
}

// ReadBatch implements udp.Socket.
func (a *answering) ReadBatch(msgs []udp.Message) (int, error) {
	return a.probes.read(a, a.Socket, msgs)
}

// sift takes probes out, and answers them.
func (a *answering) sift(s udp.Socket, msgs []udp.Message, wait bool) (read, left int, err error) {
	read, err = readOnce(s, msgs, wait)
	return read, a.answer(msgs[:read]), err
}

// answer takes probes out, and answers them. Who reads sees the others, in order.
func (a *answering) answer(msgs []udp.Message) (left int) {
	left = keep(msgs, func(p []byte) bool { return !isProbe(p, probeAsk) })
	a.answers = a.answers[:0]
	for i := range msgs[left:] {
		p := msgs[left+i].Data()
		a.answers = append(a.answers, udp.Message{Buf: answerTo(p[:0], p), Addr: msgs[left+i].Addr})
	}
	for rest := a.answers; len(rest) > 0; {
		n, err := a.Socket.WriteBatch(rest)
		if rest = rest[n:]; len(rest) > 0 && (err != nil || n == 0) {
			rest = rest[1:] // lost as any datagram
		}
	}
	return left
}

// answerTo appends the answer to a probe.
func answerTo(b, ask []byte) []byte {
	b = append(b, ask...)
	b[0] = probeAnswer
	return b
}
