package mesh_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/mesh"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/kv"
)

// soul is an actor that writes letters to others: a player, or a party, which is at one server while its members are at any.
type soul struct {
	mesh.Body
	X float64
	letters
	book mesh.Book
}

func (a *soul) Location() (x, y, z float64) { return a.X, 0, 0 }
func (a *soul) Dealings() *mesh.Book        { return &a.book }

// letters is a soul's state. A deal comes once, but two deals may come in another order: so letters to each other soul are numbered, and one that comes too early is kept.
type letters struct {
	Name    string
	Members []netguid.GUID // of a party
	Read    []string       // by a player
	Out     []letter       // that the Book has had no room for
	Sent    map[netguid.GUID]int
	Had     map[netguid.GUID]int
	Early   []letter
	Book    []byte
}

type letter struct {
	With netguid.GUID
	N    int
	Text string
}

func (a *soul) write(to netguid.GUID, text string) {
	a.Sent[to]++
	a.Out = append(a.Out, letter{to, a.Sent[to], text})
}

// read takes a letter, and reads what it can in the order in which each sender has written.
func (a *soul) read(l letter) {
	a.Early = append(a.Early, l)
	for i := 0; i < len(a.Early); i++ {
		if l := a.Early[i]; l.N == a.Had[l.With]+1 {
			a.Had[l.With]++
			a.Early = slices.Delete(a.Early, i, i+1)
			a.does(l.With, l.Text)
			i = -1
		}
	}
}

// does what a letter says. All that it changes is kept together.
func (a *soul) does(from netguid.GUID, text string) {
	const most = 2
	what, rest, _ := strings.Cut(text, " ")
	switch {
	case a.Members == nil:
		a.Read = append(a.Read, text)
	case what == "join" && len(a.Members) > most:
		a.write(from, "the party is full")
	case what == "join":
		a.Members = append(a.Members, from)
		a.write(from, "welcome, "+rest)
	case what == "say":
		for _, m := range a.Members[1:] {
			a.write(m, rest)
		}
	}
}

func (a *soul) save() []byte {
	a.letters.Book = a.book.Append(nil)
	b, err := json.Marshal(struct {
		X float64
		letters
	}{a.X, a.letters})
	must(err)
	return b
}

