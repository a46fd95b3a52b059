package main

import (
	"encoding/binary"
	"fmt"

	"github.com/bunchnet/bunchnet/actorrep/mesh"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

// game is what Zone and Keeper ask of a server's game.
type game struct{ *server }

// Make implements mesh.ZoneGame.
func (game) Make(class string) mesh.Actor {
	if class != "Walker" {
		return nil
	}
	return &Walker{}
}

// Give implements mesh.ZoneGame. A player's walker goes with its player.
func (g game) Give(a mesh.Actor, to string) ([]byte, bool) {
	w := a.(*Walker)
	if w.Player == 0 {
		return w.save().encode(), true
	}
	if g.players.Plays(uint64(w.Player)) && g.players.Travel(uint64(w.Player), to) == nil {
		w.to = to
	}
	return nil, false
}

// Take implements mesh.ZoneGame. A player's walker that comes this way was another server's that is gone.
func (g game) Take(a mesh.Actor, b []byte) error {
	s, err := decodeState(b)
	if err != nil {
		return err
	}
	w := a.(*Walker)
	if err := w.load(s); err != nil {
		return err
	}
	if w.Player == 0 {
		return nil
	}
	g.pawns[w.Player] = w
	if c := g.guests[uint64(w.Player)]; c != nil {
		c.conn.CloseWithReason("your server is gone: come again")
	}
	g.players.Restored(uint64(w.Player))
	return nil
}

// Call implements mesh.ZoneGame: a bot at another server reads an account here, or the answer to one.
func (g game) Call(a mesh.Actor, _ string, call []byte) {
	w := a.(*Walker)
	in := words{b: call[1:]}
	switch call[0] {
	case 'r':
		op, asker, since := in.unsigned(), netguid.GUID(in.unsigned()), in.signed()
		if !in.bad {
			g.read(w, since, func(p page) {
				_ = g.zone.Call(asker, p.append(binary.AppendUvarint([]byte{'a'}, op))) // else its result is unknown
			})
		}
	case 'a':
		if op := in.unsigned(); !in.bad {
			g.answer(w.Player, op, ok, in.b)
		}
	}
}

// Undelivered implements mesh.ZoneGame: what was asked, or answered, came to nobody.
func (g game) Undelivered(_ netguid.GUID, call []byte) {
	in := words{b: call[1:]}
	if op, asker := in.unsigned(), in.unsigned(); call[0] == 'r' && !in.bad {
		g.answer(playerOf(netguid.GUID(asker)), op, failed, []byte("nobody is there"))
	}
}

// ask has an account read, wherever it is.
func (s *server) ask(w *Walker, op uint64, account uint32, since int) {
	player := w.Player
	no := func(err error) { s.answer(player, op, failed, []byte(err.Error())) }
	if account == player {
		if !s.zone.Owns(w) {
			no(mesh.ErrNotHere)
		} else {
			s.read(w, since, func(p page) { s.answer(player, op, ok, p.append(nil)) })
		}
		return
	}
	call := binary.AppendUvarint(binary.AppendUvarint([]byte{'r'}, op), uint64(w.GUID()))
	if err := s.zone.Call(playerActor(account), binary.AppendVarint(call, int64(since))); err != nil {
		no(err)
	}
}

// read answers with an account when the store has it as it is: a server that can't write any more has no answer, and what is told is never lost.
func (s *server) read(w *Walker, since int, answer func(p page)) {
	p := w.account.read(since)
	p.Lines = append([]entry(nil), p.Lines...)
	_ = s.keeper.Keep(w, func(err error) {
		if err == nil {
			answer(p)
		}
	})
}

// buy begins a trade: the gold leaves the walker and is under way from the same moment on.
func (s *server) buy(w *Walker, trade uint64, seller uint32, price int) {
	no := func(why string) { s.answer(w.Player, trade, failed, []byte(why)) }
	switch {
	case !s.zone.Owns(w):
		no("you aren't here")
	case w.account.Buying != 0:
		no("your last trade isn't over")
	case price < 1 || price > w.account.Gold:
		no("too little gold")
	default:
		if err := s.keeper.Deal(w, playerActor(seller), deal{paid, trade, price}.append(nil)); err != nil {
			no(err.Error())
			return
		}
		w.account.Buying = trade
		w.account.add(entry{trade, paid, price})
	}
}

// Deal implements mesh.DealGame.
func (g game) Deal(a mesh.Dealer, from netguid.GUID, b []byte) {
	d, err := readDeal(b)
	g.fail(err)
	w := a.(*Walker)
	switch d.Kind {
	case paid:
		e, back := entry{d.Trade, sold, d.Price}, deal{got, d.Trade, d.Price}
		if w.account.Gems == 0 {
			e.Kind, back.Kind = declined, refunded
		}
		w.account.add(e)
		w.account.Owed = append(w.account.Owed, owed{uint32(from), back})
		g.pay(w)
	case got, refunded:
		g.over(w, d, d.Kind)
	default:
		g.fail(fmt.Errorf("a deal of kind %d", d.Kind))
	}
}

// Returned implements mesh.DealGame.
func (g game) Returned(a mesh.Dealer, to netguid.GUID, b []byte) {
	d, err := readDeal(b)
	g.fail(err)
	if d.Kind != paid {
		g.fail(fmt.Errorf("actor %v, who has traded, isn't there", to))
		return
	}
	g.over(a.(*Walker), d, returned)
}

// over ends a trade at its buyer, and tells that when the store has it.
func (s *server) over(w *Walker, d deal, k kind) {
	w.account.add(entry{d.Trade, k, d.Price})
	w.account.Buying = 0
	_ = s.keeper.Keep(w, func(err error) {
		if err == nil {
			s.answer(w.Player, d.Trade, ok, []byte{byte(k)})
		}
	})
}

// pay gives buyers what they get, as far as there is room in the Book, and a store.
func (s *server) pay(w *Walker) {
	for len(w.account.Owed) > 0 {
		o := w.account.Owed[0]
		if s.keeper.Deal(w, netguid.GUID(o.To), o.Deal.append(nil)) != nil {
			return // later
		}
		w.account.Owed = w.account.Owed[1:]
	}
}
