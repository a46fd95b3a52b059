package browser

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/flight"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/inspect"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// Cart moves around. Its Load changes seldom.
type Cart struct {
	actorrep.Base
	X, Y float64 `net:"q=0.01"`
	Load int32   `net:""`
	Name string  `net:""`
}

type host func(now time.Time) error

func (h host) Tick(now time.Time) error { return h(now) }
func (h host) Close() error             { return nil }

// endOf is the world of an end of a game and the settings of its driver, with a server at 10.0.0.1:7777.
func endOf(h *simtest.Host) (w *actorrep.World, cfg driver.Config, err error) {
	cfg = driver.Config{Clock: h.Time, Rand: h.Secrets(), Link: driver.Netcode{Key: netcode.Key{1}}}
	if h.IsServer() {
		cfg.Socket, err = h.Listen(7777)
		return actorrep.NewServer(actorrep.Config{}), cfg, err
	}
	cfg.Socket = h.Open()
	return actorrep.NewClient(actorrep.Config{}), cfg, nil
}

// write makes a film's page.
func write(t *testing.T, file string, f *flight.Film, v flight.View) {
	out, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, f.WriteHTML(out, v))
	require.NoError(t, out.Close())
}

// film is the page of a game of some players at 5 % loss, in virtual time, and that of its last player's client.
func film(t *testing.T, players int, length time.Duration) (file, client string) {
	var past, last *flight.Recorder
	var carts []*Cart
	names := map[uint32]string{}
	sim := simtest.NewSimulation(5, func(h *simtest.Host) (simtest.Program, error) {
		w, cfg, err := endOf(h)
		if err != nil {
			return nil, err
		}
		if h.IsServer() {
			cfg.Joined = func(c *driver.Conn) {
				cart := &Cart{Name: c.Login().URL, X: float64(len(carts))}
				names[c.ID()] = cart.Name
				cart.SetOwner(w.AddConn(c))
				require.NoError(t, w.Spawn(cart))
				carts = append(carts, cart)
			}
		} else {
			cfg.Client = control.ClientConfig{URL: h.Name()}
		}
		honk := actorrep.MulticastRPC0(func(actorrep.Call, *Cart) error { return nil })
		require.NoError(t, w.Register("Cart", (*Cart)(nil), actorrep.RPCs{"honk": honk}))
		cfg.Channels = w.ChannelTypes()
		var d *driver.Driver
		var mine *flight.Recorder
		if h.IsServer() {
			if d, err = driver.Listen("", cfg); err == nil {
				past, err = flight.New(w, d, flight.Config{})
			}
		} else if d, err = driver.Dial("10.0.0.1:7777", cfg); err == nil && h.Name() == fmt.Sprintf("<b>player %d", players-1) {
			last, err = flight.New(w, d, flight.Config{})
			mine = last
		}
		return host(func(now time.Time) error {
			d.TickDispatch(now)
			at := d.Time(now)
			if h.IsServer() {
				for i, c := range carts {
					c.X += 0.05
					c.Y = float64(i) + float64(int(at/time.Second)%3)
					if load := int32(at / (500 * time.Millisecond)); load != c.Load {
						c.Load = load
						_ = honk.Call(c)
					}
				}
			}
			w.Step(at)
			if mine != nil {
				mine.Look(at)
			}
			d.TickFlush(now)
			return d.Err()
		}), err
	})
	sim.AddHost("server", true)
	for i := range players {
		if i == players-1 { // its clock begins later
			sim.RunUntil(time.Second)
		}
		bad := netsim.Settings{Lag: 60 * time.Millisecond, Loss: 5}
		require.NoError(t, sim.AddHost(fmt.Sprintf("<b>player %d", i), false).SetNet(bad, bad))
	}
	sim.RunUntil(length)
	require.Nil(t, sim.Failure())
	past.Note(0, "the end <img src=x onerror=document.title='taken'>")
	dir := t.TempDir()
	file, client = filepath.Join(dir, "film.html"), filepath.Join(dir, "client.html")
	for file, f := range map[string]*flight.Film{file: past.Take(), client: last.Take()} {
		write(t, file, f, flight.View{Title: "carts", Names: names})
	}
	return file, client
}

