package netguid

import "testing"

func TestIDsComeAgain(t *testing.T) {
	a := Allocator{last: 1<<31 - 2}
	if last, first := a.Next(), a.Next(); last != 1<<32-2 || first != 2 {
		t.Fatal(last, first)
	}
}

// TestShares: servers give different ids, the first and the last of each share too, and together all of them.
func TestShares(t *testing.T) {
	for _, servers := range []uint32{1, 2, 3, 7, MaxServers} {
		given := map[GUID]bool{}
		for server := range servers {
			share := Share{Server: server, Servers: servers}
			a := Allocator{Share: share}
			first := a.Next()
			a.last = (1<<31-1-server)/servers*servers + server // the last one
			if again := a.Next(); again != first {
				t.Fatalf("%+v begins with %v, and again with %v", share, first, again)
			}
			for i, id := 0, first; i < 3; i, id = i+1, a.Next() {
				if given[id] || !id.Valid() || id.IsStatic() || uint32(id>>1)%servers != server {
					t.Fatalf("%+v gives %v", share, id)
				}
				given[id] = true
			}
		}
		for i := uint32(1); i <= 3*servers; i++ {
			if !given[GUID(i<<1)] {
				t.Fatalf("%d servers don't give %v", servers, GUID(i<<1))
			}
		}
	}
	for _, bad := range []Share{{1, 1}, {0, MaxServers + 1}, {1, 0}} {
		if bad.Valid() {
			t.Fatalf("%+v is valid", bad)
		}
	}
}
