package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"time"

	"github.com/bunchnet/bunchnet/channel/lockstep"
)

func init() {
	register(
		attack{area: "lockstep", name: "a freezer that comes back", promise: "a player that sends no commands and rejoins at once can't freeze a Wait game: in two minutes", bound: atLeast(0.85, "of turns"), run: freezer},
		attack{area: "lockstep", name: "blind restarts", promise: "who begins sessions without getting the answers gets no more than was sent", bound: atMost(1, "bytes a byte"), run: blindRestarts},
		attack{area: "lockstep", name: "a liar in seat 0", promise: "a liar who meets honest players one after another has none of them blamed", bound: none("blamed"), run: liarInSeatZero},
		attack{area: "lockstep", name: "old stamps", promise: "a player that echoes old stamps raises the delay of all by little", bound: atMost(4, "turns"), run: oldStamps},
		attack{area: "lockstep", name: "a host that is gone", promise: "peers of a silent host end with an error after Timeout, here 30 s", bound: atMost(31, "s"), run: silentHost},
		attack{area: "lockstep", name: "damaged replays", promise: "a flipped bit of a replay file never changes a turn unnoticed", bound: none("unnoticed"), run: damagedReplays},
	)
}

// lockTable is a lockstep host and its players in virtual time, each 20 ms away.
type lockTable struct {
	now   time.Duration
	cfg   lockstep.HostConfig
	host  *lockstep.Host
	seats []*lockSeat
	blame map[int]int // Desynced events
	err   error
}

type lockSeat struct {
	peer     *lockstep.Peer
	session  uint32
	up, down wirePipe
	lie      func(hash uint64) uint64
	sends    func(p []byte) []byte // what becomes of a packet; nil when it isn't sent
	next     time.Duration
	record   *lockstep.Recorder
	state    uint64
}

// wirePipe is a direction of 20 ms.
type wirePipe struct {
	edit    func(p []byte) []byte
	packets [][]byte
	at      []time.Duration
	bytes   int
}

func (w *wirePipe) Send(now time.Duration, p []byte) error {
	p = bytes.Clone(p)
	if w.edit != nil {
		if p = w.edit(p); p == nil {
			return nil
		}
	}
	w.bytes += len(p)
	w.packets, w.at = append(w.packets, p), append(w.at, now+20*time.Millisecond)
	return nil
}

func (w *wirePipe) pop(now time.Duration, f func(p []byte)) {
	for len(w.at) > 0 && w.at[0] <= now {
		p := w.packets[0]
		w.packets, w.at = w.packets[1:], w.at[1:]
		f(p)
	}
}

func newLockTable(players int) *lockTable {
	t := &lockTable{now: time.Millisecond, blame: map[int]int{}}
	t.cfg = lockstep.HostConfig{Config: lockstep.Config{Players: players, Protocol: 3}, Secret: [32]byte{1, 2}}
	t.host, t.err = lockstep.NewHost(t.cfg, t)
	for range players {
		t.seats = append(t.seats, &lockSeat{})
	}
	return t
}

// Event is the host's.
func (t *lockTable) Event(_ int64, e lockstep.Event) {
	if e.Kind == lockstep.Desynced {
		t.blame[e.Player]++
	}
}

func (t *lockTable) connect(i int) {
	s := t.seats[i]
	s.session++
	s.state = 0
	s.up.edit = s.sends
	c := lockstep.PeerConfig{Config: t.cfg.Config, Player: i, Session: s.session}
	var err error
	if s.peer, err = lockstep.NewPeer(c, &s.up); err == nil {
		err = t.host.Connect(i, &s.down)
	}
	if err != nil && t.err == nil {
		t.err = err
	}
}

func (t *lockTable) run(d time.Duration) {
	for end := t.now + d; t.now < end && t.err == nil; t.now += 5 * time.Millisecond {
		for i, s := range t.seats {
			if s.peer != nil {
				t.play(i, s)
			}
		}
		t.host.Tick(t.now)
	}
}

func (t *lockTable) play(i int, s *lockSeat) {
	s.up.pop(t.now, func(p []byte) { _ = t.host.Receive(t.now, i, p) })
	s.down.pop(t.now, func(p []byte) { _ = s.peer.Receive(t.now, p) })
	due := s.peer.Behind()
	if t.now >= s.next {
		due++
		s.next = t.now + 50*time.Millisecond
	}
	for range due {
		turn, ok := s.peer.Next()
		if !ok {
			break
		}
		for who, cmd := range turn.Commands() {
			for _, b := range cmd {
				s.state = (s.state^uint64(b)^uint64(who))*1099511628211 + 1
			}
		}
		_ = s.peer.Submit([]byte{byte(turn.N), byte(i)}) // refused before its Join
		hash := s.state
		if s.lie != nil {
			hash = s.lie(hash)
		}
		if s.record != nil {
			if err := s.record.Turn(turn, hash); err != nil {
				t.err = err
			}
		}
		if err := s.peer.Done(hash); err != nil {
			t.err = err
		}
	}
	s.peer.Tick(t.now)
}