// TestClientsFilm adds the film that a client saved: the page finds its connection, and shows what the client had beside the server's truth; and
// the calls with their fate. Alone it shows what the client had.
func TestClientsFilm(t *testing.T) {
	file, client := film(t, 4, 20*time.Second)
	ctx := open(t)
	var l log
	l.listen(ctx)
	var heads, fields, calls, cut string
	var of string
	var apart []float64
	ready := chromedp.Poll(`film && document.querySelectorAll("#actors tbody tr").length === 4`, nil)
	require.NoError(t, chromedp.Run(ctx, network.Enable(), runtime.Enable(), chromedp.Navigate("file://"+client+"#t=10"), ready, chromedp.Text("#fields thead", &heads)))
	require.Regexp(t, `field\s+the client showed\s+last came at\s+why`, heads)
	require.NoError(t, chromedp.Run(ctx, chromedp.Navigate("file://"+file+"#t=10&conn=3"), ready,
		chromedp.SetUploadFiles("#add", []string{file}), chromedp.Poll(`el("cut").textContent !== ""`, nil), chromedp.Text("#cut", &cut),
		chromedp.SetUploadFiles("#add", []string{client}), chromedp.Poll(`conn && conn.shown`, nil), chromedp.Evaluate(`conn.Name`, &of),
		// How far apart what the client showed is from what it had by the acks, in time.
		chromedp.Evaluate(`film.Actors.flatMap((a, n) => [6000, 9000, 12000].map(t => {
			const p = a.Parts.find(p => p.Name === "X"), shown = shownAt(conn, n, t), q = shown.a.Parts.find(p => p.Name === "X");
			return at(q, shown.step) - at(p, had(conn, n, p, t));
		}))`, &apart),
		chromedp.Evaluate(`(() => { actor = 0; part = "X"; const lost = conn.Calls.find(c => c.Actor === 0 && callWay(conn, c)[1]); go(lost ? lost.At : t); return 0; })()`, nil),
		chromedp.Sleep(100*time.Millisecond), chromedp.Text("#fields", &fields), chromedp.Text("#calls", &calls)))
	require.Contains(t, cut, "isn't the film of a client")
	require.Equal(t, "<b>player 3", of, "the last player's connection")
	require.Len(t, apart, 12)
	for _, d := range apart {
		require.InDelta(t, 0, d, 0.21, "4 frames of 0.05")
	}
	require.Regexp(t, `X\s+[\d.]+\s+[\d.]+\s+[\d.]+\s`, fields)
	require.Regexp(t, `honk\s+unreliable, in packet \d+ at [\d.]+: lost, known at [\d.]+, and not sent again`, calls)
	require.Regexp(t, `honk\s+came to <b>player 3`, calls)
	img := shoot(t, ctx, "client")
	require.Greater(t, colors(img, map[string][3]int{"shown": {0x12, 0xa5, 0xa5}})["shown"], 50)
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Empty(t, l.said, "what the page complained about")
}

// Crate is what the game of TestWhy has: one that a client's game overwrites, one that is torn off and destroyed by the client, and
// one that is relevant to its owner only.
type Crate struct {
	actorrep.Base
	Kind string               `net:""`
	Fill int32                `net:""`
	Note string               `net:"owner"`
	X    int32                `net:"" interp:""`
	Zero int32                `net:""`
	Sum  actorrep.Var[int32]  `net:""`
	To   actorrep.Ref[*Crate] `net:""`
	Off  int32                `net:"custom"`
}

// Ghost is of a class that the client doesn't register.
type Ghost struct {
	actorrep.Base
	Kind string `net:""`
}

