package browser

import (
	"context"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/flight"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/inspect"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// Legs is a hero's input.
type Legs struct{ Dir int8 }

// Hero is predicted by its player.
type Hero struct {
	actorrep.Base
	X    float64 `net:"q=0.01,simulated" predict:"0.01"`
	Y    float64 `net:"q=0.01,simulated" predict:"0.01"`
	Name string  `net:"initial"`
}

// Simulate runs.
func (h *Hero) Simulate(l Legs, dt time.Duration) { h.X += float64(l.Dir) * dt.Seconds() }

// Location makes it located.
func (h *Hero) Location() (x, y, z float64) { return h.X, h.Y, 0 }

// When what happens in the game of a saved film, in seconds.
const (
	onceAt  = 5
	pushAt  = 7
	diesAt  = 8
	darkAt  = 20
	savedBy = 95
)

// savedFilm is the film that a server has saved when Ann fell silent. Before that a field that is sent when a channel opens only was changed, Ann's hero was pushed, and what she
// looked from was destroyed, after which a chest walks out of her sight.
func savedFilm(t *testing.T) string {
	var past *flight.Recorder
	names := map[uint32]string{}
	saved := make(chan string, 9)
	sim := simtest.NewSimulation(6, func(h *simtest.Host) (simtest.Program, error) {
		w, cfg, err := endOf(h)
		if err != nil {
			return nil, err
		}
		heroes, err := predict.Register(w, "Hero", predict.Config[*Hero, Legs]{Input: func(*Hero) Legs { return Legs{Dir: 1} }})
		require.NoError(t, err)
		horn := actorrep.MulticastRPC0(func(actorrep.Call, *Chest) error { return nil })
		require.NoError(t, w.Register("Chest", (*Chest)(nil), actorrep.RPCs{"horn": horn}))
		cfg.Channels = w.ChannelTypes()
		var d *driver.Driver
		var hers *Hero
		chest, tower := &Chest{Kind: "chest", X: 12}, &Chest{Kind: "tower", X: 10}
		if h.IsServer() {
			for _, c := range []*Chest{chest, tower} {
				c.SetCullDistance(16)
				require.NoError(t, w.Spawn(c))
			}
			cfg.Joined = func(c *driver.Conn) {
				peer, hero := w.AddConn(c), &Hero{Name: c.Login().URL}
				names[c.ID()] = hero.Name
				hero.SetOwner(peer)
				peer.SetViewTarget(tower)
				require.NoError(t, w.Spawn(hero))
				require.NoError(t, heroes.Possess(hero, peer, c.Now()))
				if hero.Name == "Ann" {
					hers = hero
				}
			}
			d, err = driver.Listen("", cfg)
			require.NoError(t, err)
			past, err = flight.New(w, d, flight.Config{Keep: 2 * time.Minute, Save: flight.Saving{Dir: t.TempDir(), Left: true, View: func() flight.View { return flight.View{Names: names} }, Saved: func(file string, err error) {
				require.NoError(t, err)
				saved <- file
			}}})
		} else {
			cfg.Client = control.ClientConfig{URL: h.Name()}
			d, err = driver.Dial("10.0.0.1:7777", cfg)
		}
		n := 0
		return host(func(now time.Time) error {
			d.TickDispatch(now)
			at := d.Time(now)
			if n++; h.IsServer() {
				switch n {
				case onceAt * 60:
					chest.Once = 5
				case pushAt * 60:
					hers.Y = 3
				case diesAt * 60:
					require.NoError(t, w.Destroy(tower))
				}
				if n > diesAt*60 && chest.X < 40 {
					chest.X += 0.25
				}
				if n%60 == 0 {
					require.NoError(t, horn.Call(chest))
				}
				if err := heroes.Tick(at); err != nil {
					return err
				}
				w.Step(at)
			} else {
				w.Step(at)
				if err := heroes.Tick(at); err != nil {
					return err
				}
			}
			d.TickFlush(now)
			return d.Err()
		}), err
	})
	sim.AddHost("server", true)
	slow := netsim.Settings{Lag: 60 * time.Millisecond}
	for _, name := range []string{"Ann", "Bob"} {
		require.NoError(t, sim.AddHost(name, false).SetNet(slow, slow))
	}
	sim.RunUntil(darkAt * time.Second)
	dark := netsim.Settings{Loss: 100}
	require.NoError(t, sim.Host("Ann").SetNet(dark, dark))
	sim.RunUntil(savedBy * time.Second)
	require.Nil(t, sim.Failure())
	require.NoError(t, past.Close())
	require.Len(t, saved, 1)
	return <-saved
}

// TestSavedFilm: a film opens at what had it saved, with the connection that this is about; it says of an actor whose channel was closed, of a connection that has ended, of a
// field that isn't sent, of a hero's own place and of a view target that died what holds; and its notes can be read and filtered without scrolling.
func TestSavedFilm(t *testing.T) {
	file := savedFilm(t)
	ctx := open(t)
	var l log
	l.listen(ctx)
	eval := func(js string, to any) {
		t.Helper()
		require.NoError(t, chromedp.Run(ctx, chromedp.Evaluate(`(async () => { const settle = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
			const text = tr => [tr.className.trim(), ...[...tr.cells].map(c => c.textContent)].join("|"), find = kind => film.Actors.findIndex(a => a.Parts.some(p => p.Of[0] === kind));
			const rowsAt = (kind, field, at) => { actor = find(kind); part = field; go(at * 1000); return settle().then(() => [...el("fields").tBodies[0].rows].map(text)); };
			const row = async (kind, field, at) => (await rowsAt(kind, field, at)).find(r => r.split("|")[1] === field) || "";
			const ofActor = kind => text([...el("actors").tBodies[0].rows].find(tr => tr.cells[1].textContent === film.Actors[find(kind)].ID));
			// The heights at which a color is drawn in the curve, in a column.
			const heights = (color, x) => { const c = el("values"), d = c.getContext("2d").getImageData(Math.round(x * c.width), 0, 1, c.height - 12).data, out = [];
				for (let y = 0; y < c.height - 12; y++) if (color.every((v, k) => Math.abs(d[4 * y + k] - v) < 40)) out.push(y); return out; };
			const blue = [0x1f, 0x6f, 0xc4], orange = [0xe0, 0x8a, 0x1e];
			`+js+` })()`, to, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) })))
	}
	require.NoError(t, chromedp.Run(ctx, runtime.Enable(), emulation.SetDeviceMetricsOverride(1280, 800, 1, false), chromedp.Navigate("file://"+file),
		chromedp.Poll(`film && document.querySelectorAll("#notes div").length > 0`, nil)))
	shoot(t, ctx, "saved")

	// It opens when Ann was last heard, with her connection, and says when that was.
	var opened, until []float64
	var rows []string
	eval(`return [t, conn.Ended, film.Cause[0], conn.Heard]`, &opened)
	require.Greater(t, opened[1], 1000.0*darkAt+10_000)
	require.InDelta(t, 1000.0*darkAt, opened[0], 100)
	require.InDelta(t, opened[3], opened[0], 20)
	require.Equal(t, opened[1], opened[2])
	var ends []string
	eval(`return film.Notes.filter(n => n.Text.startsWith("the connection ends")).map(n => n.Text)`, &ends)
	require.Equal(t, []string{"the connection ends: timed out; a packet last came at " + str(opened[3]/1000)}, ends)
	eval(`return [el("title").textContent, el("now").textContent, location.hash, conn.Why]`, &rows)
	require.Contains(t, rows[0], "timed out")
	require.Equal(t, "timed out", rows[3])

	// Notes are within the first 800 pixels, and can be filtered by their texts and their actors.
	eval(`const r = el("notes").getBoundingClientRect(), f = el("notefilter").getBoundingClientRect(); return [r.bottom, f.top, r.height]`, &until)
	require.Less(t, until[0], 800.0)
	require.Greater(t, until[1], 0.0)
	require.Greater(t, until[2], 30.0)
	filtered := func(s string) (list []string) {
		eval(`el("notefilter").value = "`+s+`"; el("notefilter").oninput({ target: el("notefilter") }); await settle(); return [...el("notes").children].map(n => n.textContent)`, &list)
		return list
	}
	all := filtered("")
	for _, s := range []string{"chest actor", "hero actor", "destroyed", "the connection"} {
		some := filtered(s)
		require.NotEmpty(t, some, s)
		require.Less(t, len(some), len(all), s)
	}
	require.Empty(t, filtered("no such words"))
	require.Len(t, filtered(""), len(all))

	// A connection that has ended: nothing is red, nothing is drawn of it.
	end := opened[1]/1000 + 0.5
	eval(`return [await row("chest", "Once", `+str(end)+`), await row("chest", "(x)", `+str(end)+`), ofActor("chest")]`, &rows)
	require.Equal(t, `picked|Once|5|not there||`, rows[0])
	require.Regexp(t, `^picked\|\(x\)\|[\d.]+\|not there\|\|the connection ended at [\d.]+: timed out; a packet last came at (19\.9|20\.0)\d+$`, rows[1])
	require.Regexp(t, `^picked\|.*\|not there$`, rows[2])

	// A field that is sent when a channel opens only: red, with both ends' curves, one reason in the row and in the table, and a note.
	once := `not sent; its condition is initial: a change after the opening is never sent`
	eval(`const out = [await row("chest", "Once", 9), ofActor("chest"), el("ways").tBodies[0].rows[1].textContent]; return out`, &rows)
	require.Regexp(t, `^picked apart\|Once\|5\|0\|\|set at 4\.98\d, and `+once+`$`, rows[0])
	require.Regexp(t, `^picked apart\|`, rows[1])
	require.Regexp(t, `set at 4\.98\d, and `+once+`$`, rows[2])
	var server, client []float64
	eval(`await row("chest", "Once", 9); return heights(blue, 0.6)`, &server)
	eval(`return heights(orange, 0.6)`, &client)
	require.NotEmpty(t, server)
	require.NotEmpty(t, client)
	require.Greater(t, client[0]-server[len(server)-1], 60.0, "the server's 5 is above the connection's 0")
	note := filtered("Once")
	require.Len(t, note, 1)
	require.Regexp(t, `^4\.98\d Chest actor \d+: the game set Once to 5, and clients that have the actor keep the old value: its condition is initial`, note[0])
	var picked string
	eval(`go(0); el("notes").children[0].onclick(); await settle(); return part`, &picked)
	require.Equal(t, "Once", picked)

	// What was corrected is named.
	note = filtered("had set Y")
	require.Len(t, note, 1)
	require.Regexp(t, `^\d\.\d+ connection \d+ Ann: Hero actor \d+: its prediction was corrected: the game had set Y$`, note[0])
	eval(`el("notes").children[0].onclick(); await settle(); return part`, &picked)
	require.Equal(t, "Y", picked)
	filtered("")

	// Her own hero's place: in one sentence.
	eval(`return (await rowsAt("Ann", "X", 6)).filter(r => /\|(\(x\)|\(y\)|X|Y)\|/.test(r))`, &rows)
	require.Len(t, rows, 4)
	for _, r := range rows {
		require.Regexp(t, `^(picked )?kept\|[^|]+\|[\d.]+\|not sent\|\|this connection's player predicts it, and gets corrections, not values; its condition is simulated$`, r)
	}

	// What she looked from was destroyed, and the chest walks out of sight: its channel is closed, and that says why. Its curve ends.
	note = filtered("destroyed")
	require.Len(t, note, 1, "it is in a note, of this connection")
	require.Regexp(t, `^7\.98\d connection \d+ Ann: its view target, actor \d+, was destroyed: it looks from where that was, until SetViewTarget or SetViewpoint$`, note[0])
	filtered("")
	eval(`return [await row("chest", "(x)", 18), ofActor("chest")]`, &rows)
	require.Regexp(t, `^picked\|\(x\)\|40\|not there\|\|its channel was closed at 1\d\.\d+, in packet \d+: it isn't relevant to this connection any more; it is now [\d.]+ away from the viewpoint `+
		`\(10, 0, 0\), which has stood there since Chest actor \d+, its view target, was destroyed at 7\.98\d; it is seen within 16$`, rows[0])
	require.Regexp(t, `^picked\|.*not there$`, rows[1])
	eval(`const closed = index(conn).turned.get(actor).at(-1).at / 1000, out = []; for (const at of [closed - 0.5, closed + 0.5]) { await row("chest", "X", at); out.push(...heights(orange, (2 + 0.1) / 3).slice(0, 1), -1); } return out`, &client)
	require.Len(t, client, 3, "before it was closed there is a curve of the connection: %v", client)
	require.Equal(t, -1.0, client[2])

	// Calls say from whom.
	eval(`await row("chest", "X", 6); el("own").checked = true; actor = find("Ann"); el("own").onchange(); await settle(); return [...el("calls").tBodies[0].rows].map(text)`, &rows)
	require.Contains(t, strings.Join(rows, "\n"), "|came from Ann")
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Empty(t, l.said, "what the page complained about")
}

