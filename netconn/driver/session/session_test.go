package session_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/session"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

const serverAddr = "10.0.0.1:7777"

// rig is a server with Players and clients with Redialers in virtual time, and what the server's game was told.
type rig struct {
	t       *testing.T
	world   *simtest.Simulation
	players *session.Players[*player]
	server  *driver.Driver
	link    func(client string) driver.Link // a client's, or the server's for ""
	config  session.Config[*player]
	told    []string
	at      []time.Duration // when it was
	clients map[string]*clientGame
	joins   map[string][]time.Duration // at the client
	refuse  func(name string) error    // a login
	ids     map[string]uint64          // of clients with another identity than theirs
	noTick  bool                       // the server's game forgets it
	dials   int                        // Ann's
	joined  func(c *driver.Conn)       // is told of hers
	edit    func(*driver.Config)       // of a client's dial, or the server's
}

type player struct{ name string }

type serverGame struct{ *rig }

func (g serverGame) Tick(now time.Time) error {
	g.server.TickDispatch(now)
	if !g.noTick {
		g.players.Tick(g.server.Time(now))
	}
	g.server.TickFlush(now)
	return g.server.Err()
}

type clientGame struct {
	*session.Redialer
	conn  *driver.Conn
	back  time.Duration // its clock was set
	every time.Duration // it ticks; 0 is each time
	last  time.Time     // when it did
}

func (g *clientGame) Tick(now time.Time) error {
	if now.Sub(g.last) < g.every {
		return nil
	}
	g.last = now
	g.TickDispatch(now.Add(-g.back))
	g.TickFlush(now.Add(-g.back))
	return nil
}

// tell notes what happened to a player.
func (r *rig) tell(what string, p *player) {
	r.told, r.at = append(r.told, what+" "+p.name), append(r.at, r.world.Now())
}

func newRig(t *testing.T, seed uint64, set netsim.Settings, edit func(*rig)) *rig {
	r := &rig{t: t, clients: map[string]*clientGame{}, joins: map[string][]time.Duration{}}
	names := map[uint64]string{1: "Ann", 2: "Bob"}
	r.config = session.Config[*player]{
		New: func(c *driver.Conn) *player {
			p := &player{names[c.ClientID()]}
			if c.ClientID() == 0 {
				p.name = c.Login().URL
			}
			r.tell("new", p)
			return p
		},
		Rejoin: func(_ *driver.Conn, p *player) { r.tell("back", p) },
		Away:   func(p *player, _ netconn.CloseResult) { r.tell("away", p) },
		Gone:   func(p *player, _ netconn.CloseResult) { r.tell("gone", p) },
	}
	r.link = func(client string) driver.Link {
		if client == "" {
			return driver.Netcode{Key: netcode.Key{1}, TakeOver: true}
		}
		now := uint64(simtest.Epoch.Add(r.world.Now()).Unix())
		id := uint64(1)
		if client == "Bob" {
			id = 2
		}
		if other, ok := r.ids[client]; ok {
			id = other
		}
		token, err := netcode.GenerateConnectToken(netcode.TokenConfig{ClientID: id, Create: now, Expire: now + 60, Timeout: 5,
			Servers: []netip.AddrPort{netip.MustParseAddrPort(serverAddr)}, PrivateKey: netcode.Key{1}})
		require.NoError(t, err)
		return driver.Netcode{Token: token}
	}
	r.world = simtest.NewSimulation(seed, r.boot)
	if edit != nil {
		edit(r)
	}
	r.world.AddHost("server1", true)
	r.world.AddHost("Ann", false)
	r.world.AddHost("Bob", false)
	for _, h := range r.world.Hosts()[1:] {
		require.NoError(t, h.SetNet(set, set))
	}
	return r
}

// over has all use a link, and a player's name be his id; nil is newRig's link.
func (r *rig) over(link driver.Link) {
	if link != nil {
		r.link = func(string) driver.Link { return link }
		r.config.ID = func(c *driver.Conn) string { return c.Login().URL }
	}
}