// whyFilm is the page of that game, with the client's film in it, after some seconds.
func whyFilm(t *testing.T, lateAt *time.Duration) string {
	var past, mine *flight.Recorder
	crates := map[string]*Crate{}
	sim := simtest.NewSimulation(9, func(h *simtest.Host) (simtest.Program, error) {
		w, cfg, err := endOf(h)
		if err != nil {
			return nil, err
		}
		require.NoError(t, w.Register("Crate", (*Crate)(nil)))
		if h.IsServer() {
			cfg.Joined = func(c *driver.Conn) { w.AddConn(c) }
			require.NoError(t, w.Register("Ghost", (*Ghost)(nil)))
			require.NoError(t, w.Spawn(&Ghost{Kind: "ghost"}))
		}
		cfg.Channels = w.ChannelTypes()
		var d *driver.Driver
		if h.IsServer() {
			if d, err = driver.Listen("", cfg); err == nil {
				past, err = flight.New(w, d, flight.Config{})
			}
			for _, kind := range []string{"honest", "overwritten", "once", "destroyed", "hidden"} {
				crates[kind] = &Crate{Kind: kind, Note: "secret"}
				crates[kind].SetOnlyOwner(kind == "hidden")
				require.NoError(t, w.Spawn(crates[kind]))
			}
			crates["honest"].To, crates["honest"].Off = actorrep.RefTo(crates["hidden"]), 7
			require.NoError(t, crates["honest"].SetCondition("Off", false))
		} else if d, err = driver.Dial("10.0.0.1:7777", cfg); err == nil {
			mine, err = flight.New(w, d, flight.Config{})
		}
		n := int32(0)
		return host(func(now time.Time) error {
			d.TickDispatch(now)
			at := d.Time(now)
			if n++; h.IsServer() && n%5 == 0 {
				for _, c := range crates {
					c.X += 3
					c.Sum.Set(c.X)
					if c.Kind != "once" || c.Fill == 0 {
						c.Fill++
					}
				}
			}
			if h.IsServer() && n == 180 {
				require.NoError(t, crates["destroyed"].TearOff())
				require.NoError(t, w.Spawn(&Crate{Kind: "late"}))
				*lateAt = at
			}
			w.Step(at)
			if !h.IsServer() {
				for a := range w.All {
					switch c := a.(*Crate); {
					case c.Kind == "overwritten":
						c.Fill, c.Zero = -1, 9
					case c.Kind == "once" && at > 5*time.Second:
						c.Fill = -2
					case c.Kind == "destroyed" && at > 4*time.Second:
						require.NoError(t, w.Destroy(c))
					case c.Kind == "destroyed" && at > 3500*time.Millisecond:
						c.Fill = -3
					}
				}
				mine.Look(at)
			}
			d.TickFlush(now)
			return d.Err()
		}), err
	})
	playWithAnn(t, sim, 10*time.Second)
	return filmOfBoth(t, "why", past, mine)
}

// playWithAnn plays with a client whose network is bad.
func playWithAnn(t *testing.T, sim *simtest.Simulation, until time.Duration) {
	sim.AddHost("server", true)
	bad := netsim.Settings{Lag: 60 * time.Millisecond, Loss: 10}
	require.NoError(t, sim.AddHost("Ann", false).SetNet(bad, bad))
	sim.RunUntil(until)
	require.Nil(t, sim.Failure())
}

// filmOfBoth is a page with the server's film and its client's.
func filmOfBoth(t *testing.T, title string, past, mine *flight.Recorder) string {
	file := filepath.Join(t.TempDir(), title+".html")
	write(t, file, past.Take(), flight.View{Title: title, Clients: []*flight.Film{mine.Take()}})
	return file
}

