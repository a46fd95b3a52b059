package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	_ "image/png"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// patience is how long anything may take, on a machine that has much else to do.
const patience = 4 * time.Minute

// open starts a Chromium, or skips the test.
func open(t *testing.T) context.Context {
	var bin string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			bin = p
			break
		}
	}
	if bin == "" {
		t.Skip("no Chromium is installed; apt-get install chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(bin), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1400, 1900), chromedp.WSURLReadTimeout(patience))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 2*patience)
	t.Cleanup(cancel)
	return ctx
}

// log is what a page asks for and complains about.
type log struct {
	mu         sync.Mutex
	urls, said []string
}

func (l *log) listen(ctx context.Context) {
	chromedp.ListenTarget(ctx, func(ev any) {
		l.mu.Lock()
		defer l.mu.Unlock()
		switch ev := ev.(type) {
		case *network.EventRequestWillBeSent:
			l.urls = append(l.urls, ev.Request.URL)
		case *runtime.EventExceptionThrown:
			l.said = append(l.said, ev.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			for _, a := range ev.Args {
				l.said = append(l.said, string(a.Value))
			}
		}
	})
}

func shoot(t *testing.T, ctx context.Context, name string) image.Image {
	var png []byte
	require.NoError(t, chromedp.Run(ctx, chromedp.CaptureScreenshot(&png)))
	if dir := os.Getenv("SCREENSHOTS"); dir != "" {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644))
	}
	img, _, err := image.Decode(bytes.NewReader(png))
	require.NoError(t, err)
	return img
}

// colors is how many pixels of an image are near each color.
func colors(img image.Image, want map[string][3]int) map[string]int {
	n := map[string]int{}
	for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y++ {
		for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x++ {
			r, g, b, _ := img.At(x, y).RGBA()
			for name, c := range want {
				if near(r, c[0]) && near(g, c[1]) && near(b, c[2]) {
					n[name]++
				}
			}
		}
	}
	return n
}

func near(v uint32, want int) bool { d := int(v>>8) - want; return d > -12 && d < 12 }

// has waits until an element has a text within it, as channels come and go when they are idle, and takes all of it.
func has(element, text string, all *string) chromedp.Action {
	return chromedp.Poll(fmt.Sprintf(`(t => t.includes(%q) && t)(document.querySelector(%q).innerText)`, text, element), all)
}

