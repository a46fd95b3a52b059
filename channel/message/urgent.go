package message

// urgent is messages as a heap: the one that should be sent first is the first.
type urgent []outgoing

func (u urgent) before(i, j int) bool {
	return u[i].at < u[j].at || u[i].at == u[j].at && u[i].seq < u[j].seq
}

func (u *urgent) push(o outgoing) {
	*u = append(*u, o)
	h := *u
	for i := len(h) - 1; i > 0 && h.before(i, (i-1)/2); i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
}

func (u *urgent) pop() outgoing {
	h := *u
	first, last := h[0], len(h)-1
	h[0], h[last] = h[last], outgoing{}
	h = h[:last]
	for i := 0; ; {
		next := 2*i + 1
		if next >= last {
			break
		}
		if next+1 < last && h.before(next+1, next) {
			next++
		}
		if !h.before(next, i) {
			break
		}
		h[i], h[next] = h[next], h[i]
		i = next
	}
	*u = h
	return first
}
