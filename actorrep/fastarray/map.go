package fastarray

import "github.com/bunchnet/bunchnet/bunch/bitio"

// Map is a replicated map: a List of keys and values, with its bounds, in which each key is once. The zero Map is empty and
// ready. It belongs to its actor and must not be copied; what a value points to must not be changed in place: Set it instead.
//
//	Scores fastarray.Map[netguid.GUID, Score] `net:"notify=OnScores"`
//
// A key is sent as it is, so its type may have no q= or rot=. The order of All is that in which keys came, at both ends.
type Map[K comparable, V any] struct {
	// OnAdd, OnChange and OnRemove are called as those of a List.
	OnAdd    func(k K, v V)
	OnChange func(k K, old, now V)
	OnRemove func(k K, old V)

	list  List[entry[K, V]]
	ids   map[K]ID
	fresh uint32 // version that ids is of
	added []entry[K, V]
}

type entry[K comparable, V any] struct {
	Key   K
	Value V
}

// Len is the number of keys.
func (m *Map[K, V]) Len() int { return m.list.Len() }

// id is a key's element, or 0. What a server sent is looked through once for each version.
func (m *Map[K, V]) id(k K) ID {
	if m.ids == nil || m.list.mirror && m.fresh != m.list.version {
		if m.ids == nil {
			m.ids = map[K]ID{}
		}
		clear(m.ids)
		for i := range m.list.items {
			m.ids[m.list.items[i].value.Key] = m.list.items[i].id
		}
		m.fresh = m.list.version
	}
	return m.ids[k]
}

// Get is the value of a key.
func (m *Map[K, V]) Get(k K) (v V, ok bool) {
	e, ok := m.list.Find(m.id(k))
	return e.Value, ok
}

// Set sets the value of a key, which may be a new one. Its errors are those of List.Add and List.Set; the map is as before then.
func (m *Map[K, V]) Set(k K, v V) error {
	if id := m.id(k); id != 0 {
		return m.list.Set(id, entry[K, V]{k, v})
	}
	id, err := m.list.Add(entry[K, V]{k, v})
	if err == nil {
		m.ids[k] = id
	}
	return err
}

// Delete takes a key out. One that isn't there is no error.
func (m *Map[K, V]) Delete(k K) error {
	id := m.id(k)
	if id == 0 && !m.list.mirror {
		return nil
	}
	err := m.list.Remove(id)
	if err == nil {
		delete(m.ids, k)
	}
	return err
}

// Clear takes out all keys.
func (m *Map[K, V]) Clear() error {
	err := m.list.Clear()
	if err == nil {
		clear(m.ids)
	}
	return err
}

// All calls yield for each key. Keys may be set and deleted meanwhile, as in List.All.
func (m *Map[K, V]) All(yield func(k K, v V) bool) {
	for _, e := range m.list.All {
		if !yield(e.Key, e.Value) {
			return
		}
	}
}

// The methods for packages actorrep and layout are the List's.

// NetKey is the map's version.
func (m *Map[K, V]) NetKey() uint32 { return m.list.NetKey() }

// NetWrite writes what is different since a version.
func (m *Map[K, V]) NetWrite(w *bitio.Writer, base uint32) { m.list.NetWrite(w, base) }

// NetRead takes that in.
func (m *Map[K, V]) NetRead(r *bitio.Reader) error {
	m.listen()
	return m.list.NetRead(r)
}

// NetKeep makes the map this end's own.
func (m *Map[K, V]) NetKeep() error {
	m.ids = nil
	return m.list.NetKeep()
}

// listen has the list keep what the map's callbacks are to be told.
func (m *Map[K, V]) listen() {
	if m.OnAdd != nil && m.list.OnAdd == nil {
		m.list.OnAdd = func(_ ID, e entry[K, V]) { m.added = append(m.added, e) }
	}
	if m.OnChange != nil && m.list.OnChange == nil {
		m.list.OnChange = func(_ ID, old, now entry[K, V]) {
			if m.OnChange != nil {
				m.OnChange(now.Key, old.Value, now.Value)
			}
		}
	}
	if m.OnRemove != nil && m.list.OnRemove == nil {
		m.list.OnRemove = func(_ ID, old entry[K, V]) {
			if m.OnRemove != nil {
				m.OnRemove(old.Key, old.Value)
			}
		}
	}
}

// NetTell tells the callbacks what came. A key that went and came again goes first.
func (m *Map[K, V]) NetTell(tell bool) {
	m.list.NetTell(tell)
	for i := range m.added {
		if m.OnAdd != nil {
			m.OnAdd(m.added[i].Key, m.added[i].Value)
		}
	}
	clear(m.added)
	m.added = m.added[:0]
}

// NetBind is what to call after each change.
func (m *Map[K, V]) NetBind(changed func()) { m.list.NetBind(changed) }

// NetForm is the form of keys and values.
func (m *Map[K, V]) NetForm() (uint32, error) { return m.list.NetForm() }
