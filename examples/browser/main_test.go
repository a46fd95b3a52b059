package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bunchnet/bunchnet/examples/tanks/game"
	"github.com/bunchnet/bunchnet/netconn/web/webtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/letsencrypt/pebble/v2/va.VAImpl.processTasks")) // it has no end
}

// TestCheck: two tabs of a Chromium and two native clients play, with WebTransport and without.
func TestCheck(t *testing.T) {
	for _, ways := range []string{"all", "websocket"} {
		t.Run(ways, func(t *testing.T) {
			var out bytes.Buffer
			err := check(t.Context(), &out, options{ways: ways, seed: 1, seconds: 5, lag: 40 * time.Millisecond, loss: 3})
			if errors.Is(err, webtest.ErrNoChromium) {
				t.Skip(err)
			}
			require.NoError(t, err, out.String())
			require.Contains(t, out.String(), "\nPASS")
		})
	}
}

// TestHiddenTab: a page in the background, whose timers Chromium lets run once a second and soon once a minute, keeps its player or comes back by itself
// as the same player once it is seen, whether the server sends much meanwhile or little.
func TestHiddenTab(t *testing.T) {
	if os.Getenv("CI") == "" {
		t.Skip("it takes a minute; set CI")
	}
	c, err := build(t.Context())
	require.NoError(t, err)
	for _, ways := range []string{"all", "websocket"} {
		t.Run(ways, func(t *testing.T) {
			t.Parallel()
			throttled := []chromedp.ExecAllocatorOption{chromedp.Flag("headless", "new"), chromedp.Flag("disable-background-timer-throttling", false),
				chromedp.Flag("disable-backgrounding-occluded-windows", false), chromedp.Flag("disable-renderer-backgrounding", false),
				chromedp.Flag("enable-features", "IntensiveWakeUpThrottling:grace_period_seconds/3")} // 5 minutes else
			browser, stop, err := chromium(t.Context(), throttled...)
			if errors.Is(err, webtest.ErrNoChromium) {
				t.Skip(err)
			}
			require.NoError(t, err)
			defer stop()
			o := options{http: "127.0.0.1:0", web: "127.0.0.1:0", udp: "127.0.0.1:0", ways: ways, seed: 1}
			s, err := listen(o, c)
			require.NoError(t, err)
			m := &match{server: s, ctx: t.Context(), o: o, native: map[string]*game.Client{}}
			defer func() { require.NoError(t, m.close()) }()
			ann, other := tab{name: "Ann"}, tab{name: "the tab in front"}
			ann.ctx, ann.stop = chromedp.NewContext(browser)
			other.ctx, other.stop = chromedp.NewContext(browser)
			m.tabs = []tab{ann}
			defer other.stop()
			plays := func(what string, dials int) (ann seen) {
				t.Helper()
				require.NoError(t, m.until(what, func(all map[string]seen) error {
					ann = all["Ann"]
					if truth, there := m.game.Place("Ann"); !ann.Joined || ann.Err != "" || !there || truth.Distance(game.Vec{X: ann.X, Y: ann.Y}) > 1 || ann.Dials < dials {
						return fmt.Errorf("%+v, %v at %v", ann, there, truth)
					}
					return nil
				}))
				return ann
			}
			require.NoError(t, m.run(other, chromedp.Navigate("about:blank")))
			require.NoError(t, m.run(ann, chromedp.Navigate(s.url+"/?name=Ann"), page.BringToFront()))
			before := plays("it plays", 1)
			for _, how := range []string{"amid the game", "when little is sent", "and frozen"} {
				frozen := how == "and frozen" // as Chromium does with pages that use much, and when memory is short
				if how == "when little is sent" {
					m.game.Still()
				}
				var state string
				require.NoError(t, m.run(other, page.BringToFront()))
				require.NoError(t, m.run(ann, chromedp.Evaluate("document.visibilityState", &state)))
				require.Equal(t, "hidden", state)
				if frozen {
					require.NoError(t, m.run(ann, page.SetWebLifecycleState(page.SetWebLifecycleStateStateFrozen)))
				}
				for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
					require.NoError(t, m.tick())
				}
				if frozen {
					require.NoError(t, m.run(ann, page.SetWebLifecycleState(page.SetWebLifecycleStateStateActive)))
				}
				require.NoError(t, m.run(ann, page.BringToFront()))
				dials := before.Dials
				if frozen {
					dials++ // until then it shows what there was
				}
				after := plays("it plays again", dials)
				t.Logf("hidden for 20 s %s it ticked %d times and dialed %d times", how, after.Ticks-before.Ticks, after.Dials-before.Dials)
				require.Equal(t, frozen, after.Dials > before.Dials)
				before = after
			}
		})
	}
}

// TestPages: what is at the page's address, and what isn't let in.
func TestPages(t *testing.T) {
	c := &client{wasm: []byte("wasm"), zipped: []byte("zipped"), support: []byte("support"), built: time.Now()}
	s, err := listen(options{http: "127.0.0.1:0", web: "127.0.0.1:0", udp: "127.0.0.1:0"}, c)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.close()) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}
	ask := func(method, path string, header ...string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, nil)
		require.NoError(t, err)
		for i := 0; i+1 < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := client.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(body)
	}
	status, body := ask("GET", "/")
	require.Equal(t, 200, status)
	require.Contains(t, body, "bunchnet = ")
	require.Contains(t, body, s.addr.String())
	require.NotContains(t, body, s.key.Hex())
	status, body = ask("GET", "/player.wasm")
	require.Equal(t, "wasm", body)
	_, body = ask("GET", "/player.wasm", "Accept-Encoding", "br, gzip")
	require.Equal(t, "zipped", body)
	_, body = ask("GET", "/wasm_exec.js")
	require.Equal(t, "support", body)
	require.Equal(t, 200, status)

	status, body = ask("POST", "/token", "Authorization", "Bearer "+strings.Repeat("x", 16))
	require.Equal(t, 200, status)
	require.Len(t, body, 2048)
	status, _ = ask("POST", "/token", "Authorization", "Bearer short")
	require.Equal(t, 401, status)
	status, _ = ask("GET", "/token")
	require.Equal(t, 405, status)
	status, _ = ask("GET", "/other")
	require.Equal(t, 404, status)
	status, _ = ask("GET", "/bunchnet", "Origin", "https://evil.example", "Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")
	require.Equal(t, 403, status)
	require.EqualValues(t, 1, s.door.Counters().BadOrigin)
}

// TestListenRefuses: an address that no player could send to is told, and nothing stays open.
func TestListenRefuses(t *testing.T) {
	_, err := listen(options{http: "127.0.0.1:0", web: "127.0.0.1:0", udp: ":0"}, &client{})
	require.ErrorContains(t, err, "-public")
	_, err = listen(options{http: "127.0.0.1:0", web: "127.0.0.1:0", udp: "127.0.0.1:0", public: "here"}, &client{})
	require.Error(t, err)
	_, err = listen(options{http: "nowhere", web: "127.0.0.1:0", udp: "127.0.0.1:0"}, &client{})
	require.Error(t, err)
}
