package graph

// cellKey identifies a cell: its level, and its coordinates in multiples of the level's cell size.
type cellKey struct{ level, x, y int32 }

// cell is a square of a grid.
type cell struct {
	key     cellKey
	items   []int32 // indexes of actors whose circles touch it
	viewers []int32 // indexes of connections in it
}

// cellTable is the non-empty cells by key. It is its own hash table because creating and removing cells must not
// allocate.
//
// Invariant: len(slots) is a power of two, at most half full. A cell's slot is at its hash's slot or after it, before
// the first 0.
type cellTable struct {
	slots []int32 // indexes of cells plus 1
	cells []cell  // index 0 is unused
	free  []int32
	n     int
}

// keptCapacity is the largest capacity that an empty cell keeps.
const keptCapacity = 1024

func (k cellKey) hash() uint64 {
	h := uint64(uint32(k.x))<<32 | uint64(uint32(k.y))
	h = (h ^ uint64(k.level)<<27) * 0x9e3779b97f4a7c15
	h = (h ^ h>>29) * 0xbf58476d1ce4e5b9
	return h ^ h>>32
}

// find is the index of a cell, or 0.
func (t *cellTable) find(k cellKey) int32 {
	if t.n == 0 {
		return 0
	}
	mask := uint64(len(t.slots) - 1)
	for i := k.hash() & mask; t.slots[i] != 0; i = (i + 1) & mask {
		if c := t.slots[i] - 1; t.cells[c].key == k {
			return c
		}
	}
	return 0
}

// get is the index of a cell, which is created if necessary.
func (t *cellTable) get(k cellKey) int32 {
	if c := t.find(k); c != 0 {
		return c
	}
	if 2*(t.n+1) > len(t.slots) {
		t.grow()
	}
	var c int32
	if n := len(t.free); n > 0 {
		c, t.free = t.free[n-1], t.free[:n-1]
	} else {
		if len(t.cells) == 0 {
			t.cells = append(t.cells, cell{})
		}
		c = int32(len(t.cells))
		t.cells = append(t.cells, cell{})
	}
	t.cells[c].key = k
	t.n++
	t.insert(k, c)
	return c
}

func (t *cellTable) insert(k cellKey, c int32) {
	mask := uint64(len(t.slots) - 1)
	i := k.hash() & mask
	for t.slots[i] != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = c + 1
}

func (t *cellTable) grow() {
	old := t.slots
	t.slots = make([]int32, max(64, 2*len(old)))
	for _, s := range old {
		if s != 0 {
			t.insert(t.cells[s-1].key, s-1)
		}
	}
}

// drop removes a cell if it is empty.
func (t *cellTable) drop(c int32) {
	it := &t.cells[c]
	if len(it.items) > 0 || len(it.viewers) > 0 {
		return
	}
	mask := uint64(len(t.slots) - 1)
	i := it.key.hash() & mask
	for t.slots[i] != c+1 {
		i = (i + 1) & mask
	}
	// What follows moves up into the gap where its hash allows that.
	for j := i; ; {
		j = (j + 1) & mask
		s := t.slots[j]
		if s == 0 {
			break
		}
		if home := t.cells[s-1].key.hash() & mask; (j-home)&mask >= (j-i)&mask {
			t.slots[i] = s
			i = j
		}
	}
	t.slots[i] = 0
	t.n--
	if cap(it.items) > keptCapacity {
		it.items = nil
	}
	t.free = append(t.free, c)
}