func str(x float64) string { return strconv.FormatFloat(x, 'f', 3, 64) }

// TestFilmLinksToExplain: the page of what a running game has kept links to the inspector's reasons for the actor and the connection that it shows.
func TestFilmLinksToExplain(t *testing.T) {
	w, there := actorrep.NewServer(actorrep.Config{}), actorrep.NewClient(actorrep.Config{})
	for _, w := range []*actorrep.World{w, there} {
		require.NoError(t, w.Register("Cart", (*Cart)(nil)))
	}
	peers := map[*driver.Conn]*actorrep.Peer{}
	key := driver.Netcode{Key: netcode.Key{1}}
	d, err := driver.Listen("127.0.0.1:0", driver.Config{Link: key, Channels: w.ChannelTypes(), Joined: func(c *driver.Conn) { peers[c] = w.AddConn(c) }})
	require.NoError(t, err)
	ann, err := driver.Dial(d.LocalAddr().String(), driver.Config{Link: key, Channels: there.ChannelTypes(), Client: control.ClientConfig{URL: "Ann"}})
	require.NoError(t, err)
	past, err := flight.New(w, d, flight.Config{})
	require.NoError(t, err)
	for range 12 {
		require.NoError(t, w.Spawn(&Cart{}))
	}
	web := httptest.NewServer(inspect.New(d, inspect.Config{Past: past, Title: "linked", Actors: inspect.Actors(w, func(c *driver.Conn) *actorrep.Peer { return peers[c] })}))
	run, end := context.WithCancel(t.Context())
	ended := make(chan bool)
	go func() {
		defer close(ended)
		for run.Err() == nil {
			now := <-time.After(10 * time.Millisecond)
			d.TickDispatch(now)
			ann.TickDispatch(now)
			w.Step(d.Time(now))
			there.Step(ann.Time(now))
			d.TickFlush(now)
			ann.TickFlush(now)
		}
	}()
	t.Cleanup(func() {
		end()
		<-ended
		require.NoError(t, ann.Close())
		require.NoError(t, d.Close())
	})
	t.Cleanup(web.Close)
	ctx := open(t)
	var href, why string
	require.NoError(t, chromedp.Run(ctx, chromedp.Navigate(web.URL+"/net/"), chromedp.Poll(`document.querySelectorAll("#conns tbody tr").length === 1`, nil),
		chromedp.Navigate(web.URL+"/net/past"), chromedp.Poll(`film && conn && film.Actors.length === 12`, nil), chromedp.Evaluate(`actor = 6; show(); 0`, nil),
		chromedp.Poll(`!el("explain").hidden && el("explain").href.includes("actors")`, nil), chromedp.Evaluate(`el("explain").href`, &href)))
	require.NoError(t, chromedp.Run(ctx, chromedp.Navigate(href), chromedp.Poll(`document.querySelectorAll("#actors tbody tr").length === 1`, nil), chromedp.Text("#actors tbody tr", &why)))
	require.Contains(t, why, "actor 7")
	require.Regexp(t, `sent|up to date`, why)
	var filter, link string
	require.NoError(t, chromedp.Run(ctx, chromedp.Value("#actorfilter", &filter), chromedp.Location(&link)))
	require.Equal(t, "actor 7", filter)
	require.Contains(t, link, "actors=actor+7", "the address is a link to what it shows")
}
