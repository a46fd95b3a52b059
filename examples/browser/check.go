package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/png"
	"io"
	"net/url"
	"os"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/bunchnet/bunchnet/examples/tanks/game"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/web"
)

// patience is how long anything may take on a machine that has much else to do.
const patience = 2 * time.Minute

// seen is what a client has, as the page's view function says it.
type seen struct {
	Way, Err, Board                                                 string
	Tried                                                           []string
	Joined                                                          bool
	X, Y                                                            float64
	Score, Shots, Heard, Drones, Crates, OthersAmmo, Waiting, Drawn int
	Inputs, Corrections, Draws, Late, RTT, P50, P99                 float64
	Ticks, Dials                                                    int
}

// tab is a player in a page.
type tab struct {
	name string
	ctx  context.Context
	stop context.CancelFunc
}

// match is a game of tabs and native clients.
type match struct {
	*server
	ctx    context.Context
	o      options
	tabs   []tab
	native map[string]*game.Client
}

// check plays with two tabs and two native clients, and compares what they have with what the server has.
func check(ctx context.Context, out io.Writer, o options) (err error) {
	c, err := build(ctx)
	if err != nil {
		return err
	}
	o.http, o.web, o.udp, o.domain, o.public = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", "", ""
	s, err := listen(o, c)
	if err != nil {
		return err
	}
	m := &match{server: s, ctx: ctx, o: o, native: map[string]*game.Client{}}
	defer func() { err = errors.Join(err, m.close()) }()
	browser, stop, err := chromium(ctx)
	if err != nil {
		return err
	}
	defer stop()
	bad := netsim.Settings{Lag: o.lag, LagVariance: o.lag / 10, Loss: o.loss}
	for i, name := range []string{"Ann", "Bob"} {
		if m.native[name], err = s.native(name, bad, o.seed+2*uint64(i), game.Bot); err != nil {
			return err
		}
	}
	for _, name := range []string{"Cid", "Dora"} {
		t := tab{name: name}
		t.ctx, t.stop = chromedp.NewContext(browser)
		m.tabs = append(m.tabs, t)
		query := url.Values{"name": {name}, "bot": {""}, "lag": {o.lag.String()}, "loss": {fmt.Sprint(o.loss)}}
		if err := m.run(t, chromedp.Navigate(s.url+"/?"+query.Encode())); err != nil {
			return err
		}
	}
	if err := m.until("all play", func(all map[string]seen) error {
		for name, v := range all {
			if !v.Joined {
				return fmt.Errorf("%s doesn't play: %s %v", name, v.Err, v.Tried)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	fmt.Fprintf(out, "two tabs and two native clients play for %d s, %v ± %v each way, %.0f %% lost\n", o.seconds, bad.Lag, bad.LagVariance, bad.Loss)
	for end := time.Now().Add(time.Duration(o.seconds) * time.Second); time.Now().Before(end); {
		if err := m.tick(); err != nil {
			return err
		}
	}
	for _, c := range m.native {
		if err := c.Say("hello"); err != nil {
			return err
		}
	}
	if err := errors.Join(m.picture(), m.inspected()); err != nil {
		return err
	}
	for _, c := range m.native {
		c.Still()
	}
	for _, t := range m.tabs {
		if err := m.run(t, chromedp.Evaluate("still()", nil)); err != nil {
			return err
		}
	}
	m.game.Still()
	var all map[string]seen
	if err := m.until("all agree", func(now map[string]seen) error {
		all = now
		return m.agree(now)
	}); err != nil {
		return err
	}
	m.table(out, all)
	gone := m.tabs[1]
	m.tabs = m.tabs[:1]
	if err := m.shut(gone); err != nil {
		return err
	}
	if err := m.until("a closed page's player goes", func(map[string]seen) error {
		if _, there := m.game.Place(gone.name); there {
			return fmt.Errorf("%s is there, though its page is closed", gone.name)
		}
		return nil
	}); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s's page was closed, and its tank is gone\n", gone.name)
	_, err = fmt.Fprintf(out, "PASS: tabs by %s and native clients have the server's world\n", m.way())
	return err
}

// way is how tabs should come.
func (m *match) way() string {
	if m.o.ways == web.WebSocket.String() {
		return m.o.ways
	}
	return web.WebTransport.String()
}

// tick is a frame of everything in this process.
func (m *match) tick() error {
	time.Sleep(time.Second / 60)
	now := time.Now()
	for name, c := range m.native {
		if err := errors.Join(c.Tick(now), c.Driver.Err()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return errors.Join(m.game.Tick(now), m.ctx.Err())
}

// run has a tab do something, while the game goes on.
func (m *match) run(t tab, actions ...chromedp.Action) error {
	done := make(chan error, 1)
	go func() { done <- chromedp.Run(t.ctx, actions...) }()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		select {
		case err := <-done:
			return err
		default:
		}
		if err := m.tick(); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s's tab does nothing for %v", t.name, patience)
}

// shut closes a tab's page. The tab's own stop gives Chromium one second for it, and then lets the page be in silence.
func (m *match) shut(t tab) error {
	defer t.stop()
	c := chromedp.FromContext(t.ctx)
	return m.run(m.tabs[0], chromedp.ActionFunc(func(ctx context.Context) error {
		return target.CloseTarget(c.Target.TargetID).Do(cdp.WithExecutor(ctx, c.Browser))
	}))
}

// look is what all have now.
func (m *match) look() (map[string]seen, error) {
	all := map[string]seen{}
	for _, t := range m.tabs {
		var v seen
		if err := m.run(t, chromedp.Evaluate(`globalThis.view ? view() : {Err: document.getElementById("loading").textContent}`, &v)); err != nil {
			return nil, err
		}
		all[t.name] = v
	}
	for name, c := range m.native {
		at, ok := c.Own()
		v := c.View()
		all[name] = seen{Way: "udp", Board: v.Board, Joined: ok, X: at.X, Y: at.Y, Score: c.Score(name), Shots: c.Shots, Heard: len(c.Heard), Drones: v.Drones, Crates: v.Crates,
			OthersAmmo: v.OthersAmmo, Waiting: v.Waiting, Inputs: float64(v.Inputs), Corrections: float64(v.Corrections), Draws: float64(v.Draws),
			Late: float64(v.LateDraws), RTT: c.RTT().Seconds() * 1000}
	}
	return all, nil
}

// until plays on until something is so for what all have, twice in a row, or for too long.
func (m *match) until(what string, f func(all map[string]seen) error) (err error) {
	for end, good := time.Now().Add(patience), 0; time.Now().Before(end); {
		all, failed := m.look()
		if failed != nil {
			return failed
		}
		if err = f(all); err != nil {
			good = 0
		} else if good++; good == 2 {
			return nil
		}
		for range 15 {
			if err := m.tick(); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("%s: not after %v: %w", what, patience, err)
}

// agree compares what all have with the server, once nothing moves.
func (m *match) agree(all map[string]seen) error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for name, v := range all {
		truth, there := m.game.Place(name)
		way := "udp"
		if m.native[name] == nil {
			way = m.way()
		}
		switch {
		case v.Err != "":
			wrong("%s: %s", name, v.Err)
		case !v.Joined || !there:
			wrong("%s has no tank", name)
		case truth.Distance(game.Vec{X: v.X, Y: v.Y}) > 0.05:
			wrong("%s's tank is at %v, and feels to be at %v, %v", name, truth, v.X, v.Y)
		}
		if v.Way != way {
			wrong("%s came by %q, and not by %s: %v", name, v.Way, way, v.Tried)
		}
		if v.Board != all["Ann"].Board || v.Score != m.game.Hits[name] {
			wrong("%s has the score board %s, Ann %s, and hit %d", name, v.Board, all["Ann"].Board, m.game.Hits[name])
		}
		if v.OthersAmmo > 0 || v.Waiting > 0 {
			wrong("%s knows of %d shells that the others have, and still shows %d that the server doesn't have", name, v.OthersAmmo, v.Waiting)
		}
		if v.Drones == m.game.Drones() || v.Crates == m.game.Crates() {
			wrong("%s sees everything, however far: %d drones, %d crates", name, v.Drones, v.Crates)
		}
		if v.Heard != len(m.native) {
			wrong("%s heard %d of %d", name, v.Heard, len(m.native))
		}
		if v.Inputs == 0 || v.Shots == 0 {
			wrong("%s did nothing: %.0f inputs, %d shots", name, v.Inputs, v.Shots)
		}
	}
	return errors.Join(errs...)
}

// table says what each player had.
func (m *match) table(out io.Writer, all map[string]seen) {
	fmt.Fprintln(out, "\nplayer  way           round trip  inputs  corrections  draws late  shots  score  drones seen  tick p50   p99")
	for _, name := range []string{"Ann", "Bob", "Cid", "Dora"} {
		v := all[name]
		tick := "       -        -"
		if v.P99 > 0 {
			tick = fmt.Sprintf("%5.1f ms %5.1f ms", v.P50, v.P99)
		}
		fmt.Fprintf(out, "%-6s  %-12s  %7.0f ms  %6.0f  %11.0f  %8.2f %%  %5d  %5d  %11d  %s\n", name, v.Way, v.RTT, v.Inputs, v.Corrections, 100*v.Late/max(v.Draws, 1), v.Shots, v.Score, v.Drones, tick)
	}
	fmt.Fprintln(out)
}

// color is a color that a picture must show.
type color struct {
	what  string
	rgb   [3]uint32
	least int // pixels
}

// picture looks at what a tab shows: its tank, others, what it sees of the field, and curves have colors of their own.
func (m *match) picture() error {
	var data []byte
	show := []chromedp.Action{chromedp.EmulateViewport(980, 770), page.BringToFront(), chromedp.Sleep(2 * time.Second), chromedp.CaptureScreenshot(&data)} // it draws when it is seen
	if err := m.run(m.tabs[0], show...); err != nil {
		return err
	}
	return shows(m.o.picture, data, []color{
		{"its own tank", [3]uint32{0x7f, 0xd6, 0x5a}, 60}, {"other tanks", [3]uint32{0x5a, 0xb0, 0xe6}, 60}, {"what it sees of the field", [3]uint32{0x3a, 0x42, 0x33}, 5000},
		{"the round trip's curve", [3]uint32{0xdc, 0xbe, 0x3c}, 100}, {"the data rate's curve", [3]uint32{0x5a, 0x8c, 0xe6}, 100},
	})
}

// inspected looks at what the inspector shows of the connection of the same tab: curves, packets and their fate, actors.
func (m *match) inspected() error {
	t := tab{name: "the inspector"}
	t.ctx, t.stop = chromedp.NewContext(m.tabs[0].ctx)
	defer t.stop()
	poll := func(js string) chromedp.Action { // not by frames, of which a tab behind another one has none
		return chromedp.Poll(js, nil, chromedp.WithPollingInterval(100*time.Millisecond), chromedp.WithPollingTimeout(patience))
	}
	open := []chromedp.Action{chromedp.EmulateViewport(1400, 1300), chromedp.Navigate(m.url + "/net/"), page.BringToFront(),
		poll(`[...document.querySelectorAll("#conns tbody tr")].some(r => r.cells[3].textContent === "` + m.tabs[0].name + `" && (r.click(), true))`),
		poll(`document.getElementById("which").textContent.endsWith("` + m.tabs[0].name + `") && document.querySelectorAll("#actors tbody tr").length > 10 && charts.rtt.data[0].length > 12`),
		poll(`[...document.querySelectorAll("#sent .p.lost")].some(p => p.querySelector(".reliable") && (p.click(), true))`)}
	if m.o.loss == 0 {
		open = open[:len(open)-1]
	}
	var data []byte
	if err := m.run(t, append(open, chromedp.CaptureScreenshot(&data))...); err != nil {
		return fmt.Errorf("the inspector: %w", err)
	}
	want := []color{{"packets that were acked", [3]uint32{0x3d, 0x9b, 0x5f}, 200}, {"the round trip's curve and received packets", [3]uint32{0x3b, 0x78, 0xc4}, 500}}
	if m.o.loss > 0 {
		want = append(want, color{"packets that were lost", [3]uint32{0xd6, 0x45, 0x3d}, 30})
	}
	return shows(m.o.inspector, data, want)
}

// shows checks that a picture has colors, and keeps it as a file with a name.
func shows(name string, data []byte, colors []color) error {
	if name != "" {
		if err := os.WriteFile(name, data, 0o644); err != nil {
			return err
		}
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return err
	}
	found := map[[3]uint32]int{}
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			r, g, b, _ := img.At(x, y).RGBA()
			found[[3]uint32{r >> 8, g >> 8, b >> 8}]++
		}
	}
	for _, want := range colors {
		if found[want.rgb] < want.least {
			return fmt.Errorf("the picture doesn't show %s: %d pixels of it", want.what, found[want.rgb])
		}
	}
	return nil
}

// close ends the clients and the server.
func (m *match) close() (err error) {
	for _, t := range m.tabs {
		t.stop()
	}
	for _, c := range m.native {
		err = errors.Join(err, c.Driver.Close())
	}
	return errors.Join(err, m.server.close())
}