// TestWhy: what the page says of a value that a client has otherwise is what became of it: whether it was sent, came, was set, and was changed by the
// client's own game. An actor that isn't there at the client is red, unless it wasn't sent to it.
func TestWhy(t *testing.T) {
	var lateAt time.Duration
	file := whyFilm(t, &lateAt)
	ctx := open(t)
	var l log
	l.listen(ctx)
	require.NoError(t, chromedp.Run(ctx, runtime.Enable(), chromedp.Navigate("file://"+file), chromedp.Poll(`film && conn && conn.shown && document.querySelectorAll("#actors tbody tr").length === 7`, nil)))
	// of is the rows of an actor's fields at some moments, as "class|field|server|connection|client|why", and those of the list of actors.
	of := func(kind string, moments ...float64) (fields map[string][]string, actor []string) {
		var rows [][]string
		require.NoError(t, chromedp.Run(ctx, chromedp.Evaluate(fmt.Sprintf(`(async () => {
			const out = [], row = tr => [tr.className.trim(), ...[...tr.cells].map(c => c.textContent)].join("|");
			actor = film.Actors.findIndex(a => a.Parts.find(p => p.Name === "Kind").Of[0] === %q);
			for (const at of %s) {
				go(at * 1000);
				await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
				out.push([...el("fields").tBodies[0].rows].map(row), [row(el("actors").tBodies[0].rows[actor])]);
			}
			return out;
		})()`, kind, strings.ReplaceAll(fmt.Sprint(moments), " ", ",")), &rows, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) })))
		fields = map[string][]string{}
		for i, list := range rows {
			if i%2 == 1 {
				actor = append(actor, list[0])
				continue
			}
			for _, line := range list {
				name := strings.Split(line, "|")[1]
				fields[name] = append(fields[name], line)
			}
		}
		return fields, actor
	}
	var moments []float64
	for at := 3.0; at < 9.9; at += 0.0501 {
		moments = append(moments, at)
	}

	// Nobody touches it: where the client has another value, it is on its way, or was lost. The actor's row says so too.
	fields, actors := of("honest", moments...)
	late, red := 0, 0
	for i, line := range fields["Fill"] {
		switch cells := strings.Split(line, "|"); cells[0] {
		case "":
			require.Equal(t, cells[2], cells[4], line)
			require.Empty(t, cells[5])
		case "late":
			late++
			require.NotEqual(t, cells[2], cells[4], line)
			require.Regexp(t, `^in flight: packet|sent at `, cells[5])
			require.Regexp(t, `^(picked )?(late|apart)\|`, actors[i])
		default:
			red++
			require.Equal(t, "apart", cells[0])
			require.NotEqual(t, cells[2], cells[4], line)
			require.Regexp(t, `is lost, which isn't known|was lost; it is to be sent again`, cells[5])
			require.Regexp(t, `^(picked )?apart\|`, actors[i])
		}
	}
	require.Greater(t, late, 20)
	require.Greater(t, red, 3)
	for _, line := range fields["X"] {
		require.NotContains(t, line, "own code")
	}
	require.Regexp(t, `^\|Sum\|\d+\|\d+\|\d+\|`, strings.NewReplacer("apart", "", "late", "").Replace(fields["Sum"][20]))
	for _, line := range actors {
		require.NotContains(t, line, "not there")
	}
	require.Regexp(t, `^kept\|Note\|secret\|not sent\|\|.* had no Note; its condition is owner, which this connection doesn't meet$`, fields["Note"][10])

	// A client's game that sets it in each frame, and one that has set it once after it came.
	fields, _ = of("overwritten", moments...)
	for _, line := range fields["Fill"] {
		require.Regexp(t, `apart\|Fill\|\d+\|\d+\|-1\|packet \d+ brought \d+, set at [\d.]+; the client's own code had set -1 by the end of that frame`, line)
		cells := strings.Split(line, "|")
		if cells[2] == cells[3] {
			require.NotRegexp(t, `lost|flight`, line)
		}
	}
	for _, line := range fields["Zero"] {
		require.Regexp(t, `apart\|Zero\|0\|0\|9\|packet \d+ brought 0; the client's own code had set 9 by the end of that frame$`, line)
	}
	fields, _ = of("once", 4, 4.5, 7, 9)
	for i, line := range fields["Fill"] {
		if i < 2 {
			require.Regexp(t, `^\|Fill\|1\|1\|1\|$`, line)
			continue
		}
		require.Regexp(t, `apart\|Fill\|1\|1\|-2\|(packet \d+ brought 1, )?set at [\d.]+; the client's own code has set -2 since, at 5\.\d+$`, line)
	}

	// Not there.
	fields, actors = of("ghost", 8)
	require.NotContains(t, actors[0], "apart")
	require.Contains(t, actors[0], "not there")
	require.Regexp(t, `not there\|nothing of it was sent in this film: actorrep: the client has no such class; register it there under the same name: "Ghost" \(found at \d\.\d+\)$`, fields["Kind"][0])
	fields, actors = of("late", lateAt.Seconds()+0.03, 9)
	require.Regexp(t, `late.*not there`, actors[0])
	require.Regexp(t, `late\|Kind\|late\|not known\|not there\|in flight: the opening of its channel, in packet \d+$`, fields["Kind"][0])
	require.NotContains(t, actors[1], "apart")
	require.Contains(t, fields["Kind"][1], "|Kind|late|late|late|")
	fields, actors = of("destroyed", 3.7)
	require.Regexp(t, `^\|Fill\|\d+\|not known\|-3\|its channel was closed at 2\.9\d+, in packet \d+: it was torn off, and is the client's own$`, fields["Fill"][0], "what it differs in isn't red")
	require.NotRegexp(t, "apart|late", actors[0])
	fields, actors = of("destroyed", 2, 8)
	require.NotContains(t, actors[0], "not there")
	require.NotContains(t, actors[1], "apart")
	require.Contains(t, actors[1], "not there")
	require.Regexp(t, `not there\|its channel was closed at 2\.9\d+, in packet \d+: it was torn off, and is the client's own`, fields["Kind"][1])
	fields, actors = of("hidden", 8)
	require.NotContains(t, actors[0], "apart")
	require.Contains(t, actors[0], "not there")
	require.Regexp(t, `not there\|nothing of it was sent in this film: not relevant: only its owner sees it \(found at \d\.\d+\)$`, fields["Kind"][0])
	var reason string
	require.NoError(t, chromedp.Run(ctx, chromedp.Text("#reason", &reason)))
	require.Regexp(t, `^connection \d+: not relevant: only its owner sees it \(found at \d\.\d+\)$`, reason)
	// A reference to what the client doesn't have, and a field that is switched off.
	fields, _ = of("honest", 8)
	require.Regexp(t, `^\|To\|actor \d+\|actor \d+\|actor \d+\|sent, but actor \d+ isn't at the client \(found at \d\.\d+\)$`, fields["To"][0])
	require.Regexp(t, `^kept\|Off\|0\|not sent\|0\|switched off \(found at \d\.\d+\)$`, fields["Off"][0])
	shoot(t, ctx, "why")
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Empty(t, l.said, "what the page complained about")
}

