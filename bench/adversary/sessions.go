package main

import (
	"bytes"
	"net/netip"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/session"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

func init() {
	register(
		attack{area: "sessions", name: "back: crash", promise: "a player whose client crashed is back within a second of dialing, at a round trip of 100 ms", bound: atMost(1000, "ms, the slowest"),
			run: func(e *env) figure {
				return returns(e, func(w *meeting, ann *simtest.Host) time.Duration {
					ann.Crash(time.Second)
					return w.Now() + time.Second
				})
			}},
		attack{area: "sessions", name: "back: another address", promise: "a player whose address changed is back within a second", bound: atMost(1000, "ms, the slowest"),
			run: func(e *env) figure {
				return returns(e, func(w *meeting, ann *simtest.Host) time.Duration { ann.Rebind(); return w.Now() })
			}},
		attack{area: "sessions", name: "back: darkness", promise: "a player who was in the dark for 1 to 90 s, and has another address then, is back within a second", bound: atMost(1000, "ms, the slowest"),
			run: func(e *env) figure {
				return returns(e, func(w *meeting, ann *simtest.Host) time.Duration {
					server, d := w.Host("server"), time.Duration(1+e.rng.IntN(90))*time.Second
					w.Cut(ann, server)
					ann.Rebind()
					w.At(w.Now()+d, func() { w.Join(ann, server) })
					return w.Now() + d
				})
			}},
		attack{area: "sessions", name: "takeover by an observer", promise: "who repeats a player's requests takes nobody's place", bound: none("players lost"), run: observedTakeover},
		attack{area: "sessions", name: "two devices, one player", promise: "two clients that take each other's place again and again are one player on the server", bound: atMost(1, "players at most"), run: twoDevices},
		attack{area: "sessions", name: "players away", promise: "players that come and crash are kept up to MaxAway, and each is gone once", bound: atMost(16, "players kept"), run: manyAway},
	)
}

// meeting is a server with Players and clients with Redialers.
type meeting struct {
	*simtest.Simulation
	server  *driver.Driver
	players *session.Players[uint64]
	ids     map[string]uint64 // by host
	cfg     session.Config[uint64]
	made    int // players
	back    []time.Duration
	gone    map[uint64]int
	clients map[string]*session.Redialer
	err     error
}

// newMeeting is one with clients of these ids.
func newMeeting(e *env, ids ...uint64) *meeting {
	e.seed++
	m := &meeting{ids: map[string]uint64{}, gone: map[uint64]int{}, clients: map[string]*session.Redialer{}}
	m.cfg = session.Config[uint64]{
		New:    func(c *driver.Conn) uint64 { m.made++; return c.ClientID() },
		Rejoin: func(*driver.Conn, uint64) { m.back = append(m.back, m.Now()) },
		Gone:   func(id uint64, _ netconn.CloseResult) { m.gone[id]++ },
	}
	m.Simulation = simtest.NewSimulation(e.seed, m.boot)
	m.AddHost("server", true)
	for i, id := range ids {
		m.add(string(rune('a'+i)), id)
	}
	return m
}

func (m *meeting) add(name string, id uint64) {
	m.ids[name] = id
	set := netsim.Settings{Lag: 50 * time.Millisecond}
	if err := m.AddHost(name, false).SetNet(set, set); err != nil {
		m.err = err
	}
}

// token is a fresh one.
func (m *meeting) token(id uint64) (netcode.Token, error) {
	now := uint64(simtest.Epoch.Add(m.Now()).Unix())
	return netcode.GenerateConnectToken(netcode.TokenConfig{ClientID: id, Create: now, Expire: now + 600, Timeout: 5, Servers: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:7777")}, PrivateKey: gameKey})
}

// boot starts the server, or a client that dials.
func (m *meeting) boot(h *simtest.Host) (simtest.Program, error) {
	cfg := driver.Config{Clock: h.Time, Rand: h.Secrets(), KeepAlive: 50 * time.Millisecond, Timeout: 20 * time.Second, MaxConns: 64}
	if h.IsServer() {
		var err error
		if m.players, err = session.NewPlayers(m.cfg); err != nil {
			return nil, err
		}
		if cfg.Socket, err = h.Listen(gamePort); err != nil {
			return nil, err
		}
		cfg.Link, cfg.Joined, cfg.Closed = driver.Netcode{Key: gameKey, TakeOver: true}, m.players.Joined, m.players.Closed
		m.server, err = driver.Listen("10.0.0.1:7777", cfg)
		return hosting{m}, err
	}
	r, err := session.NewRedialer(session.RedialConfig{Dial: func() (*driver.Driver, error) {
		token, err := m.token(m.ids[h.Name()])
		if err != nil {
			return nil, err
		}
		cfg := cfg
		cfg.Socket, cfg.Link = h.Open(), driver.Netcode{Token: token}
		return driver.Dial("", cfg)
	}})
	m.clients[h.Name()] = r
	return calling{r}, err
}

// hosting is the server's program, calling a client's.
type (
	hosting struct{ *meeting }
	calling struct{ *session.Redialer }
)

// Tick is simtest's.
func (p hosting) Tick(now time.Time) error {
	p.server.TickDispatch(now)
	p.players.Tick(p.server.Time(now))
	p.server.TickFlush(now)
	return p.server.Err()
}

// Tick is simtest's.
func (p calling) Tick(now time.Time) error {
	p.TickDispatch(now)
	p.TickFlush(now)
	return nil
}

// returns has something happen to a player's client, and says how long after it could send again it was back.
func returns(e *env, trouble func(m *meeting, ann *simtest.Host) (well time.Duration)) figure {
	var took []time.Duration
	for range e.pick(5, 100) {
		m := newMeeting(e, 1, 2)
		m.RunUntil(3*time.Second + time.Duration(e.rng.Int64N(int64(time.Second))))
		well := trouble(m, m.Host("a"))
		m.RunUntil(well + 20*time.Second)
		switch {
		case m.err != nil || m.Failure() != nil:
			return broken("%v, %v", m.err, m.Failure())
		case m.made != 2 || len(m.back) != 1 || len(m.gone) != 0:
			return broken("%d players made, %d came back, %d are gone, of 2", m.made, len(m.back), len(m.gone))
		}
		took = append(took, m.back[0]-well)
	}
	slices.Sort(took)
	e.notef("%v to %v, half of them %v at most", took[0], took[len(took)-1], took[len(took)/2])
	return figure{value: float64(took[len(took)-1].Milliseconds())}
}

// observedTakeover has an observer without the keys send requests of fresh tokens of the players from everywhere, and those that were used.
func observedTakeover(e *env) figure {
	m := newMeeting(e, 1, 2)
	m.add("z", 3)
	m.RunUntil(2 * time.Second)
	from := m.Host("z").Open()
	for range e.pick(200, 5000) {
		token, err := m.token(uint64(1 + e.rng.IntN(2)))
		if err != nil {
			return broken("%v", err)
		}
		var seen request
		client, err := netcode.NewClient(netcode.ClientConfig{Handler: &seen})
		if err == nil {
			err = client.Connect(m.Now(), token)
		}
		if err != nil {
			return broken("%v", err)
		}
		if _, err := from.WriteBatch([]udp.Message{{Buf: seen.p, Addr: netip.MustParseAddrPort("10.0.0.1:7777")}}); err != nil {
			return broken("%v", err)
		}
		m.RunUntil(m.Now() + 20*time.Millisecond)
	}
	if m.err != nil || m.Failure() != nil {
		return broken("%v, %v", m.err, m.Failure())
	}
	here, away := m.players.Len()
	e.notef("%d players here, %d away; %d connections were replaced", here, away, len(m.back))
	return figure{value: float64(len(m.back) + 3 - here)}
}

// request is a client's handler that keeps the first packet.
type request struct{ p []byte }

// Send is netcode's.
func (r *request) Send(_ netip.AddrPort, p []byte) {
	if r.p == nil {
		r.p = bytes.Clone(p)
	}
}

// StateChanged is netcode's.
func (*request) StateChanged(netcode.State, netcode.State) {}

// Payload is netcode's.
func (*request) Payload([]byte) {}

// twoDevices has two clients of one player dial again and again.
func twoDevices(e *env) figure {
	m := newMeeting(e, 7, 7)
	most := 0
	for range e.pick(50, 1000) {
		for _, r := range m.clients {
			if r.Err() != nil { // it was replaced: its player starts it again
				m.Host("a").Crash(0)
				m.Host("b").Crash(0)
				break
			}
			r.Redial()
		}
		m.RunUntil(m.Now() + time.Duration(100+e.rng.IntN(1400))*time.Millisecond)
		if m.players == nil {
			continue
		}
		here, away := m.players.Len()
		most = max(most, here+away)
	}
	if m.err != nil || m.Failure() != nil {
		return broken("%v, %v", m.err, m.Failure())
	}
	if m.made > 1+m.gone[7] {
		return broken("%d players made, %d gone", m.made, m.gone[7])
	}
	e.notef("the other came %d times", len(m.back))
	if len(m.back) == 0 {
		return broken("nobody came back")
	}
	return figure{value: float64(most)}
}

// manyAway has many players come and crash for good.
func manyAway(e *env) figure {
	m := newMeeting(e)
	m.cfg.MaxAway = 16
	crowd := e.pick(40, 400)
	for i := range crowd {
		m.add("p", uint64(100+i))
		hosts := m.Hosts()
		h := hosts[len(hosts)-1]
		m.ids[h.Name()] = uint64(100 + i)
		m.RunUntil(m.Now() + time.Second)
		h.Crash(time.Hour)
	}
	m.RunUntil(m.Now() + time.Minute)
	if m.err != nil || m.Failure() != nil {
		return broken("%v, %v", m.err, m.Failure())
	}
	here, away := m.players.Len()
	for id, n := range m.gone {
		if n != 1 {
			return broken("player %d was gone %d times", id, n)
		}
	}
	if here != 0 || m.made != crowd || len(m.gone) != crowd-away {
		return broken("%d here, %d away, %d gone of %d", here, away, len(m.gone), m.made)
	}
	return figure{value: float64(away)}
}