// hall is a server.
type hall struct {
	id     string
	world  *actorrep.World
	zone   *mesh.Zone
	keeper *mesh.Keeper
	store  *memoryView
	inbox  [][]byte
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (h *hall) Make(string) mesh.Actor                          { return &soul{} }
func (h *hall) Give(a mesh.Actor, _ string) ([]byte, bool)      { return a.(*soul).save(), true }
func (h *hall) Call(mesh.Actor, string, []byte)                 {}
func (h *hall) Undelivered(netguid.GUID, []byte)                {}
func (h *hall) Deal(a mesh.Dealer, from netguid.GUID, b []byte) { a.(*soul).read(decode(from, b)) }
func (h *hall) Returned(a mesh.Dealer, to netguid.GUID, b []byte) {
	a.(*soul).Out = append(a.(*soul).Out, decode(to, b))
}

func (h *hall) Take(a mesh.Actor, b []byte) error {
	s := a.(*soul)
	if err := json.Unmarshal(b, &struct {
		X *float64
		*letters
	}{&s.X, &s.letters}); err != nil {
		return err
	}
	_, err := s.book.Read(s.letters.Book)
	return err
}

func decode(with netguid.GUID, b []byte) (l letter) {
	must(json.Unmarshal(b, &l))
	l.With = with
	return l
}

// souls calls f for each of the server's own.
func (h *hall) souls(f func(a *soul)) {
	for a := range h.world.All {
		if s := a.(*soul); h.zone.Owns(s) {
			f(s)
		}
	}
}

// A party, and its chat, on two servers: it is an actor, and what its members say to it and it to them are deals. So each line comes once, and all read the lines of each other in the same order, though a third of the
// packets between the servers is lost, others come twice, and the server that has the party and Bob crashes while they talk.
func ExampleKeeper_Deal() {
	store := &memory{}
	plan := mesh.Table{Cell: 100, Columns: 2, Servers: []string{"left", "right"}}
	halls := map[string]*hall{}
	packets := 0
	for i, id := range []string{"west", "east"} {
		h := &hall{id: id, world: actorrep.NewServer(actorrep.Config{IDs: netguid.Share{Server: uint32(i), Servers: 2}})}
		must(h.world.Register("Soul", (*soul)(nil)))
		var err error
		h.zone, err = mesh.NewZone(mesh.ZoneConfig{ID: id, World: h.world, Game: h, Table: mesh.Table{Epoch: 1, Cell: 100, Columns: 1, Servers: []string{id}}, Margin: 20, Hysteresis: 2, Key: [32]byte{9}, Rand: rand.Reader,
			ToServer: func(to string, b []byte) {
				for packets++; halls[to] != nil && packets%3 > 0; {
					halls[to].inbox = append(halls[to].inbox, bytes.Clone(b))
					if packets%4 > 0 {
						return
					}
					packets++
				}
			}})
		must(err)
		h.keeper, err = mesh.NewKeeper(mesh.KeeperConfig{Zone: h.zone, Plan: plan, Zones: plan.Servers[i : i+1], Deals: h, Save: func(a mesh.Actor) []byte { return a.(*soul).save() }})
		must(err)
		h.store = store.view(h.keeper)
		halls[id] = h
	}
	spawn := func(h *hall, name string, x float64, members []netguid.GUID) netguid.GUID {
		a := &soul{X: x, letters: letters{Name: name, Members: members, Sent: map[netguid.GUID]int{}, Had: map[netguid.GUID]int{}}}
		must(h.world.Spawn(a))
		must(h.zone.Own(a, 1))
		return a.GUID()
	}
	var party netguid.GUID
	for now := time.Duration(0); now < 15*time.Second; now += 50 * time.Millisecond {
		if now == 3*time.Second {
			delete(halls, "east") // it has crashed
		}
		for _, id := range []string{"west", "east"} {
			h := halls[id]
			if h == nil {
				continue
			}
			kv.Tick(h.keeper, h.store, now)
			in := h.inbox
			h.inbox = nil
			for _, b := range in {
				must(h.zone.Receive(map[string]string{"west": "east", "east": "west"}[id], b))
			}
			switch {
			case now == time.Second && id == "west":
				spawn(h, "Ann", 50, nil)
				spawn(h, "Cid", 60, nil)
			case now == time.Second:
				party = spawn(h, "the party", 150, []netguid.GUID{0})
				spawn(h, "Bob", 150, nil)
			}
			h.souls(func(a *soul) {
				switch n := a.Sent[party]; {
				case party == 0 || a.Members != nil:
				case n == 0 && (a.Name != "Cid" || now >= 2*time.Second):
					a.write(party, "join "+a.Name)
				case n > 0 && n <= 9 && now >= 2500*time.Millisecond && a.Name != "Cid" && now%(100*time.Millisecond) == 0:
					a.write(party, fmt.Sprintf("say %s:%d", a.Name, n))
				}
				for len(a.Out) > 0 {
					b, err := json.Marshal(a.Out[0])
					must(err)
					if h.keeper.Deal(a, a.Out[0].With, b) != nil {
						break // later
					}
					a.Out = a.Out[1:]
				}
			})
			h.zone.Step(now)
			h.world.Step(now)
		}
	}
	heard := map[string][]string{}
	halls["west"].souls(func(a *soul) { heard[a.Name] = a.Read })
	for _, name := range []string{"Ann", "Bob", "Cid"} {
		lines := heard[name]
		fmt.Printf("%s: %s\n", name, lines[0])
		for _, from := range []string{"Ann", "Bob"} {
			for _, l := range lines[1:] {
				if who, n, _ := strings.Cut(l, ":"); who == from {
					fmt.Print("  ", who, " ", n)
				}
			}
		}
		fmt.Println()
	}
	fmt.Println("in the same order:", slices.Equal(heard["Ann"][1:], heard["Bob"][1:]))
	// Output:
	// Ann: welcome, Ann
	//   Ann 1  Ann 2  Ann 3  Ann 4  Ann 5  Ann 6  Ann 7  Ann 8  Ann 9  Bob 1  Bob 2  Bob 3  Bob 4  Bob 5  Bob 6  Bob 7  Bob 8  Bob 9
	// Bob: welcome, Bob
	//   Ann 1  Ann 2  Ann 3  Ann 4  Ann 5  Ann 6  Ann 7  Ann 8  Ann 9  Bob 1  Bob 2  Bob 3  Bob 4  Bob 5  Bob 6  Bob 7  Bob 8  Bob 9
	// Cid: the party is full
	//
	// in the same order: true
}