// TestFilm opens a film's file without a server, goes back, by Steps, to a link; the ways of a field's changes stand there, with lost packets.
func TestFilm(t *testing.T) {
	file, _ := film(t, 8, 20*time.Second)
	ctx := open(t)
	var l log
	l.listen(ctx)
	ready := chromedp.Poll(`film && document.querySelectorAll("#actors tbody tr").length === 8`, nil)
	var title, span, ways, fields, legend string
	require.NoError(t, chromedp.Run(ctx, network.Enable(), runtime.Enable(), chromedp.Navigate("file://"+file), ready,
		chromedp.Title(&title), chromedp.Text("#span", &span), chromedp.Text("#legend", &legend)))
	require.Equal(t, "carts, looking back", title)
	require.Equal(t, "from 0.000 to 19.983 s, 1200 Steps", span)
	var seconds float64
	eval := func(js string, to any) {
		t.Helper()
		require.NoError(t, chromedp.Run(ctx, chromedp.Evaluate(js, to)))
	}
	settle := func() {
		t.Helper()
		require.NoError(t, chromedp.Run(ctx, chromedp.Evaluate(`new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))`, nil,
			func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) })))
	}

	// A link to a moment of a connection that lost a packet with a change of Load.
	eval(`(() => {
		for (const c of film.Conns) for (const [n, a] of film.Actors.entries()) {
			const p = a.Parts.find(p => p.Name === "Load"), r = known(c, n, p).records.find(r => c.Sent[r.Packet].Fate === 2 && c.Sent[r.Packet].At > 5000);
			if (r) { location.hash = new URLSearchParams({ t: c.Sent[r.Packet].At / 1000 + 0.05, conn: c.ID, actor: a.ID, field: "Load" }); return 1; }
		}
		return 0;
	})()`, &seconds)
	require.EqualValues(t, 1, seconds, "a lost change")
	settle()
	require.NoError(t, chromedp.Run(ctx, chromedp.Text("#ways", &ways), chromedp.Text("#fields", &fields)))
	require.Regexp(t, `in packet \d+ at [\d.]+: lost, known at [\d.]+; again in packet \d+ at [\d.]+: acked at`, ways)
	require.Regexp(t, `Load\s+\d+\s+\d+\s+packet \d+ is lost, which isn't known before`, fields)
	shootFilm(t, ctx)

	// By Steps and by dragging.
	var from, to float64
	eval(`stepAt(t)`, &from)
	require.NoError(t, chromedp.Run(ctx, chromedp.Click("#back"), chromedp.Click("#back"), chromedp.Click("#forth")))
	eval(`stepAt(t)`, &to)
	require.Equal(t, from-1, to)
	var x, y, width float64
	box := `document.querySelector("#line").getBoundingClientRect()`
	eval(box+".x", &x)
	eval(box+".y", &y)
	eval(box+".width", &width)
	require.NoError(t, chromedp.Run(ctx, chromedp.MouseEvent(input.MousePressed, x+width/2, y+20, chromedp.ButtonLeft, chromedp.ClickCount(1)),
		chromedp.MouseEvent(input.MouseMoved, x+width/4, y+20, chromedp.ButtonLeft), chromedp.MouseEvent(input.MouseReleased, x+width/4, y+20, chromedp.ButtonLeft, chromedp.ClickCount(1))))
	var share float64
	eval(`(t - film.Steps[0]) / (film.Steps[film.Steps.length - 1] - film.Steps[0])`, &share)
	require.InDelta(t, 0.25, share, 0.01)

	// It plays, and stops.
	require.NoError(t, chromedp.Run(ctx, chromedp.Evaluate(`window.from = t; 0`, nil), chromedp.Click("#play"), chromedp.Poll(`t > window.from + 300`, nil), chromedp.Click("#play"),
		chromedp.Poll(`!playing`, nil)))

	// A click on the map chooses the actor there; the link in the address is to what is shown.
	var chosen, hash string
	eval(`(() => { const d = dots.find(d => d.n === 3), r = el("map").getBoundingClientRect(); el("map").onclick({ clientX: r.left + d.x, clientY: r.top + d.y }); return film.Actors[3].ID; })()`, &chosen)
	settle()
	eval(`location.hash`, &hash)
	require.Contains(t, hash, "actor="+strings.ReplaceAll(chosen, " ", "+"))
	eval(`document.title`, &title)
	require.Equal(t, "carts, looking back", title, "a name is only text")

	l.mu.Lock()
	defer l.mu.Unlock()
	require.Empty(t, l.said, "what the page complained about")
	for _, u := range l.urls {
		require.Equal(t, "file://"+file, strings.Split(u, "#")[0], "it loads nothing")
	}
}

