package session_test

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/session"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// dark cuts Ann's path, both ways, until light.
func (r *rig) dark() {
	r.world.Cut(r.world.Host("Ann"), r.world.Host("server1"))
	r.world.Cut(r.world.Host("server1"), r.world.Host("Ann"))
}

func (r *rig) light() {
	r.world.Join(r.world.Host("Ann"), r.world.Host("server1"))
	r.world.Join(r.world.Host("server1"), r.world.Host("Ann"))
}

// TestDarkInLogin: when the path goes dark in the middle of a login, of the first dial or of one that takes over, that is no word of the game's:
// the player comes when there is a path again, however long that takes.
func TestDarkInLogin(t *testing.T) {
	for _, again := range []bool{false, true} {
		for _, dark := range []time.Duration{2 * time.Second, 14 * time.Second, 18 * time.Second, 45 * time.Second} {
			var r *rig
			armed := !again
			r = newRig(t, 1, netsim.Settings{Lag: 50 * time.Millisecond}, func(r *rig) {
				r.refuse = func(name string) error {
					if name == "Ann" && armed {
						armed = false
						r.dark()
						r.world.At(r.world.Now()+dark, func() { r.light() })
					}
					return nil
				}
			})
			if again {
				r.world.RunUntil(3 * time.Second)
				require.Equal(t, []string{"new"}, r.of("Ann"))
				armed = true
				r.world.Host("Ann").Rebind()
			}
			r.world.RunUntil(75 * time.Second)
			require.Nil(t, r.world.Failure())
			require.NoError(t, r.clients["Ann"].Err(), "again %v, dark for %v", again, dark)
			require.NotNil(t, r.clients["Ann"].Driver())
			require.NotEmpty(t, r.of("Ann"))
			here, away := r.players.Len()
			require.Equal(t, []int{2, 0}, []int{here, away}, "again %v, dark for %v: %v", again, dark, r.told)
			require.Contains(t, []string{"new", "back"}, r.of("Ann")[len(r.of("Ann"))-1])
		}
	}
}

// TestLeaveInTheDark: who has closed the connection doesn't come back by itself, though the server can't hear it, and whether or not a dial is under way.
func TestLeaveInTheDark(t *testing.T) {
	for _, darkFor := range []time.Duration{0, 200 * time.Millisecond, time.Second} {
		r := newRig(t, 1, netsim.Settings{Lag: 50 * time.Millisecond}, nil)
		r.world.RunUntil(3 * time.Second)
		ann := r.world.Host("Ann")
		r.dark()
		ann.Rebind()
		r.world.RunUntil(r.world.Now() + darkFor)
		r.clients["Ann"].conn.CloseWithReason("enough")
		r.world.RunUntil(r.world.Now() + time.Second)
		r.light()
		r.world.RunUntil(60 * time.Second)
		require.Nil(t, r.world.Failure())
		require.NotContains(t, r.of("Ann"), "back", "dark for %v", darkFor)
		require.Len(t, r.joins["Ann"], 1, "dark for %v", darkFor)
		require.ErrorIs(t, r.clients["Ann"].Err(), session.ErrLeft)
	}
}

// TestMaxAwayWithin: the bound holds when the hook that tells of who is gone ends other connections.
func TestMaxAwayWithin(t *testing.T) {
	var conns []*driver.Conn
	var players *session.Players[int]
	var err error
	n := 0
	players, err = session.NewPlayers(session.Config[int]{
		MaxAway: 2,
		ID:      func(*driver.Conn) string { n++; return fmt.Sprint(n) },
		New:     func(*driver.Conn) int { return n },
		Gone: func(int, netconn.CloseResult) {
			if len(conns) > 0 {
				c := conns[0]
				conns = conns[1:]
				players.Closed(c, netconn.CloseResult{Code: netconn.TimedOut})
			}
		},
	})
	require.NoError(t, err)
	for range 20 {
		c := &driver.Conn{Conn: &netconn.Conn{}}
		players.Joined(c)
		conns = append(conns, c)
	}
	for len(conns) > 0 {
		c := conns[0]
		conns = conns[1:]
		players.Closed(c, netconn.CloseResult{Code: netconn.TimedOut})
		_, away := players.Len()
		require.LessOrEqual(t, away, 2)
	}
}

