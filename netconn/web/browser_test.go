//go:build !js

package web

import (
	"encoding/hex"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/web/webtest"
)

// buildPlayer builds testdata/player for browsers, and returns its file and the directory with Go's support for it.
func buildPlayer(t *testing.T) (wasm, support string) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the go command isn't in the PATH, which builds the client for browsers")
	}
	client, support, err := webtest.Build(t.Context(), "./testdata/player")
	require.NoError(t, err)
	wasm = filepath.Join(t.TempDir(), "player.wasm")
	require.NoError(t, os.WriteFile(wasm, client, 0o600))
	return wasm, support
}

// TestNode: the client for browsers plays in node, whose WebSocket is a browser's.
func TestNode(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node is installed; apt-get install nodejs")
	}
	flags := []string{}
	if out, _ := exec.Command(node, "-p", "typeof WebSocket").Output(); strings.TrimSpace(string(out)) != "function" {
		flags = append(flags, "--experimental-websocket")
		if out, err := exec.Command(node, "--experimental-websocket", "-p", "typeof WebSocket").Output(); err != nil || strings.TrimSpace(string(out)) != "function" {
			t.Skip("this node has no WebSocket: it is older than 20.10")
		}
	}
	wasm, support := buildPlayer(t)
	g := newGame(t, driver.Config{}, ServerConfig{})
	plain := httptest.NewServer(g.door.Server) // as behind a proxy that ends TLS
	defer plain.Close()
	cmd := exec.Command(node, append(flags, filepath.Join(support, "wasm_exec_node.js"), wasm, plain.URL, "websocket", "-", hex.EncodeToString(gameKey[:]), g.srv.LocalAddr().String())...)
	ended := make(chan error, 1)
	var out []byte
	go func() {
		var err error
		out, err = cmd.CombinedOutput()
		ended <- err
	}()
	for {
		select {
		case err := <-ended:
			require.NoError(t, err, string(out))
			require.Contains(t, string(out), "PASS")
			eventually(t, "all that was sent before Close", func() bool {
				g.tick()
				return strings.Contains(string(out), fmt.Sprintf("sent %d\n", g.door.Counters().Received))
			})
			require.EqualValues(t, 1, g.door.Counters().WebSockets)
			return
		default:
			g.tick()
		}
	}
}

var playerPage = template.Must(template.New("").Parse(`<!doctype html><title>player</title>
<script src="/support/wasm_exec.js"></script>
<script>
globalThis.playerArgs = {{.}};
let said = false, result = "", exited = false, open = 0;
const say = text => { // once
  if (!said) fetch("/ended", {method: "POST", body: String(text)});
  said = true;
};
addEventListener("error", e => say("FAIL: " + e.message));
// The result is said when the program has exited and its WebSockets have told their end, of which it mustn't hear then.
const over = () => { if (exited && open === 0) say(result); };
globalThis.WebSocket = class extends WebSocket {
  constructor(url) {
    super(url);
    open++;
    this.addEventListener("close", () => setTimeout(() => { open--; over(); }));
  }
};
globalThis.playerEnded = text => { result = text; };
const go = new Go();
WebAssembly.instantiateStreaming(fetch("/player.wasm"), go.importObject).then(r => go.run(r.instance)).then(() => { exited = true; over(); }, e => say("FAIL: " + e));
</script>`))

// TestChromium: the client for browsers plays in a headless Chromium, by both ways at once, beside a native one over UDP, and finds the packet size in both
// directions.
func TestChromium(t *testing.T) {
	chromium, err := webtest.FindChromium()
	if err != nil {
		t.Skip(err)
	}
	wasm, support := buildPlayer(t)
	said := make(chan string, 16)
	var g *game
	pages := playerPages(wasm, support, said)
	var site *httptest.Server
	pages.HandleFunc("/play", func(w http.ResponseWriter, r *http.Request) {
		url, way := g.door.url, r.FormValue("way")
		if way == WebSocket.String() {
			url = site.URL + "/bunchnet" // a certificate by its hash is for WebTransport only
		}
		_ = playerPage.Execute(w, fmt.Sprint(url, " ", way, " ", hex.EncodeToString(g.door.hash[:]), " ", hex.EncodeToString(gameKey[:]), " ", g.srv.LocalAddr()))
	})
	site = httptest.NewServer(pages)
	defer site.Close()
	g = newGame(t, driver.Config{}, ServerConfig{Origins: []string{site.URL}})
	pages.Handle("/bunchnet", g.door.Server)

	g.dial(UDP, driver.Config{})
	for _, way := range ways {
		result := playIn(t, g, chromium, site.URL+"/play?way="+way.String(), said)
		require.Equal(t, "PASS", result, "%v: %+v", way, g.door.Counters())
	}
	n := g.door.Counters()
	require.EqualValues(t, []uint64{1, 1}, []uint64{n.WebTransports, n.WebSockets})
	require.Zero(t, n.Unread+n.BadOrigin)
	require.Less(t, n.TooLarge, uint64(50), "those that search for the packet size")
	require.Nil(t, g.clients[0].end, "the native client plays on")
}

// playerPages serves the client, and passes on what it says at its end.
func playerPages(wasm, support string, said chan<- string) *http.ServeMux {
	pages := http.NewServeMux()
	pages.Handle("/support/", http.StripPrefix("/support/", http.FileServer(http.Dir(support))))
	pages.HandleFunc("/player.wasm", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, wasm) })
	pages.HandleFunc("/ended", func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(io.LimitReader(r.Body, 1<<16))
		said <- string(text)
	})
	return pages
}

// playIn has a headless Chromium open a page while the game goes on, until the page has said its result.
func playIn(t *testing.T, g *game, chromium, page string, said <-chan string) (result string) {
	dir, err := os.MkdirTemp("", "chromium")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	cmd := exec.Command(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--remote-debugging-port=0", "--user-data-dir="+dir, page)
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for end := time.Now().Add(2 * patience); result == "" && time.Now().Before(end); g.tick() {
		select {
		case result = <-said:
		default:
		}
	}
	require.NoError(t, cmd.Process.Kill())
	<-ended
	return result
}

// TestChromiumMoves: amid a game the path of a tab's WebTransport dies, and its connection goes on by WebSocket.
func TestChromiumMoves(t *testing.T) {
	chromium, err := webtest.FindChromium()
	if err != nil {
		t.Skip(err)
	}
	wasm, support := buildPlayer(t)
	said := make(chan string, 16)
	pages := playerPages(wasm, support, said)
	site := httptest.NewServer(pages)
	defer site.Close()
	m := newMovingFor(t, ServerConfig{Origins: []string{site.URL}})
	pages.Handle("/bunchnet", m.door.Server)
	pages.HandleFunc("/play", func(w http.ResponseWriter, _ *http.Request) {
		_ = playerPage.Execute(w, fmt.Sprint("moves ", m.cfg.URL, " ", site.URL, "/bunchnet ", hex.EncodeToString(m.door.hash[:]), " ", hex.EncodeToString(m.token(7)), " ", m.srv.LocalAddr()))
	})
	step := m.also
	dark := false
	m.also = func(now time.Time) {
		step(now)
		if n := m.door.Counters(); !dark && n.WebTransports == 1 && n.Received > 200 {
			m.darken(100)
			dark = true
		}
	}
	require.Equal(t, "PASS", playIn(t, m.game, chromium, site.URL+"/play", said), "%+v", m.door.Counters())
	require.EqualValues(t, 1, m.door.Counters().Moved)
	require.EqualValues(t, 1, m.srv.Counters.Accepted)
}