// TestDamagedFilm: the page of a film that is cut off, or damaged, says so.
func TestDamagedFilm(t *testing.T) {
	file, _ := film(t, 2, 2*time.Second)
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	begin := bytes.Index(whole, []byte(`id="film">`)) + len(`id="film">`)
	end := begin + bytes.IndexByte(whole[begin:], '<')
	flipped, short := bytes.Clone(whole), append(bytes.Clone(whole[:end-1000]), whole[end:]...)
	flipped[(begin+end)/2] ^= 1
	ctx := open(t)
	for _, x := range []struct {
		what, says string
		page       []byte
	}{
		{"whole", "", whole},
		{"cut before the film", "cut off", whole[:begin]}, {"cut in the film", "cut off", whole[:(begin+end)/2]}, {"cut in the script", "cut off", whole[:len(whole)-100]},
		{"a bit is another", "damaged", flipped}, {"a piece is missing", "damaged", short},
	} {
		page := filepath.Join(t.TempDir(), "film.html")
		require.NoError(t, os.WriteFile(page, x.page, 0o600))
		var said string
		require.NoError(t, chromedp.Run(ctx, chromedp.Navigate("file://"+page), chromedp.Poll(`document.readyState === "complete" && (typeof film !== "object" || film || el("cut").textContent !== "")`, nil),
			chromedp.Evaluate(`document.querySelector("#cut").textContent`, &said)), x.what)
		if x.says == "" {
			require.Empty(t, said, x.what)
		}
		require.Contains(t, said, x.says, x.what)
	}
}

