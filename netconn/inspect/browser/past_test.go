package browser

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/flight"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// Chest is opened by reliable calls, each with a new Fill. Its Pack may be changed in place. Once is sent when its channel opens, Key to its owner only.
type Chest struct {
	actorrep.Base
	X    float64               `net:""`
	Y    float64               `net:""`
	Kind string                `net:""`
	Fill int32                 `net:""`
	Once int32                 `net:"initial"`
	Key  int32                 `net:"owner"`
	Pack actorrep.Var[[]int32] `net:"cap=4"`
}

// Location makes it located.
func (c *Chest) Location() (x, y, z float64) { return c.X, c.Y, 0 }

// chestFilm is the page of a game whose server has kept the last seconds only, with the film of its client, which has it all.
func chestFilm(t *testing.T) string {
	var past, mine *flight.Recorder
	chests := map[string]*Chest{}
	sim := simtest.NewSimulation(4, func(h *simtest.Host) (simtest.Program, error) {
		w, cfg, err := endOf(h)
		if err != nil {
			return nil, err
		}
		open := actorrep.MulticastRPC0(func(actorrep.Call, *Chest) error { return nil }, actorrep.Reliable)
		require.NoError(t, w.Register("Chest", (*Chest)(nil), actorrep.RPCs{"open": open}))
		cfg.Channels = w.ChannelTypes()
		var d *driver.Driver
		if h.IsServer() {
			for i, kind := range []string{"called", "left", "owned", "changed"} {
				chests[kind] = &Chest{Kind: kind, X: float64(i), Y: 1}
				chests[kind].Pack.Set([]int32{1, 2})
				require.NoError(t, w.Spawn(chests[kind]))
			}
			far := &Chest{Kind: "far", X: 30}
			far.SetCullDistance(16)
			require.NoError(t, w.Spawn(far))
			cfg.Joined = func(c *driver.Conn) {
				peer := w.AddConn(c)
				peer.SetViewpoint(1, 0, 0)
				chests["owned"].SetOwner(peer)
			}
			if d, err = driver.Listen("", cfg); err == nil {
				past, err = flight.New(w, d, flight.Config{Keep: 6 * time.Second})
			}
		} else {
			cfg.Client = control.ClientConfig{URL: h.Name()}
			if d, err = driver.Dial("10.0.0.1:7777", cfg); err == nil {
				mine, err = flight.New(w, d, flight.Config{})
			}
		}
		n := int32(0)
		return host(func(now time.Time) error {
			d.TickDispatch(now)
			at := d.Time(now)
			if n++; h.IsServer() {
				for _, c := range chests {
					c.X += 0.01
				}
				if n%20 == 0 {
					chests["called"].Fill = n
					require.NoError(t, open.Call(chests["called"]))
				}
				chests["owned"].Key = n / 30
				switch n {
				case 780:
					owner := chests["owned"].Owner()
					owner.SetViewTarget(chests["owned"])
				case 420: // it closes 5 s later
					chests["left"].SetOnlyOwner(true)
				case 721:
					chests["changed"].Once = 5
					chests["changed"].Pack.Get()[0] = 9
				}
			}
			w.Step(at)
			if !h.IsServer() {
				mine.Look(at)
			}
			d.TickFlush(now)
			return d.Err()
		}), err
	})
	playWithAnn(t, sim, 14*time.Second)
	return filmOfBoth(t, "chests", past, mine)
}