// boot starts the server, or a client that dials.
func (r *rig) boot(h *simtest.Host) (simtest.Program, error) {
	cfg := driver.Config{Clock: h.Time, Rand: h.Secrets(), Timeout: 20 * time.Second, KeepAlive: 50 * time.Millisecond} // as a game that has something to say
	if r.edit != nil {
		r.edit(&cfg)
	}
	if h.IsServer() {
		var err error
		if r.players, err = session.NewPlayers(r.config); err != nil {
			return nil, err
		}
		if cfg.Socket, err = h.Listen(7777); err != nil {
			return nil, err
		}
		cfg.Link, cfg.Joined, cfg.Closed = r.link(""), r.players.Joined, r.players.Closed
		cfg.Server.Authorize = func(l *control.Login) error {
			if r.refuse != nil {
				return r.refuse(l.URL)
			}
			return nil
		}
		r.server, err = driver.Listen(serverAddr, cfg)
		return serverGame{r}, err
	}
	g := &clientGame{}
	var err error
	g.Redialer, err = session.NewRedialer(session.RedialConfig{Dial: func() (*driver.Driver, error) {
		if h.Name() == "Ann" {
			r.dials++
		}
		cfg := cfg
		cfg.Socket, cfg.Link, cfg.Client.URL = h.Open(), r.link(h.Name()), h.Name()
		cfg.Joined = func(c *driver.Conn) {
			g.conn = c
			r.joins[h.Name()] = append(r.joins[h.Name()], r.world.Now())
			if r.joined != nil && h.Name() == "Ann" {
				r.joined(c)
			}
		}
		return driver.Dial(serverAddr, cfg)
	}})
	r.clients[h.Name()] = g
	return g, err
}

// last is when the server's game was told something of a player last.
func (r *rig) last(what string) time.Duration {
	for i, told := range slices.Backward(r.told) {
		if told == what {
			return r.at[i]
		}
	}
	r.t.Fatalf("never: %s of %v", what, r.told)
	return 0
}

// of is what the server's game was told of a player.
func (r *rig) of(name string) (told []string) {
	for _, s := range r.told {
		if what, ok := strings.CutSuffix(s, " "+name); ok {
			told = append(told, what)
		}
	}
	return told
}

// TestBackWithinASecond: who crashed, was in the dark, or has another address has its player back within a second of being able to send, at a
// round trip of 100 ms; at 5 % loss half of all do, and nobody takes three. Nothing happens to the other player.
func TestBackWithinASecond(t *testing.T) {
	type trouble struct {
		name string
		do   func(r *rig, ann *simtest.Host) (well time.Duration)
	}
	dark := func(d time.Duration, rebind bool) func(r *rig, ann *simtest.Host) time.Duration {
		return func(r *rig, ann *simtest.Host) time.Duration {
			r.dark()
			if rebind {
				ann.Rebind()
			}
			r.world.At(r.world.Now()+d, r.light)
			return r.world.Now() + d
		}
	}
	troubles := []trouble{
		{"another address", func(r *rig, ann *simtest.Host) time.Duration { ann.Rebind(); return r.world.Now() }},
		{"crashed for 1 s", func(r *rig, ann *simtest.Host) time.Duration {
			ann.Crash(time.Second)
			return r.world.Now() + time.Second
		}},
		{"crashed for 40 s", func(r *rig, ann *simtest.Host) time.Duration {
			ann.Crash(40 * time.Second)
			return r.world.Now() + 40*time.Second
		}},
		{"dark for 1 s, another address", dark(time.Second, true)},
		{"dark for 7 s, another address", dark(7*time.Second, true)},
		{"dark for 30 s", dark(30*time.Second, false)},
		{"dark for 90 s, another address", dark(90*time.Second, true)},
	}
	for _, loss := range []float64{0, 5} {
		var all []time.Duration
		for _, c := range troubles {
			var took []time.Duration
			for seed := range uint64(10) {
				r := newRig(t, seed, netsim.Settings{Loss: loss, Lag: 50 * time.Millisecond}, nil)
				r.world.RunUntil(3*time.Second + time.Duration(seed)*7*time.Millisecond)
				require.ElementsMatch(t, []string{"new Ann", "new Bob"}, r.told)
				well := c.do(r, r.world.Host("Ann"))
				r.world.RunUntil(well + 10*time.Second)
				require.Nil(t, r.world.Failure(), "seed %d", seed)
				require.Equal(t, []string{"new"}, r.of("Bob"), "seed %d", seed)
				told := r.of("Ann")
				require.Equal(t, []string{"new", "away", "back"}, told, "%s, loss %v, seed %d", c.name, loss, seed)
				require.Len(t, r.joins["Ann"], 2)
				took = append(took, r.last("back Ann")-well)
			}
			slices.Sort(took)
			t.Logf("%-32s loss %v: %v to %v", c.name, loss, took[0], took[len(took)-1])
			if all = append(all, took...); loss > 0 {
				require.Less(t, took[len(took)-1], 3*time.Second, "%s, loss %v: %v", c.name, loss, took)
				continue
			}
			require.Less(t, took[len(took)-1], time.Second, "%s: %v", c.name, took)
		}
		slices.Sort(all)
		require.Less(t, all[len(all)/2], time.Second, "loss %v: %v", loss, all)
	}
}