// TestPage opens the page, waits for curves, chooses a connection, points at a packet, pauses.
func TestPage(t *testing.T) {
	i := play(t)
	mux := http.NewServeMux()
	mux.Handle("/some/where/", i)
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close) // behind the browser, whose stream it would wait for
	ctx := open(t)
	var l log
	l.listen(ctx)

	var role, rows, ended string
	require.NoError(t, chromedp.Run(ctx, network.Enable(), runtime.Enable(), chromedp.Navigate(web.URL+"/some/where/"),
		chromedp.Poll(`document.querySelectorAll("#conns tbody tr").length === 3 && document.querySelectorAll("#endings tbody tr").length === 1`, nil),
		chromedp.Poll(`document.querySelectorAll("#sent .p.acked").length > 20`, nil),
		chromedp.Poll(`charts && charts.bandwidth.data[0].length > 12`, nil),
		chromedp.Text("#role", &role), chromedp.Text("#conns", &rows), chromedp.Text("#endings", &ended)))
	require.Contains(t, role, "server at 127.0.0.1:")
	for _, name := range clients {
		require.Contains(t, rows, name)
	}
	require.Contains(t, ended, "closed by")
	require.Contains(t, ended, "Zoe")
	shoot(t, ctx, "page")
	var legend string
	require.NoError(t, chromedp.Run(ctx, chromedp.Text("#bandwidth .u-legend", &legend)))
	require.Regexp(t, `^at[\d.]+ sreceives[\d.]+sends[\d.]+$`, legend, "the newest figures, while the mouse is elsewhere")

	// The client with the worst network, whose name is only text.
	var title, chosen, channels, idle, actors, properties, calls, health, count string
	require.NoError(t, chromedp.Run(ctx,
		chromedp.Evaluate(`[...document.querySelectorAll("#conns tbody tr")].find(r => r.cells[3].textContent.startsWith("<img")).dataset.conn`, &chosen),
	))
	require.NoError(t, chromedp.Run(ctx, chromedp.Click(`#conns tr[data-conn="`+chosen+`"]`),
		chromedp.Poll(`document.querySelector("#conns tr.picked").dataset.conn === "`+chosen+`"`, nil),
		chromedp.Poll(`document.querySelectorAll("#sent .p.lost").length > 0 && document.querySelectorAll("#sent .again").length > 0`, nil),
		has("#channels", "Chat", &channels), chromedp.Text("#actors", &actors), chromedp.Text("#properties", &properties), chromedp.Title(&title),
		has("#idle", "1 Control", &idle), chromedp.Text("#calls", &calls), chromedp.Text("#figures", &health), chromedp.Text("#actorcount", &count)))
	require.Contains(t, idle, "1 Control")
	require.Contains(t, calls, "Ship.Fire()")
	require.Contains(t, health, "calls sent")
	require.Contains(t, health, "heap")
	require.Regexp(t, `calls sent\s+77\s+calls sent\s+78\s*$`, health, "two figures of one name")
	require.Equal(t, "256 of 300", count)
	require.Contains(t, channels, "Chat")
	require.Contains(t, channels, "of 8190")
	require.Contains(t, actors, "relevant to <img")
	require.Contains(t, properties, "75.0 %")
	require.Contains(t, title, "test game 127.0.0.1:")

	var packet, live string
	require.NoError(t, chromedp.Run(ctx, chromedp.Evaluate(`document.querySelector("#sent .p.lost").click()`, nil),
		chromedp.Text("#packet", &packet), chromedp.Text("#live", &live)))
	require.Regexp(t, `^Packet \d+ at [\d.]+ s, \d+ bytes, lost: (channel \d+|no bunches)`, packet)
	require.Equal(t, "paused", live)
	img := shoot(t, ctx, "connection")
	seen := colors(img, map[string][3]int{"acked": {0x3d, 0x9b, 0x5f}, "lost": {0xd6, 0x45, 0x3d}, "received": {0x3b, 0x78, 0xc4}, "again": {0xe0, 0x8a, 0x1e}})
	for name, least := range map[string]int{"acked": 500, "lost": 50, "received": 500, "again": 20} {
		require.Greater(t, seen[name], least, "%s pixels in the picture", name)
	}
	require.NoError(t, chromedp.Run(ctx, chromedp.Click("#pause"), chromedp.Poll(`document.querySelector("#live").textContent === "live"`, nil),
		chromedp.Poll(`document.querySelector("#role").textContent !== "`+role+`"`, nil)))

	l.mu.Lock()
	defer l.mu.Unlock()
	require.Empty(t, l.said, "what the page complained about")
	require.Greater(t, len(l.urls), 4)
	for _, u := range l.urls {
		if !strings.HasSuffix(u, "/favicon.ico") {
			require.True(t, strings.HasPrefix(u, web.URL+"/some/where/"), u)
		}
	}
}

// site is a running game's page, opened at a query.
func site(t *testing.T, query string) (context.Context, string) {
	i := play(t)
	mux := http.NewServeMux()
	mux.Handle("/net/", i)
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	ctx := open(t)
	require.NoError(t, chromedp.Run(ctx, chromedp.Navigate(web.URL+"/net/"+query),
		chromedp.Poll(`document.querySelectorAll("#conns tbody tr").length === 3 && document.querySelectorAll("#endings tbody tr").length === 1 && charts !== null`, nil)))
	return ctx, web.URL + "/net/"
}

// TestClicks: every press of 150 ms on a row chooses it, although the page changes four times a second; and the
// rows stay the elements that they were.
func TestClicks(t *testing.T) {
	ctx, _ := site(t, "")
	require.NoError(t, chromedp.Run(ctx, chromedp.Evaluate(`window.first = document.querySelector("#conns tbody tr"); 0`, nil)))
	type point struct{ X, Y float64 }
	for n := range 24 {
		var at point
		var id string
		require.NoError(t, chromedp.Run(ctx,
			chromedp.Evaluate(fmt.Sprintf(`document.querySelectorAll("#conns tbody tr")[%d].dataset.conn`, n%3), &id),
			chromedp.Evaluate(fmt.Sprintf(`(() => { const r = document.querySelectorAll("#conns tbody tr")[%d].cells[2].getBoundingClientRect(); return {X: r.x + 20, Y: r.y + r.height / 2}; })()`, n%3), &at)))
		require.NoError(t, chromedp.Run(ctx, chromedp.MouseEvent(input.MousePressed, at.X, at.Y, chromedp.ButtonLeft, chromedp.ClickCount(1)),
			chromedp.Sleep(150*time.Millisecond), chromedp.MouseEvent(input.MouseReleased, at.X, at.Y, chromedp.ButtonLeft, chromedp.ClickCount(1)),
			chromedp.Poll(`document.querySelector("#conns tr.picked")?.dataset.conn === "`+id+`" && new URLSearchParams(location.search).get("conn") === "`+id+`"`, nil, chromedp.WithPollingTimeout(patience))), "press %d", n)
	}
	var same bool
	require.NoError(t, chromedp.Run(ctx, chromedp.Evaluate(`window.first === document.querySelector("#conns tbody tr")`, &same)))
	require.True(t, same)
}