// TestForgottenTick: players that are away don't stay for ever when nobody calls Tick.
func TestForgottenTick(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, func(r *rig) { r.config.Keep, r.noTick = 10*time.Second, true })
	r.world.RunUntil(3 * time.Second)
	r.world.Host("Ann").Crash(90 * time.Second)
	r.world.RunUntil(120 * time.Second)
	require.Nil(t, r.world.Failure())
	require.Equal(t, []string{"new", "away", "gone", "new"}, r.of("Ann"))

	r = newRig(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, func(r *rig) { r.config.Keep, r.noTick = 10*time.Second, true })
	r.world.RunUntil(3 * time.Second)
	r.world.Host("Ann").Crash(time.Hour)
	r.world.RunUntil(50 * time.Second)
	require.Equal(t, []string{"new", "away"}, r.of("Ann"))
	require.NoError(t, r.clients["Bob"].Close())
	r.world.RunUntil(51 * time.Second)
	require.Equal(t, []string{"new", "away", "gone"}, r.of("Ann"), "another one's end tells the time, too")
}

// TestClockSetBack: a Redialer whose clock was set back while it waits for the next dial dials as ever.
func TestClockSetBack(t *testing.T) {
	full := true
	r := newRig(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, func(r *rig) {
		r.refuse = func(name string) error {
			if full && name == "Ann" {
				return driver.ErrFull
			}
			return nil
		}
	})
	for r.dials < 4 || r.clients["Ann"].Driver() != nil {
		r.world.RunUntil(r.world.Now() + 10*time.Millisecond)
	}
	full, r.clients["Ann"].back = false, time.Hour
	r.world.RunUntil(12 * time.Second)
	require.Nil(t, r.world.Failure())
	require.Equal(t, []string{"new"}, r.of("Ann"))
}

// TestLeaveWhileItChanges: a connection that the game closes just when another takes its place is the game's leave, whichever of the two it closes and
// however; but closing the former one in Joined isn't.
func TestLeaveWhileItChanges(t *testing.T) {
	for name, c := range map[string]struct {
		leave func(former, conn *driver.Conn)
		left  bool
	}{
		"the new one":          {func(_, conn *driver.Conn) { conn.CloseWithReason("enough") }, true},
		"the new one, at once": {func(_, conn *driver.Conn) { conn.Abort(conn.Now(), "enough") }, true},
		"both":                 {func(former, conn *driver.Conn) { former.CloseWithReason("enough"); conn.CloseWithReason("enough") }, true},
		"the former":           {func(former, _ *driver.Conn) { former.CloseWithReason("another") }, false},
		"the former, at once":  {func(former, _ *driver.Conn) { former.Abort(former.Now(), "another") }, false},
	} {
		r := newRig(t, 1, netsim.Settings{Lag: 50 * time.Millisecond}, unproven)
		r.world.RunUntil(3 * time.Second)
		ann := r.clients["Ann"]
		former := ann.conn
		r.joined = func(conn *driver.Conn) {
			if conn != former {
				c.leave(former, conn)
			}
		}
		ann.Redial()
		r.world.RunUntil(30 * time.Second)
		require.Nil(t, r.world.Failure(), name)
		require.Len(t, r.joins["Ann"], 2, name)
		if !c.left {
			require.NoError(t, ann.Err(), name)
			continue
		}
		require.ErrorIs(t, ann.Err(), session.ErrLeft, name)
		require.Nil(t, ann.Driver(), name)
	}
}