// begin connects some players and starts.
func (t *lockTable) begin(players ...int) {
	for _, i := range players {
		t.connect(i)
	}
	t.run(time.Second)
	t.host.Start(t.now)
	t.run(time.Second)
}

func (t *lockTable) figure(v float64) figure {
	if t.err != nil {
		return broken("%v", t.err)
	}
	return figure{value: v}
}

func freezer(*env) figure {
	t := newLockTable(3)
	bad := t.seats[2]
	bad.sends = func(p []byte) []byte {
		if bad.peer != nil && bad.peer.InGame() {
			return nil
		}
		return p
	}
	t.begin(0, 1, 2)
	from, began := t.host.Turn(), t.now
	for t.now < began+2*time.Minute && t.err == nil {
		t.run(100 * time.Millisecond)
		if t.host.Active()>>2&1 == 0 && bad.peer.InGame() {
			t.connect(2)
		}
	}
	return t.figure(float64(t.host.Turn()-from) / 2400)
}

func blindRestarts(*env) figure {
	t := newLockTable(2)
	t.begin(0, 1)
	t.run(20 * time.Second)
	t.seats[0].peer = nil
	var hellos wirePipe
	before, sent := t.seats[0].down.bytes, 0
	for session := uint32(100); session < 300; session++ {
		p, err := lockstep.NewPeer(lockstep.PeerConfig{Config: t.cfg.Config, Session: session}, &hellos)
		if err != nil {
			return broken("%v", err)
		}
		p.Tick(t.now)
		for _, hello := range hellos.packets {
			sent += len(hello)
			_ = t.host.Receive(t.now, 0, hello)
		}
		hellos = wirePipe{}
	}
	return t.figure(float64(t.seats[0].down.bytes-before) / float64(sent))
}

func liarInSeatZero(*env) figure {
	t := newLockTable(5)
	t.seats[0].lie = func(h uint64) uint64 { return ^h }
	t.begin(0, 1)
	for i := 2; i < 5; i++ {
		t.run(3 * time.Second)
		t.connect(i)
	}
	t.run(5 * time.Second)
	if t.blame[0] == 0 {
		return broken("the liar wasn't found, though four are against it")
	}
	return t.figure(float64(t.blame[1] + t.blame[2] + t.blame[3] + t.blame[4]))
}

func oldStamps(*env) figure {
	t := newLockTable(3)
	const input, head = 4, 6
	lying := false
	t.seats[2].sends = func(p []byte) []byte {
		if !lying || p[0] != input {
			return p
		}
		_, n := binary.Uvarint(p[head:])
		_, m := binary.Uvarint(p[head+n:])
		stamp := p[head+n+m:]
		binary.LittleEndian.PutUint16(stamp, binary.LittleEndian.Uint16(stamp)-40)
		return p
	}
	t.begin(0, 1, 2)
	t.run(15 * time.Second)
	honest := t.host.Delay()
	lying = true
	t.run(30 * time.Second)
	return t.figure(float64(t.host.Delay() - honest))
}

func silentHost(*env) figure {
	t := newLockTable(2)
	t.begin(0, 1)
	p, began := t.seats[0].peer, t.now
	for ; p.Err() == nil && t.now < began+2*time.Minute; t.now += 10 * time.Millisecond {
		p.Tick(t.now)
	}
	return t.figure((t.now - began).Seconds())
}

func damagedReplays(e *env) figure {
	t := newLockTable(2)
	var out bytes.Buffer
	t.seats[0].record, t.err = lockstep.NewRecorder(&out, t.cfg.Config, []byte("map"))
	if t.err != nil {
		return broken("%v", t.err)
	}
	t.begin(0, 1)
	t.run(20 * time.Second)
	if err := t.seats[0].record.Close(); err != nil {
		return broken("%v", err)
	}
	file := out.Bytes()
	want, err := hashesOf(file)
	if err != nil || len(want) < 300 {
		return broken("%d turns, %v", len(want), err)
	}
	unnoticed := 0
	step := 1
	if e.quick {
		step = 7
	}
	for at := 0; at < len(file); at += step {
		file[at] ^= 1 << (at % 8)
		got, err := hashesOf(file)
		for i, h := range got {
			if err == nil && (i >= len(want) || h != want[i]) {
				unnoticed++
				break
			}
		}
		file[at] ^= 1 << (at % 8)
	}
	return t.figure(float64(unnoticed))
}

// hashesOf is what a replay file says of its turns.
func hashesOf(file []byte) (hashes []uint64, err error) {
	r, err := lockstep.OpenReplay(bytes.NewReader(file), int64(len(file)), 0)
	if err != nil {
		return nil, err
	}
	for {
		_, hash, err := r.Next()
		if err == io.EOF {
			return hashes, nil
		}
		if err != nil {
			return hashes, err
		}
		hashes = append(hashes, hash)
	}
}
