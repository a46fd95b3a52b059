package flight

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/internal/recording"
)

// tape is the end of a recording, from a checkpoint on: the world's part of what is kept.
type tape struct {
	pool  *pool
	max   int // pages
	keep  time.Duration
	head  []byte // what precedes the recording's frames
	heads int    // writes of it that came
	began func() time.Duration
	start time.Duration // of the recording, in the world's time, once there are blocks

	blocks []block
	pages  []page
	base   int64 // of the first page: bytes since the beginning
	end    int64
}

// block is one of the recording's. It follows the one before at once.
type block struct {
	from         int64
	last         time.Duration // of its frames, since the recording's start
	begins, ends bool          // a checkpoint
}

// Write takes a block.
func (t *tape) Write(b []byte) (int, error) {
	if t.heads < 2 { // the file's head, and the schema
		t.head = append(t.head, b...)
		t.heads++
		return len(b), nil
	}
	if len(b) < recording.Head || b[recording.Kind] != recording.Frames { // the index and the end of a file; a film needs neither
		return len(b), nil
	}
	if t.end == 0 {
		t.start = t.began()
	}
	flags, last := b[recording.Flags], time.Duration(binary.LittleEndian.Uint64(b[recording.Last:]))
	t.blocks = append(t.blocks, block{t.end, last, flags&recording.Begins != 0, flags&recording.Ends != 0})
	for {
		next := t.nextCheckpoint()
		full := t.end+int64(len(b))-t.base > int64(t.max)*pageBytes
		if old := next > 0 && t.blocks[next].last < last-t.keep; !old && !full {
			break
		}
		if next == 0 {
			t.blocks = t.blocks[:len(t.blocks)-1]
			return 0, ErrFull
		}
		t.drop(next)
	}
	t.end += int64(len(b))
	for rest := b; len(rest) > 0; {
		if n := len(t.pages); n == 0 || len(t.pages[n-1].data) == pageBytes {
			t.pages = append(t.pages, page{data: t.pool.get()})
		}
		pg := &t.pages[len(t.pages)-1]
		n := min(len(rest), pageBytes-len(pg.data))
		pg.data = append(pg.data, rest[:n]...)
		rest = rest[n:]
	}
	return len(b), nil
}

// drop forgets the blocks before one.
func (t *tape) drop(next int) {
	n := int((t.blocks[next].from - t.base) / pageBytes)
	t.pages = t.pool.drop(t.pages, min(n, len(t.pages)))
	t.base += int64(n) * pageBytes
	t.blocks = slices.Delete(t.blocks, 0, next)
}

// nextCheckpoint is the block at which the first whole checkpoint begins behind the first block, or 0.
func (t *tape) nextCheckpoint() int {
	begins := 0
	for i := range t.blocks {
		if i > 0 && t.blocks[i].begins {
			begins = i
		}
		if begins > 0 && t.blocks[i].ends {
			return begins
		}
	}
	return 0
}

// copied is the part of a tape that a film has.
type copied struct {
	start  time.Duration
	head   []byte
	blocks []block
	pages  []page
	base   int64
}

func (t *tape) take() copied {
	return copied{t.start, t.head, slices.Clone(t.blocks), take(t.pages), t.base}
}

// file is the recording from a block on.
func (c *copied) file(from int) []byte {
	file := slices.Clone(c.head)
	skip := c.blocks[from].from - c.base
	for _, pg := range c.pages {
		n := min(skip, int64(len(pg.data)))
		file = append(file, pg.data[n:]...)
		skip -= n
	}
	return file
}

// start is where a film may begin: a block, and the time from which on all actors are known.
type start struct {
	block int
	at    time.Duration
}

// starts lists them.
func (c *copied) starts() (list []start) {
	if len(c.blocks) > 0 && !c.blocks[0].begins { // the whole recording is there
		list = append(list, start{})
	}
	begins := -1
	for i, b := range c.blocks {
		if b.begins {
			begins = i
		}
		if b.ends && begins >= 0 {
			list = append(list, start{begins, b.last})
		}
	}
	return list
}