// TestPressWithoutRelease: a press whose release isn't told, as of the second button or outside of the window, neither stops the page
// nor has it keep all packets that there ever were.
func TestPressWithoutRelease(t *testing.T) {
	ctx, _ := site(t, "")
	for button := range 3 {
		var most int
		require.NoError(t, chromedp.Run(ctx,
			chromedp.Evaluate(fmt.Sprintf(`window.most = 0; dispatchEvent(new PointerEvent("pointerdown", {button: %d})); 0`, button), nil),
			chromedp.Evaluate(`window.from = latest.Detail.Sent[0].ID; window.watching = setInterval(() => { window.most = Math.max(window.most, el("sent").children.length); }, 20); 0`, nil),
			chromedp.Poll(`latest.Detail.Sent[0].ID > window.from + 200 && el("sent").known.has(latest.Detail.Conn + " " + latest.Detail.Sent[0].ID + "\0" + 0)`, nil, chromedp.WithPollingTimeout(patience)),
			chromedp.Evaluate(`clearInterval(window.watching); window.most`, &most)))
		require.LessOrEqual(t, most, 64, "button %d", button)
	}
}

// TestOperator: the address chooses connections; rows are sorted and filtered; packets of two connections share an axis;
// actors are filtered and paged; the bits and the calls stand above all of the channels; the export is a file.
func TestOperator(t *testing.T) {
	ctx, url := site(t, "?conn=2&also=3")
	poll := func(what, js string) {
		t.Helper()
		require.NoError(t, chromedp.Run(ctx, chromedp.Poll(js, nil, chromedp.WithPollingTimeout(patience))), what)
	}
	poll("the connection of the address", `document.querySelector("#conns tr.picked")?.dataset.conn === "2"`)
	poll("packets of two on one axis", `!el("beside").hidden && new Set(timeline.bars.map(b => b.conn)).size === 2 && timeline.bars.length > 20`)
	var checked string
	require.NoError(t, chromedp.Run(ctx, chromedp.Evaluate(`[...document.querySelectorAll("#conns tbody input")].filter(i => i.checked).map(i => i.closest("tr").dataset.conn).join()`, &checked)))
	require.Equal(t, "3", checked)
	require.NoError(t, chromedp.Run(ctx, chromedp.ScrollIntoView("#timeline")))
	shoot(t, ctx, "beside")

	rows := `[...document.querySelectorAll("#conns tbody tr")].map(r => r.dataset.conn).join()`
	ids := `[...document.querySelectorAll("#conns tbody tr")].map(r => Number(r.dataset.conn))`
	require.NoError(t, chromedp.Run(ctx, chromedp.Click(`th[data-sort=id]`)))
	poll("sorted by id, the largest first", ids+`.every((id, i, all) => i === 0 || all[i-1] > id)`)
	require.NoError(t, chromedp.Run(ctx, chromedp.Click(`th[data-sort=rtt]`)))
	poll("sorted by RTT", `(list => list.every((c, i) => i === 0 || list[i-1].Stats.RTT >= c.Stats.RTT))(`+ids+`.map(id => latest.Conns.find(c => c.ID === id)))`)
	require.NoError(t, chromedp.Run(ctx, chromedp.SendKeys("#connfilter", "BOB")))
	poll("filtered by name", `document.querySelectorAll("#conns tbody tr").length === 1 && el("conncount").textContent === "1 of 3"`)
	require.NoError(t, chromedp.Run(ctx, chromedp.Evaluate(`el("connfilter").value = ""; el("connfilter").dispatchEvent(new Event("input")); 0`, nil)))
	poll("all again", rows+`.split(",").length === 3`)

	require.NoError(t, chromedp.Run(ctx, chromedp.Click("#moreactors")))
	poll("the rest of the actors", `el("actorcount").textContent === "44 of 300, from 256" && document.querySelectorAll("#actors tbody tr").length === 44`)
	require.NoError(t, chromedp.Run(ctx, chromedp.SendKeys("#actorfilter", "29")))
	poll("actors by their id", `[...document.querySelectorAll("#actors tbody tr")].length === 13 && [...document.querySelectorAll("#actors tbody tr")].every(r => r.cells[1].textContent.includes("29"))`)

	var above, twice bool
	require.NoError(t, chromedp.Run(ctx,
		chromedp.Evaluate(`el("properties").getBoundingClientRect().top < el("actors").getBoundingClientRect().bottom && el("properties").getBoundingClientRect().top < el("channels").getBoundingClientRect().top`, &above),
		chromedp.Evaluate(`(names => new Set(names).size !== names.length)([...document.querySelectorAll("#conns th")].map(th => th.textContent))`, &twice)))
	require.True(t, above, "bits are not below the rows of something else")
	require.False(t, twice, "no two columns have one name")

	var export string
	require.NoError(t, chromedp.Run(ctx, chromedp.Evaluate(`el("export").href`, &export)))
	require.Equal(t, url+"export?conn=2&also=3&actors=29&sort=-rtt", export)
	resp, err := http.Get(export)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Contains(t, resp.Header.Get("Content-Disposition"), "attachment")
	var v struct{ Others []struct{ Conn int } }
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&v))
	require.Len(t, v.Others, 1)
}