// TestHeardAgain: a short silence costs nothing: the dial that was begun is given up when the connection is heard before the server has
// answered, and the player stays where it is.
func TestHeardAgain(t *testing.T) {
	for seed := range uint64(10) {
		r := newRig(t, seed, netsim.Settings{Lag: 50 * time.Millisecond}, nil)
		r.world.RunUntil(3 * time.Second)
		for range 20 {
			r.world.Host("server1").Pause(800 * time.Millisecond)
			r.world.RunUntil(r.world.Now() + 3*time.Second)
		}
		require.Nil(t, r.world.Failure())
		require.ElementsMatch(t, []string{"new Ann", "new Bob"}, r.told, "seed %d", seed)
	}
}

// TestGone: who leaves, is kicked, or is away for too long is gone, once; whoever comes then is new.
func TestGone(t *testing.T) {
	settings := netsim.Settings{Lag: 20 * time.Millisecond}
	for name, c := range map[string]struct {
		edit func(r *rig)
		do   func(r *rig, ann *clientGame)
		told []string
		err  error
		text string
	}{
		"left":   {do: func(_ *rig, ann *clientGame) { ann.conn.Close(ann.conn.Now(), "enough") }, told: []string{"new", "gone"}, err: session.ErrLeft, text: session.ErrLeft.Error()},
		"closed": {do: func(r *rig, ann *clientGame) { require.NoError(r.t, ann.Close()) }, told: []string{"new", "gone"}, err: session.ErrLeft, text: session.ErrLeft.Error()},
		"kicked": {do: func(r *rig, _ *clientGame) {
			for p, c := range r.players.All {
				if p.name == "Ann" {
					c.CloseWithError(fmt.Errorf("%w: team kill", driver.ErrKicked))
				}
			}
		}, told: []string{"new", "gone"}, err: driver.ErrKicked, text: "session: the connection ended: closed by the peer: kicked: team kill"},
		"away too long": {edit: func(r *rig) { r.config.Keep = 10 * time.Second },
			do: func(r *rig, _ *clientGame) { r.world.Host("Ann").Crash(40 * time.Second) }, told: []string{"new", "away", "gone", "new"}},
		"forgotten": {do: func(r *rig, _ *clientGame) {
			require.False(r.t, r.players.Forget("1"), "it is here")
			r.world.Host("Ann").Crash(40 * time.Second)
			r.world.RunUntil(r.world.Now() + 25*time.Second)
			require.True(r.t, r.players.Forget("1"))
			require.False(r.t, r.players.Forget("1"))
		}, told: []string{"new", "away", "gone", "new"}},
		"for ever none": {edit: func(r *rig) { r.config.Keeps = func(netconn.CloseResult) bool { return false } },
			do: func(r *rig, _ *clientGame) { r.world.Host("Ann").Crash(time.Second) }, told: []string{"new", "gone", "new"}},
	} {
		r := newRig(t, 1, settings, c.edit)
		r.world.RunUntil(3 * time.Second)
		c.do(r, r.clients["Ann"])
		r.world.RunUntil(60 * time.Second)
		require.Nil(t, r.world.Failure(), name)
		require.Equal(t, c.told, r.of("Ann"), name)
		require.Equal(t, []string{"new"}, r.of("Bob"), name)
		if c.err != nil {
			require.ErrorIs(t, r.clients["Ann"].Err(), c.err, name)
			require.Equal(t, c.text, r.clients["Ann"].Err().Error(), "%s: one line", name)
			require.Nil(t, r.clients["Ann"].Driver(), name)
		} else {
			require.NoError(t, r.clients["Ann"].Err(), name)
		}
	}
}

// TestMaxAway: beyond the bound who is away longest is gone.
func TestMaxAway(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, func(r *rig) { r.config.MaxAway = 1 })
	r.world.RunUntil(3 * time.Second)
	r.world.Host("Bob").Crash(time.Hour)
	r.world.RunUntil(4 * time.Second)
	r.world.Host("Ann").Crash(time.Hour)
	r.world.RunUntil(60 * time.Second)
	require.Equal(t, []string{"new", "away", "gone"}, r.of("Bob"))
	require.Equal(t, []string{"new", "away"}, r.of("Ann"))
	here, away := r.players.Len()
	require.Equal(t, []int{0, 1}, []int{here, away})
}