// TestHostileFilm: a client's film that isn't what a recorder makes, such as one of another version, or one that is huge when it is unpacked, is refused or told of. The server's film
// can still be looked at after the page was opened again.
func TestHostileFilm(t *testing.T) {
	file, client := film(t, 2, 2*time.Second)
	whole, err := os.ReadFile(client)
	require.NoError(t, err)
	begin := bytes.Index(whole, []byte(`id="film">`)) + len(`id="film">`)
	end := begin + bytes.IndexByte(whole[begin:], '<')
	zip, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(whole[begin:end])))
	require.NoError(t, err)
	lines, err := io.ReadAll(zip)
	require.NoError(t, err)
	packed := func(text string) string {
		var out bytes.Buffer
		zip := gzip.NewWriter(&out)
		_, err := zip.Write([]byte(text))
		require.NoError(t, errors.Join(err, zip.Close()))
		return base64.StdEncoding.EncodeToString(out.Bytes())
	}
	ctx := open(t)
	var l log
	l.listen(ctx)
	with := func(old, new string) string {
		require.Contains(t, string(lines), old)
		return strings.ReplaceAll(string(lines), old, new)
	}
	evil := `<img src=x onerror=\"document.title='evil'\">`
	for _, x := range []struct{ what, says, text string }{
		{"whole", "", string(lines)},
		{"huge", "MB", string(lines) + strings.Repeat(" ", 21e6)},
		{"empty", "client.html: ", ""},
		{"no JSON", "client.html: ", "hello"},
		{"null", "client.html: ", "null"},
		{"without Set", "client.html: ", with(`"Set":`, `"Other":`)},
		{"without Sent", "client.html: ", with(`"Sent":`, `"Other":`)},
		{"units that are none", "damaged", regexp.MustCompile(`("Set":\[\[\d+,")`).ReplaceAllString(string(lines), `${1}g`)},
		{"values that are lists", "", with(`"Of":[`, `"Of":[[1],`)},
		{"steps of lists", "", with(`"Steps":[`, `"Steps":[[1],`)},
		{"names with HTML", "", with(`"Name":"`, `"Name":"`+evil)},
	} {
		path := filepath.Join(t.TempDir(), "client.html")
		require.NoError(t, os.WriteFile(path, []byte(`<script id="film">`+packed(x.text)+`</script>`), 0o600))
		var said, title string
		require.NoError(t, chromedp.Run(ctx, runtime.Enable(), chromedp.Navigate("file://"+file),
			chromedp.Poll(`film && document.querySelectorAll("#actors tbody tr").length === 2`, nil), chromedp.Evaluate(`most = 20e6; window.added = false; 0`, nil),
			chromedp.SetUploadFiles("#add", []string{path}), chromedp.Poll(`el("cut").textContent || conn.shown`, nil),
			chromedp.Evaluate(`(async () => { for (let n = 0; n < 30; n++) { actor = n % 2; part = ["X", "Load"][n % 3 % 2]; go(60 * n); await new Promise(done => requestAnimationFrame(() => setTimeout(done))); } return el("cut").textContent })()`,
				&said, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }), chromedp.Title(&title)), x.what)
		t.Log(x.what, said)
		if x.what == "whole" {
			require.Empty(t, said)
		}
		require.Contains(t, said, x.says, x.what)
		require.Equal(t, "carts, looking back", title, x.what)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Empty(t, l.said, "what the page complained about")
}

func shootFilm(t *testing.T, ctx context.Context) {
	img := shoot(t, ctx, "film")
	seen := colors(img, map[string][3]int{"acked": {0x3d, 0x9b, 0x5f}, "lost": {0xd6, 0x45, 0x3d}, "client": {0xe0, 0x8a, 0x1e}, "server": {0x1f, 0x6f, 0xc4}})
	for name, least := range map[string]int{"acked": 500, "lost": 50, "client": 50, "server": 50} {
		require.Greater(t, seen[name], least, "%s pixels in the picture", name)
	}
}

// TestKeySaves: on the inspector's page the key S saves a film.
func TestKeySaves(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	d, err := driver.Listen("127.0.0.1:0", driver.Config{Link: driver.Netcode{Key: netcode.Key{1}}, Channels: w.ChannelTypes()})
	require.NoError(t, err)
	past, err := flight.New(w, d, flight.Config{})
	require.NoError(t, err)
	done, ended := make(chan bool), make(chan bool)
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case now := <-time.After(10 * time.Millisecond):
				d.TickDispatch(now)
				w.Step(d.Time(now))
				d.TickFlush(now)
			}
		}
	}()
	t.Cleanup(func() {
		close(done)
		<-ended
		require.NoError(t, d.Close())
	})
	web := httptest.NewServer(inspect.New(d, inspect.Config{Past: past, Title: "saved"}))
	t.Cleanup(web.Close)
	ctx, dir := open(t), t.TempDir()
	saved := make(chan string, 10)
	chromedp.ListenTarget(ctx, func(ev any) {
		if e, ok := ev.(*cdpbrowser.EventDownloadProgress); ok && e.State == cdpbrowser.DownloadProgressStateCompleted {
			saved <- e.GUID
		}
	})
	require.NoError(t, chromedp.Run(ctx, cdpbrowser.SetDownloadBehavior(cdpbrowser.SetDownloadBehaviorBehaviorAllowAndName).WithDownloadPath(dir).WithEventsEnabled(true),
		chromedp.Navigate(web.URL+"/net/"), chromedp.Poll(`!document.querySelector("#past").hidden`, nil), chromedp.KeyEvent("s")))
	select {
	case name := <-saved:
		page, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Contains(t, string(page), "<title>saved, looking back</title>")
	case <-ctx.Done():
		t.Fatal("nothing was saved")
	}
}