// TestEndsWhileADialIsUnderWay: what is for good isn't undone by a dial that was begun before.
func TestEndsWhileADialIsUnderWay(t *testing.T) {
	for name, end := range map[string]func(r *rig){
		"left at once": func(r *rig) { c := r.clients["Ann"].conn; c.Abort(c.Now(), "enough") },
		"left":         func(r *rig) { r.clients["Ann"].conn.CloseWithReason("enough") },
	} {
		r := newRig(t, 1, netsim.Settings{Lag: 50 * time.Millisecond}, nil)
		r.world.RunUntil(3 * time.Second)
		r.dark()
		r.world.Host("Ann").Rebind()
		r.world.RunUntil(4 * time.Second)
		require.Equal(t, 2, r.dials, name)
		end(r)
		r.world.RunUntil(5 * time.Second)
		r.light()
		r.world.RunUntil(40 * time.Second)
		require.Nil(t, r.world.Failure(), name)
		require.ErrorIs(t, r.clients["Ann"].Err(), session.ErrLeft, name)
		require.Len(t, r.joins["Ann"], 1, name)
	}
}

// TestRedialInsteadOfADial: Redial doesn't wait for a dial that nobody has answered.
func TestRedialInsteadOfADial(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, nil)
	r.world.RunUntil(3 * time.Second)
	r.dark()
	r.world.RunUntil(4 * time.Second)
	under := r.dials
	r.clients["Ann"].Redial()
	r.world.RunUntil(4*time.Second + 200*time.Millisecond)
	require.Equal(t, under+1, r.dials)
}

// TestKickedWithManyWords: an end is for good however much the game says about it.
func TestKickedWithManyWords(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, nil)
	r.world.RunUntil(3 * time.Second)
	for p, c := range r.players.All {
		if p.name == "Ann" {
			c.CloseWithError(fmt.Errorf("%w: %w", driver.ErrKicked, errors.New(string(make([]byte, 1<<20)))))
		}
	}
	r.world.RunUntil(30 * time.Second)
	require.Equal(t, []string{"new", "gone"}, r.of("Ann"))
	require.ErrorIs(t, r.clients["Ann"].Err(), driver.ErrKicked)
}

// TestCloseFromWithin: a Redialer that is closed by what it calls is closed: nothing of it dials, joins or holds a socket any more.
func TestCloseFromWithin(t *testing.T) {
	for _, where := range []string{"Dial", "Joined", "Closed", "Failed"} {
		var r *session.Redialer
		var drivers []*driver.Driver
		closeIn := func(here string) {
			if where == here {
				require.NoError(t, r.Close())
			}
		}
		now := time.Unix(1_700_000_000, 0)
		srv, err := driver.Listen("127.0.0.1:0", driver.Config{Link: driver.PlainSalted{}, Clock: func() time.Time { return now }})
		require.NoError(t, err)
		r, err = session.NewRedialer(session.RedialConfig{
			Dial: func() (*driver.Driver, error) {
				closeIn("Dial")
				if where == "Failed" {
					return nil, errors.New("no token")
				}
				d, err := driver.Dial(srv.LocalAddr().String(), driver.Config{Link: driver.PlainSalted{}, Clock: func() time.Time { return now },
					Joined: func(c *driver.Conn) {
						if closeIn("Joined"); where == "Closed" {
							c.Abort(c.Now(), "enough")
						}
					},
					Closed: func(*driver.Conn, netconn.CloseResult) { closeIn("Closed") }})
				drivers = append(drivers, d)
				return d, err
			},
			Failed: func(error) { closeIn("Failed") },
		})
		require.NoError(t, err)
		tick := func() {
			now = now.Add(20 * time.Millisecond)
			srv.TickDispatch(now)
			srv.TickFlush(now)
			r.TickDispatch(now)
			r.TickFlush(now)
		}
		for i := 0; r.Err() == nil && i < 3000; i++ { // loopback is quick, but not at once
			time.Sleep(time.Millisecond)
			tick()
		}
		require.ErrorIs(t, r.Err(), session.ErrLeft, where)
		dialed := len(drivers)
		for range 100 {
			tick()
		}
		require.Nil(t, r.Driver(), where)
		require.Len(t, drivers, dialed, where)
		for _, d := range drivers {
			require.ErrorIs(t, d.Rebind(nilSocket{}), net.ErrClosed, "%s: a driver that nobody closes", where)
		}
		require.NoError(t, srv.Close())
	}
}