// TestTooManyViewers: a page for which there is no place says so, and is live once there is one.
func TestTooManyViewers(t *testing.T) {
	web := httptest.NewServer(play(t))
	t.Cleanup(web.Close)
	var others []*http.Response
	t.Cleanup(func() {
		for _, o := range others {
			_ = o.Body.Close()
		}
	})
	for {
		o, err := http.Get(web.URL + "/events")
		require.NoError(t, err)
		others = append(others, o)
		if o.StatusCode == http.StatusServiceUnavailable {
			break
		}
		require.Equal(t, http.StatusOK, o.StatusCode)
	}
	ctx := open(t)
	live := func(is string) chromedp.Action {
		return chromedp.Poll(fmt.Sprintf(`el("live").textContent === %q`, is), nil, chromedp.WithPollingTimeout(patience))
	}
	require.NoError(t, chromedp.Run(ctx, chromedp.Navigate(web.URL+"/"), live("too many viewers")))
	require.NoError(t, others[0].Body.Close())
	require.NoError(t, chromedp.Run(ctx, live("live")))
}

// TestPathThatDies: a page whose connection died without a word, as that of a machine that slept, asks for events again.
func TestPathThatDies(t *testing.T) {
	web := httptest.NewServer(play(t))
	t.Cleanup(web.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var dead atomic.Int64 // connections up to this one carry nothing
	var ends sync.WaitGroup
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		ends.Wait()
	})
	var made atomic.Int64
	ends.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", web.Listener.Addr().String())
			if err != nil {
				_ = from.Close()
				continue
			}
			n := made.Add(1)
			for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
				ends.Go(func() {
					defer from.Close()
					defer to.Close()
					p := make([]byte, 64<<10)
					for {
						k, err := way[0].Read(p)
						if err != nil {
							return
						}
						if n > dead.Load() {
							if _, err := way[1].Write(p[:k]); err != nil {
								return
							}
						}
					}
				})
			}
		}
	})
	ctx := open(t)
	wait := chromedp.WithPollingTimeout(patience)
	require.NoError(t, chromedp.Run(ctx, chromedp.Navigate("http://"+l.Addr().String()+"/"), chromedp.Poll(`el("live").textContent === "live"`, nil, wait)))
	dead.Store(made.Load())
	var at float64
	require.NoError(t, chromedp.Run(ctx, chromedp.Sleep(time.Second), chromedp.Evaluate(`latest.At`, &at)))
	require.NoError(t, chromedp.Run(ctx, chromedp.Poll(fmt.Sprintf(`latest.At > %f`, at+1e9), nil, wait), chromedp.Navigate("about:blank")))
}