// unproven has clients of the salted link, which the login tells apart.
func unproven(r *rig) { r.over(driver.PlainSalted{}) }

// TestOtherLinks: where the link knows nobody, the login's word decides, and the former connection goes when the new one has joined. The
// goodbye of the former one doesn't take the player along.
func TestOtherLinks(t *testing.T) {
	for seed := range uint64(20) {
		r := newRig(t, seed, netsim.Settings{Loss: 5, LagMin: 30 * time.Millisecond, LagMax: 60 * time.Millisecond}, unproven)
		r.world.RunUntil(3 * time.Second)
		r.clients["Ann"].Redial() // both are well
		r.world.RunUntil(8 * time.Second)
		r.world.Host("Ann").Rebind()
		r.world.RunUntil(16 * time.Second)
		r.world.Host("Ann").Crash(time.Second)
		r.world.RunUntil(60 * time.Second)
		require.Nil(t, r.world.Failure())
		require.Equal(t, []string{"new", "back", "back", "back"}, r.of("Ann"), "seed %d", seed)
		require.Equal(t, []string{"new"}, r.of("Bob"))
		here, away := r.players.Len()
		require.Equal(t, []int{2, 0}, []int{here, away})
	}
}

// TestRefuse: another way is to refuse who is here already, until its connection has ended.
func TestRefuse(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, func(r *rig) {
		unproven(r)
		r.config.Refuse = true
	})
	r.world.RunUntil(3 * time.Second)
	r.world.Host("Ann").Crash(time.Second)
	r.world.RunUntil(60 * time.Second)
	require.Equal(t, []string{"new", "away", "back"}, r.of("Ann"))
	require.Greater(t, r.last("back Ann"), 23*time.Second, "the former connection times out after 20 s")
	require.Greater(t, len(r.joins["Ann"]), 3)
}

// TestRefusedLogins: a Redialer tries again, ever more seldom, where that may help, and not where it can't.
func TestRefusedLogins(t *testing.T) {
	for _, c := range []struct {
		why   error
		again bool
	}{{driver.ErrFull, true}, {errors.New("not now"), true}, {driver.ErrBanned, false}} {
		asked := 0
		r := newRig(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, func(r *rig) {
			r.refuse = func(name string) error {
				if name == "Ann" && (!c.again || asked < 5) {
					asked++
					return c.why
				}
				return nil
			}
		})
		r.world.RunUntil(60 * time.Second)
		if c.again {
			require.Equal(t, 5, asked)
			require.Equal(t, []string{"new"}, r.of("Ann"))
			require.Greater(t, r.last("new Ann"), 7750*time.Millisecond, "250 ms, 500, 1000, 2000, 4000")
			continue
		}
		require.Equal(t, 1, asked)
		require.ErrorIs(t, r.clients["Ann"].Err(), c.why)
	}
}

// TestPlayersEndWithin: hooks that end a connection at once find their player, and nothing is left of it.
func TestPlayersEndWithin(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, func(r *rig) {
		r.config.New = func(c *driver.Conn) *player {
			p := &player{fmt.Sprint("of ", c.ClientID())}
			r.tell("new", p)
			c.Abort(c.Now(), "no")
			return p
		}
	})
	r.world.RunUntil(2 * time.Second)
	require.Nil(t, r.world.Failure())
	require.Equal(t, len(r.of("of 1"))/2, strings.Count(strings.Join(r.of("of 1"), " "), "gone"))
	require.NotEmpty(t, r.of("of 1"))
	here, away := r.players.Len()
	require.Equal(t, []int{0, 0}, []int{here, away})
}

// TestClosedWhileItIsLookedUp: a connection that the game's ID, or the Gone of another player, ends as it joins leaves its player away, not with a dead
// connection for ever.
func TestClosedWhileItIsLookedUp(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, func(r *rig) {
		joins := 0
		r.config.ID = func(c *driver.Conn) string {
			if c.ClientID() == 1 {
				if joins++; joins > 1 {
					c.Abort(c.Now(), "no")
				}
			}
			return fmt.Sprint(c.ClientID())
		}
		r.config.Keep = 5 * time.Second
		r.config.Keeps = func(netconn.CloseResult) bool { return true }
	})
	r.world.RunUntil(2 * time.Second)
	r.world.Host("Ann").Crash(time.Second)
	r.world.RunUntil(25 * time.Second)
	require.Nil(t, r.world.Failure())
	require.NoError(t, r.world.Host("Ann").SetNet(netsim.Settings{Loss: 100}, netsim.Settings{Loss: 100}))
	r.world.RunUntil(40 * time.Second)
	here, away := r.players.Len()
	require.Equal(t, []int{1, 0}, []int{here, away}, "%v", r.told)
	require.Equal(t, "gone", r.of("Ann")[len(r.of("Ann"))-1])
}