// TestLookingBack: a client's film that is older than the server's, with some wrong times, finds its connection and its actors; what reliable bunches carried isn't missed;
// an actor whose channel was closed isn't there, without a client's film too; and what the page says of values that aren't sent is what holds.
func TestLookingBack(t *testing.T) {
	file := chestFilm(t)
	ctx := open(t)
	var l log
	l.listen(ctx)
	eval := func(js string, to any) {
		t.Helper()
		require.NoError(t, chromedp.Run(ctx, chromedp.Evaluate(`(async () => { const settle = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
			const row = (id, kind, field, at) => { conn = film.Conns[0]; actor = film.Actors.findIndex(a => a.Parts.find(p => p.Name === "Kind").Of[0] === kind); part = field; go(at * 1000);
				return settle().then(() => { const tr = [...el("fields").tBodies[0].rows].find(tr => tr.cells[0].textContent === field); return [tr.className.trim(), ...[...tr.cells].map(c => c.textContent)].join("|"); }); };
			`+js+` })()`, to, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) })))
	}
	require.NoError(t, chromedp.Run(ctx, runtime.Enable(), chromedp.Navigate("file://"+file), chromedp.Poll(`film && document.querySelectorAll("#actors tbody tr").length === 5`, nil)))

	// The client's film, of which a packet is said to have come much too early, and one much too late.
	var why, clock string
	var ahead, early float64
	var kinds []string
	eval(`return film.Steps[0]`, &early)
	require.Greater(t, early, 4000.0, "the server's film begins when the client has long played")
	eval(`return conn.shown.ahead`, &ahead)
	eval(`const c = await unpack(document.querySelector("script.client").textContent), got = c.Conns[0].Got;
		got[got.length >> 1][1] -= 300; got[(got.length >> 1) + 9][1] += 300;
		film = await unpack(el("film").textContent); conn = null;
		return join(c) || String(conn.shown.ahead)`, &why)
	require.InDelta(t, ahead, number(t, why), 5, "the clocks are as far apart")
	eval(`await row("fields", "called", "Fill", 11); return el("now").textContent`, &clock)
	require.Regexp(t, `s by the client's clock$`, clock)
	eval(`return conn.Sent.filter(p => p.Got < p.At || p.Fate === 1 && p.Got > p.Told).map(p => String(p.ID))`, &kinds)
	require.Empty(t, kinds, "it came before it was sent, or after its ack")
	eval(`go(11000); await settle(); return film.Actors.map((a, n) => gone(conn, n) ? "gone" : shownAt(conn, n, 11000).a.Parts.find(p => p.Name === "Kind").Of[0])`, &kinds)
	require.Equal(t, []string{"called", "left", "owned", "changed", "gone"}, kinds, "the client has them from before the server's film")
	// One of a busy machine, whose ticker was late for a third of the packets.
	eval(`const c = await unpack(document.querySelector("script.client").textContent), now = conn.shown.ahead;
		c.Conns[0].Got.forEach((g, i) => { if (i % 9 < 3) g[1] -= 250; });
		film = await unpack(el("film").textContent); conn = null;
		const why = join(c); await row("fields", "called", "Fill", 11); return why || Math.abs(conn.shown.ahead - now) < 200 && el("now").textContent`, &why)
	require.Regexp(t, `s by the client's clock, give or take \d+ ms$`, why)
	eval(`film = await unpack(el("film").textContent); conn = null; return join(await unpack(document.querySelector("script.client").textContent))`, &why)
	require.Empty(t, why)

	// What came with reliable calls.
	var rows []string
	eval(`const out = []; for (let at = 8; at < 13; at += 0.0501) out.push(await row("fields", "called", "Fill", at)); return out`, &rows)
	red := 0
	for _, r := range rows {
		require.NotContains(t, r, "no record")
		if len(r) > 5 && r[:5] == "picke" && r[7:12] == "apart" {
			red++
			require.Regexp(t, `in flight: a reliable bunch of its channel|a reliable bunch of its channel, in packet \d+ (is lost|was lost)|sent at|came at`, r)
		}
	}
	require.Greater(t, red, 5)
	require.Less(t, red, len(rows)*3/4, "mostly it has come")
	var ways string
	eval(`return el("ways").textContent`, &ways)
	require.NotContains(t, ways, "not sent: a newer value")
	require.Contains(t, ways, "with a reliable bunch of its channel, in packet")

	// Without the client's film.
	eval(`film = await unpack(el("film").textContent); conn = film.Conns[0]; window.reds = 0;
		const out = []; for (const at of [11, 13.5]) { out.push(await row("fields", "left", "(x)", at)); out.push([...el("actors").tBodies[0].rows].find(tr => tr.cells[1].textContent === film.Actors[actor].ID).textContent); } return out`, &rows)
	require.Regexp(t, `\|\(x\)\|[\d.]+\|[\d.]+\|`, rows[0])
	require.NotContains(t, rows[1], "not there")
	require.Regexp(t, `^picked\|\(x\)\|[\d.]+\|not there\|\|its channel was closed at 1[12]\.\d+, in packet \d+: it isn't relevant to this connection any more$`, rows[2])
	require.Contains(t, rows[3], "not there")
	var drawnAt float64
	eval(`return had(conn, actor, film.Actors[actor].Parts[0], 13500)`, &drawnAt)
	require.EqualValues(t, -1, drawnAt)

	var far string
	eval(`return row("fields", "far", "(x)", 12.5)`, &far)
	require.Regexp(t, `^picked\|\(x\)\|30\|not known\|\|nothing of it was sent in this film: not relevant: 29\.0 away from the viewpoint \(1, 0, 0\), which has stood there since [\d.]+ at least; it is seen within 16$`, far)
	eval(`return row("fields", "far", "(x)", 13.5)`, &far)
	require.Regexp(t, `not relevant: \d+\.\d away from the viewpoint, Chest actor \d+; it is seen within 16$`, far)

	// What isn't sent.
	eval(`return [await row("fields", "changed", "Once", 13.5), await row("fields", "changed", "Pack", 11), await row("fields", "changed", "Pack", 13.5)]`, &rows)
	require.Regexp(t, `^picked apart\|Once\|5\|not known\|\|set at 12\.\d+, and not sent; its condition is initial: a change after the opening is never sent$`, rows[0])
	require.NotContains(t, rows[1], "nobody is told")
	require.Regexp(t, `^picked apart\|Pack\|\[1 2\]\|.*at 12\.\d+ the game was found to have set another value, and nobody is told: what the server has here is what it was told last`, rows[2])
	var order string
	eval(`return [...el("fields").tBodies[0].rows].map(tr => tr.className.includes("apart") ? "r" : "-").join("")`, &order)
	require.Regexp(t, `^r+-+$`, order, "red rows come first")
	eval(`actor = 0; part = ""; go(13000); await settle(); [...el("notes").children].find(n => n.textContent.includes("nobody is told")).onclick(); await settle(); return part`, &why)
	require.Equal(t, "Pack", why, "the note's field")

	// What isn't known, and why.
	eval(`const first = film.Steps[0] / 1000 + 0.001; return [await row("fields", "changed", "Kind", 11), await row("fields", "left", "X", first), el("ways").tBodies[0].rows[0].textContent]`, &rows)
	before := `its channel was opened before the film began, so what it had then isn't known: `
	require.Regexp(t, `^picked\|Kind\|changed\|not known\|\|`+before+`nothing of Kind was sent since$`, rows[0])
	require.Regexp(t, `^picked( late)?\|X\|[\d.]+\|not known\|\|`, rows[1])
	require.Regexp(t, before+`known from [\d.]+ on, by packet \d+$|in packet`, rows[2])

	// Whom the connection looks from comes first among the actors.
	eval(`const out = []; conn = film.Conns[0]; for (const at of [12, 13.5]) { go(at * 1000); await settle(); out.push(film.Actors.find(a => a.ID === el("actors").tBodies[0].rows[0].cells[1].textContent).Parts.find(p => p.Name === "Kind").Of[0]); } return out`, &kinds)
	require.Equal(t, []string{"called", "owned"}, kinds)

	// Corrections of a second are one note.
	eval(`film.Notes = [0, 100, 200, 1500].map(at => ({ At: at, Conn: 0, Actor: 0, Text: "its prediction was corrected: " + at })); conn = null; go(6000); await settle();
		return [...el("notes").children].map(n => n.textContent)`, &rows)
	require.Equal(t, []string{"0.000 its prediction was corrected: 0; 2 more of its corrections until 0.200", "1.500 its prediction was corrected: 1500"}, rows)

	// The client's film alone.
	eval(`film = await unpack(document.querySelector("script.client").textContent);
		const out = [await row("fields", "owned", "Key", 10), await row("fields", "owned", "X", 10)]; out.push(el("ways").textContent); await row("fields", "owned", "Key", 10); out.push(el("ways").textContent); return out`, &rows)
	require.Regexp(t, `^picked\|Key\|\d+\|\d+\.\d+\|\|came at \d+\.\d+$`, rows[0])
	require.Regexp(t, `^picked\|X\|[\d.]+\|\d+\.\d+\|\|came at \d+\.\d+$`, rows[1])
	for _, ways := range rows[2:] {
		require.NotContains(t, ways, "not sent")
		require.Contains(t, ways, "came at")
	}
	eval(`conn = film.Conns[0]; return conn.Calls.map(call => callWay(conn, call)[0])`, &rows)
	require.NotEmpty(t, rows)
	for _, way := range rows {
		require.Equal(t, "came from the server", way)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Empty(t, l.said, "what the page complained about")
}

func number(t *testing.T, s string) (v float64) {
	t.Helper()
	_, err := fmt.Sscan(s, &v)
	require.NoError(t, err, s)
	return v
}
