package fastarray

import (
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Map is a replicated map: a List of keys and values, with the same bounds, that has each key once. The zero Map is
// empty and ready to use. It belongs to its actor and must not be copied. Don't change what a value points to in place:
// Set the key instead.
//
//	Scores fastarray.Map[netguid.GUID, Score] `net:"notify=OnScores"`
//
// A key must be the same at the client: a NaN, a pointer, a time with a location, and what q= or rot= round are refused. All yields
// keys in the order in which they were added, at both ends.
type Map[K comparable, V any] struct {
	// OnAdd, OnChange and OnRemove are called like those of a List.
	OnAdd    func(k K, v V)
	OnChange func(k K, old, now V)
	OnRemove func(k K, old V)

	list  List[entry[K, V]]
	ids   map[K]ID
	stale bool // an update came since ids was made
	added []entry[K, V]
}

type entry[K comparable, V any] struct {
	Key   K
	Value V
}

// Len is the number of keys.
func (m *Map[K, V]) Len() int { return m.list.Len() }

// id is the id of a key's element, or 0. After an update from the server the ids are looked up again once.
func (m *Map[K, V]) id(k K) ID {
	if m.ids == nil || m.stale {
		if m.ids == nil {
			m.ids = map[K]ID{}
		}
		clear(m.ids)
		for i := range m.list.items {
			m.ids[m.list.items[i].value.Key] = m.list.items[i].id
		}
		m.stale = false
	}
	return m.ids[k]
}

// Get returns the value of a key.
func (m *Map[K, V]) Get(k K) (v V, ok bool) {
	e, ok := m.list.Find(m.id(k))
	return e.Value, ok
}

// Set sets the value of a key, which may be new. Its errors are those of List.Add and List.Set, and ErrUnfit for a key that would be
// another one at the client; the map is unchanged then.
func (m *Map[K, V]) Set(k K, v V) error {
	if id := m.id(k); id != 0 {
		return m.list.Set(id, entry[K, V]{k, v})
	}
	id, err := m.list.add(entry[K, V]{k, v}, func(sent *entry[K, V]) bool { return sent.Key == k })
	if err == nil {
		m.ids[k] = id
	}
	return err
}

// Delete removes a key. It is no error when the key isn't there.
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

// Clear removes all keys.
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

// NetWrite writes the differences from a version.
func (m *Map[K, V]) NetWrite(w *bitio.Writer, base uint32) { m.list.NetWrite(w, base) }

// NetRead applies an update.
func (m *Map[K, V]) NetRead(r *bitio.Reader) error {
	m.listen()
	m.stale = true
	return m.list.NetRead(r)
}

// NetKeep turns a client's copy into an original that a server may change.
func (m *Map[K, V]) NetKeep() error {
	m.ids = nil
	return m.list.NetKeep()
}

// listen has the list note the changes that the map's callbacks need.
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

// NetTell makes the callbacks. For a key that was removed and added again the removal is first.
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

// NetRefers reports whether keys or values may refer to actors.
func (m *Map[K, V]) NetRefers() bool { return m.list.NetRefers() }

// NetReferences appends the references of keys and values.
func (m *Map[K, V]) NetReferences(list []netguid.GUID, fresh bool) []netguid.GUID {
	return m.list.NetReferences(list, fresh)
}

// NetArrived notes a change of the keys that, or whose values, refer to an actor that has come.
func (m *Map[K, V]) NetArrived(id netguid.GUID) bool {
	m.listen()
	return m.list.NetArrived(id)
}

// NetListens reports whether the game is told of changed keys.
func (m *Map[K, V]) NetListens() bool { return m.OnChange != nil }

// NetBind sets what to call after each change.
func (m *Map[K, V]) NetBind(changed func()) { m.list.NetBind(changed) }

// NetForm hashes the form of keys and values.
func (m *Map[K, V]) NetForm() (uint32, error) { return m.list.NetForm() }