// TestBriefConnections: a server that lets a client in and ends its connection at once, for ever, is dialed more and more rarely, as one that refuses
// it is; after a connection that lasts the next dial comes soon again.
func TestBriefConnections(t *testing.T) {
	brief := true
	r := newRig(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, func(r *rig) {
		join := func(c *driver.Conn) {
			if c.ClientID() == 1 && brief {
				c.Abort(c.Now(), "no")
			}
		}
		r.config.New = func(c *driver.Conn) *player {
			join(c)
			return &player{"Ann"}
		}
		r.config.Rejoin = func(c *driver.Conn, _ *player) { join(c) }
	})
	r.world.RunUntil(time.Minute)
	require.Nil(t, r.world.Failure())
	require.Less(t, r.dials, 20, "in a minute")
	brief = false
	r.world.RunUntil(80 * time.Second)
	dials := r.dials
	conns := r.clients["Ann"].conn
	require.False(t, conns.Closed())
	for c := range r.server.Conns {
		if c.ClientID() == 1 {
			c.Abort(c.Now(), "restart")
		}
	}
	r.world.RunUntil(r.world.Now() + time.Second)
	require.Equal(t, dials+1, r.dials)
	require.False(t, r.clients["Ann"].conn.Closed())
}

// TestBriefConnectionsDouble: the pauses after connections that a server ends soon double, and no more than that.
func TestBriefConnectionsDouble(t *testing.T) {
	var ends []time.Duration
	r := newRig(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, func(r *rig) {
		r.joined = func(c *driver.Conn) {
			r.world.At(r.world.Now()+300*time.Millisecond, func() {
				for c := range r.server.Conns {
					if c.ClientID() == 1 {
						ends = append(ends, r.world.Now())
						c.Abort(c.Now(), "restart")
					}
				}
			})
		}
	})
	r.world.RunUntil(10 * time.Second)
	require.Nil(t, r.world.Failure())
	joins := r.joins["Ann"]
	for i, pause := 0, time.Second/2; i < 3; i, pause = i+1, 2*pause { // 250 ms, and the dial
		require.Less(t, joins[i+1]-ends[i], pause+pause/2, "%d: %v %v", i, joins, ends)
	}
}

// TestSettings: what can't work is an error that names it.
func TestSettings(t *testing.T) {
	_, err := session.NewPlayers(session.Config[int]{})
	require.ErrorIs(t, err, session.ErrConfig)
	_, err = session.NewPlayers(session.Config[int]{New: func(*driver.Conn) int { return 0 }, Keep: -1})
	require.ErrorIs(t, err, session.ErrConfig)
	_, err = session.NewRedialer(session.RedialConfig{})
	require.ErrorIs(t, err, session.ErrConfig)
	_, err = session.NewRedialer(session.RedialConfig{Dial: func() (*driver.Driver, error) { return nil, nil }, Silence: -1})
	require.ErrorIs(t, err, session.ErrConfig)
}

// TestDialsThatFail: a Dial that has no token yet is called again in the next tick, one that fails after Pause, and one that is refused after twice the time of before.
func TestDialsThatFail(t *testing.T) {
	dials, told := 0, 0
	var why error
	r, err := session.NewRedialer(session.RedialConfig{
		Pause:  time.Second,
		Dial:   func() (*driver.Driver, error) { dials++; return nil, why },
		Failed: func(error) { told++ },
	})
	require.NoError(t, err)
	now := simtest.Epoch
	for _, v := range []struct {
		why         error
		after       time.Duration
		dials, told int
	}{
		{nil, time.Second, 10, 0},
		{errors.New("no network"), 10 * time.Second, 10, 10},
		{driver.ErrDenied, 17 * time.Second, 5, 5}, // and 2 s, 4, 5, 5
		{errors.New("no network"), 10 * time.Second, 6, 6},
		{nil, time.Second, 10, 0},
	} {
		why, dials, told = v.why, 0, 0
		for end := now.Add(v.after); now.Before(end); now = now.Add(100 * time.Millisecond) {
			r.TickDispatch(now)
			r.TickFlush(now)
		}
		require.Equal(t, []int{v.dials, v.told}, []int{dials, told}, "%v", v.why)
		require.Nil(t, r.Driver())
		require.NoError(t, r.Err())
	}
}