// TestFilmOfAHundred opens the film of a game of 100 players, goes through it by links, Steps and dragging, and logs how long the page takes for
// each. With the variable CI set it is the film of ten seconds.
func TestFilmOfAHundred(t *testing.T) {
	if testing.Short() {
		t.Skip("100 players take some seconds")
	}
	length := 3 * time.Second
	if os.Getenv("CI") != "" {
		length = 10 * time.Second
	}
	file, client := film(t, 100, length)
	info, err := os.Stat(file)
	require.NoError(t, err)
	ctx := open(t)
	var l log
	l.listen(ctx)
	var took, stepped, dragged []float64
	var size, opened float64
	var actors, conns, dots int
	await := func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }
	require.NoError(t, chromedp.Run(ctx, network.Enable(), runtime.Enable(), chromedp.Navigate("file://"+file),
		chromedp.Poll(`film && document.querySelectorAll("#actors tbody tr").length === 100 && performance.now()`, &opened),
		chromedp.SetUploadFiles("#add", []string{client}), chromedp.Poll(`conn && conn.shown`, nil),
		chromedp.Evaluate(`performance.memory.usedJSHeapSize`, &size),
		chromedp.Evaluate(`window.timed = async each => {
			const took = [];
			for (let i = 0; i < 30; i++) {
				const from = performance.now();
				each(i);
				await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
				took.push(performance.now() - from);
			}
			return took.sort((a, b) => a - b);
		}; 0`, nil),
		chromedp.Evaluate(`timed(i => {
			[conn, actor, part] = [film.Conns[i], i, "Load"];
			go(1500 + 40 * i);
		})`, &took, await),
		chromedp.Evaluate(`dots.length`, &dots),
		chromedp.Evaluate(`timed(() => el("back").click())`, &stepped, await),
		chromedp.Evaluate(`(() => {
			const line = el("line"), box = line.getBoundingClientRect();
			const move = (kind, share) => line.dispatchEvent(new PointerEvent(kind, { clientX: box.x + share * box.width, clientY: box.y + 20, pointerId: 1, buttons: 1, bubbles: true }));
			line.setPointerCapture = () => {};
			move("pointerdown", 0.9);
			return timed(i => move("pointermove", 0.9 - i / 50));
		})()`, &dragged, await)))
	t.Logf("%v of 100 players: a page of %.1f MB, %.0f MB in the browser, opened after %.0f ms; median and most to show another moment %.0f and %.0f ms, to step %.0f and %.0f, to drag %.0f and %.0f",
		length, float64(info.Size())/1e6, size/1e6, opened, took[15], took[29], stepped[15], stepped[29], dragged[15], dragged[29])
	var share float64
	require.NoError(t, chromedp.Run(ctx, chromedp.Evaluate(`(t - film.Steps[0]) / (film.Steps[film.Steps.length - 1] - film.Steps[0])`, &share)))
	require.InDelta(t, 0.9-29.0/50, share, 0.02, "where it was dragged to")
	// What was sent in the first seconds isn't in the page: it doesn't say that it wasn't sent.
	var said []string
	require.NoError(t, chromedp.Run(ctx, chromedp.Evaluate(`(async () => { go(2000); actor = 5; await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
		return [el("cut").textContent, String(conn.From < 2000), ...[...el("fields").tBodies[0].rows].map(tr => tr.className.trim() + "|" + tr.cells[4].textContent), el("ways").tBodies[0].rows[0].textContent]; })()`, &said, await)))
	require.Contains(t, said[0], "aren't shown")
	require.Equal(t, "false", said[1], "the film has less than it is to show")
	var whole [2]float64
	require.NoError(t, chromedp.Run(ctx, chromedp.Evaluate(`[film.Conns[0].From || 0, film.Conns[0].Sent[0].At]`, &whole)))
	require.Zero(t, whole[0], "the connection that it opens with is there from the beginning on")
	require.Less(t, whole[1], 2000.0)
	for _, text := range said[2:] {
		require.Regexp(t, `^(picked)?\||^\d`, text)
		require.NotContains(t, text, "not sent")
	}
	require.Contains(t, strings.Join(said, "\n"), "not known: the film has what was sent to this connection from")
	require.NoError(t, chromedp.Run(ctx, chromedp.Evaluate(`film.Actors.length`, &actors), chromedp.Evaluate(`film.Conns.length`, &conns)))
	require.Equal(t, []int{100, 100, 100}, []int{actors, conns, dots})
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Empty(t, l.said, "what the page complained about")
}
