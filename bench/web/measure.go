package main

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/bunchnet/bunchnet/bench/internal/tunnel"
	"github.com/bunchnet/bunchnet/bench/web/echo"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/web"
	"github.com/bunchnet/bunchnet/netconn/web/webtest"
)

const (
	patience  = 3 * time.Minute // beside the time of measuring
	loadTries = 5
)

var page = template.Must(template.New("").Parse(`<!doctype html><title>echo</title><link rel="icon" href="data:,">
<script src="/wasm_exec.js"></script>
<script>
globalThis.config = {{.}};
const failed = e => { globalThis.result = JSON.stringify({Err: String(e)}); };
const go = new Go();
WebAssembly.instantiateStreaming(fetch("/player.wasm"), go.importObject).then(r => go.run(r.instance)).catch(failed);
</script>`))

// site is the server's end of the network: the echo by three ways, and the page.
type site struct {
	url, webTransport, hash, udp string
	key                          netcode.Key
	http                         *http.Server
	echo                         chan error
	stop                         context.CancelFunc
}

// open starts the server's end; it runs in its namespace.
func open(ctx context.Context, wasm []byte, support string) (s *site, err error) {
	s = &site{echo: make(chan error, 1)}
	if s.key, err = netcode.GenerateKey(nil); err != nil {
		return nil, err
	}
	pages, err := net.Listen("tcp", tunnel.ServerAddr+":0")
	if err != nil {
		return nil, err
	}
	s.url = "http://" + pages.Addr().String()
	door, err := web.NewServer(web.ServerConfig{Origins: []string{s.url}})
	if err != nil {
		return nil, errors.Join(err, pages.Close())
	}
	cert, hash, err := web.NewCertificate(time.Now(), tunnel.ServerAddr)
	if err != nil {
		return nil, errors.Join(err, pages.Close(), door.Close())
	}
	at, err := door.Listen(tunnel.ServerAddr+":0", web.ListenConfig{TLS: &tls.Config{Certificates: []tls.Certificate{cert}}})
	if err != nil {
		return nil, errors.Join(err, pages.Close(), door.Close())
	}
	socket, err := udp.Listen(tunnel.ServerAddr+":0", udp.Config{NoPoller: true})
	if err != nil {
		return nil, errors.Join(err, pages.Close(), door.Close())
	}
	s.webTransport, s.hash, s.udp = "https://"+at.String()+"/bunchnet", hex.EncodeToString(hash[:]), socket.LocalAddr().String()
	mux := http.NewServeMux()
	mux.Handle("/bunchnet", door)
	mux.Handle("/wasm_exec.js", http.FileServer(http.Dir(support)))
	mux.HandleFunc("/player.wasm", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/wasm")
		_, _ = w.Write(wasm) // who asked is gone
	})
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		config := map[string]any{"URL": s.webTransport, "Hash": s.hash, "Server": s.udp, "Key": s.key.Hex(), "Seconds": json.Number(r.FormValue("seconds"))}
		if r.FormValue("way") == web.WebSocket.String() {
			config["URL"], config["WebSocket"] = s.url+"/bunchnet", true
		}
		text, err := json.Marshal(config)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_ = page.Execute(w, string(text)) // who asked is gone
	})
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = s.http.Serve(pages) }() // ends with close
	ctx, s.stop = context.WithCancel(ctx)
	go func() { s.echo <- echo.Serve(ctx, udp.Join(socket, door), s.key) }()
	return s, nil
}

func (s *site) close() error {
	s.stop()
	return errors.Join(<-s.echo, s.http.Close())
}

// rig is what every measurement needs.
type rig struct {
	chromium, support string
	wasm              []byte
}

func newRig(ctx context.Context) (r rig, err error) {
	if r.chromium, err = webtest.FindChromium(); err != nil {
		return r, err
	}
	r.wasm, r.support, err = webtest.Build(ctx, "github.com/bunchnet/bunchnet/bench/web/player")
	return r, err
}

// measure has all three ways at once, at one loss.
func (r rig) measure(ctx context.Context, o options, loss float64) (all []result, err error) {
	ctx, done := context.WithTimeout(ctx, time.Duration(o.seconds)*time.Second+patience)
	defer done()
	net, err := tunnel.New(netsim.Settings{Lag: o.delay, Loss: loss}, o.seed)
	if err != nil {
		return nil, err
	}
	defer net.Close()
	var s *site
	if net.Server(func() { s, err = open(ctx, r.wasm, r.support) }); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()

	// The page's address is no loopback one, so the browser has to be told that it may use what is for secure pages.
	flags := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(r.chromium), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WSURLReadTimeout(patience),
		chromedp.Flag("unsafely-treat-insecure-origin-as-secure", s.url))
	browsers, stop := chromedp.NewExecAllocator(ctx, flags...)
	defer stop()
	browser, stop := chromedp.NewContext(browsers)
	defer stop()
	if net.Client(func() { err = chromedp.Run(browser) }); err != nil {
		return nil, err
	}
	type end struct {
		result
		err error
	}
	ends := make(chan end)
	ways := []web.Way{web.UDP, web.WebTransport, web.WebSocket}
	var socket udp.Socket
	if net.Client(func() { socket, err = udp.Listen(tunnel.ClientAddr+":0", udp.Config{NoPoller: true}) }); err != nil {
		return nil, err
	}
	for _, way := range ways {
		go func() {
			e := end{result: result{way: way.String(), loss: loss}}
			if way == web.UDP {
				e.took, e.err = echo.Run(ctx, socket, s.udp, s.key, time.Duration(o.seconds)*time.Second)
			} else {
				e.took, e.err = inTab(browser, fmt.Sprintf("%s/echo?way=%v&seconds=%d", s.url, way, o.seconds))
			}
			ends <- e
		}()
	}
	found := map[string]result{}
	for range ways {
		e := <-ends
		if e.err != nil {
			err = errors.Join(err, fmt.Errorf("%s at %.0f %%: %w", e.way, loss, e.err))
		}
		found[e.way] = e.result
	}
	for _, way := range ways {
		all = append(all, found[way.String()])
	}
	return all, err
}

// inTab measures in a tab of its own.
func inTab(browser context.Context, url string) ([]float64, error) {
	tab, stop := chromedp.NewContext(browser)
	defer stop()
	var text string
	for try := 1; ; try++ {
		err := chromedp.Run(tab, chromedp.Navigate(url))
		if err == nil {
			break
		}
		if try == loadTries || !strings.Contains(err.Error(), "ERR_NETWORK_CHANGED") { // the browser hears late of its namespace's devices
			return nil, err
		}
	}
	if err := chromedp.Run(tab, chromedp.Poll("globalThis.result", &text, chromedp.WithPollingTimeout(0), chromedp.WithPollingInterval(time.Second))); err != nil {
		return nil, err
	}
	var r struct {
		Took []float64
		Err  string
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return nil, err
	}
	if r.Err != "" {
		return nil, errors.New(r.Err)
	}
	return r.Took, nil
}
