package link

// window bounds the bytes of messages in flight. It is halved while more than half of what is sent has to be sent again: a path
// that is full loses what it can't carry, and sending it all again keeps it full. It grows with what is acked. Losses by chance
// hardly narrow it, and one datagram may always be in flight.
type window struct {
	limit, least, most int
	good, bad          int // messages acked, and sent again
}

func newWindow(c *Config) window {
	most := c.Window * (MaxMessage + packedBytes)
	return window{limit: most, least: c.MTU, most: most}
}

// windowSample is how many messages' fates decide.
const windowSample = 32

func (w *window) acked(bytes int) {
	w.good++
	w.limit = min(w.limit+bytes/4, w.most)
	w.decide()
}

func (w *window) lost() {
	w.bad++
	w.decide()
}

func (w *window) decide() {
	if w.good+w.bad < windowSample {
		return
	}
	if w.bad > w.good {
		w.limit = max(w.limit/2, w.least)
	}
	w.good, w.bad = 0, 0
}