// nilSocket is one that is never used.
type nilSocket struct{ udp.Socket }

// TestReplacedByADialThatEnds: when the server replaces the connection by one that it ends at once, for a while, the Redialer dials on: it was its own dial
// that replaced the connection.
func TestReplacedByADialThatEnds(t *testing.T) {
	for _, loss := range []float64{0, 20} {
		for seed := range uint64(20) {
			r := newRig(t, seed, netsim.Settings{Loss: loss, Lag: 50 * time.Millisecond}, func(r *rig) {
				unproven(r)
				ends := 3
				r.config.Rejoin = func(c *driver.Conn, p *player) {
					if r.tell("back", p); ends > 0 {
						ends--
						c.CloseWithReason("not now")
					}
				}
				r.config.Keeps = func(netconn.CloseResult) bool { return true }
			})
			r.world.RunUntil(3 * time.Second)
			r.clients["Ann"].Redial()
			r.world.RunUntil(60 * time.Second)
			require.Nil(t, r.world.Failure())
			ann := r.clients["Ann"]
			require.NoError(t, ann.Err(), "loss %v, seed %d", loss, seed)
			require.Equal(t, ann.conn.Driver(), ann.Driver(), "the one that joined last")
			require.False(t, ann.conn.Closed())
			here, away := r.players.Len()
			require.Equal(t, []int{2, 0}, []int{here, away}, "loss %v, seed %d: %v", loss, seed, r.told)
		}
	}
}

// TestRedialEveryTick: a game that calls Redial all the time has its connections nevertheless.
func TestRedialEveryTick(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{Lag: 50 * time.Millisecond}, nil)
	r.world.RunUntil(3 * time.Second)
	r.dark()
	r.world.Host("Ann").Rebind()
	for r.world.Now() < 6*time.Second {
		if r.clients["Ann"].Redial(); r.world.Now() > 4*time.Second {
			r.light()
		}
		r.world.RunUntil(r.world.Now() + 10*time.Millisecond)
	}
	require.Nil(t, r.world.Failure())
	require.Greater(t, len(r.joins["Ann"]), 1)
}

// TestForgetAfterRejoin: a player that is back isn't away.
func TestForgetAfterRejoin(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{Lag: 50 * time.Millisecond}, nil)
	r.world.RunUntil(3 * time.Second)
	r.world.Host("Ann").Crash(time.Second)
	r.world.RunUntil(8 * time.Second)
	require.Equal(t, []string{"new", "away", "back"}, r.of("Ann"))
	require.False(t, r.players.Forget("1"))
	require.Equal(t, []string{"new", "away", "back"}, r.of("Ann"))
}

// TestRarePacketsAreNoSilence: nothing is lost and nobody moves, but packets are rarer than Silence from the connection's beginning on.
func TestRarePacketsAreNoSilence(t *testing.T) {
	for _, every := range []time.Duration{400 * time.Millisecond, time.Second, 2 * time.Second} {
		r := newRig(t, 1, netsim.Settings{Lag: 5 * time.Millisecond}, func(r *rig) { r.edit = func(c *driver.Config) { c.KeepAlive = every } })
		r.world.RunUntil(30 * time.Second)
		require.Nil(t, r.world.Failure())
		require.LessOrEqual(t, len(r.joins["Ann"]), 5, "a packet every %v", every)
	}
}
