package flight

import "time"

// pageBytes is the size of a page.
const pageBytes = 64 << 10

// page is a part of what is kept. What is written to it once stays, so a film reads it while the recorder goes on; its memory is then not
// used again.
type page struct {
	data        []byte
	taken       bool          // by a film
	first, last time.Duration // of a log's entries
}

// pool gives memory for pages, and takes it back.
type pool struct {
	free [][]byte
	all  int // pages in use, and free ones
}

func (p *pool) get() []byte {
	n := len(p.free)
	if n == 0 {
		p.all++
		return make([]byte, 0, pageBytes)
	}
	data := p.free[n-1]
	p.free[n-1] = nil
	p.free = p.free[:n-1]
	return data[:0]
}

func (p *pool) put(pg page) {
	if pg.taken {
		p.all--
		return
	}
	p.free = append(p.free, pg.data)
}

// drop removes the first pages of a list, and returns the rest.
func (p *pool) drop(pages []page, n int) []page {
	for _, pg := range pages[:n] {
		p.put(pg)
	}
	rest := copy(pages, pages[n:])
	clear(pages[rest:])
	return pages[:rest]
}

// take is a list as it is now, for a film.
func take(pages []page) []page {
	taken := make([]page, len(pages))
	for i := range pages {
		pages[i].taken = true
		taken[i] = pages[i]
	}
	return taken
}
