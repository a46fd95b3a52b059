package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// pair is two kinds of routers, and the path between players behind them.
type pair struct{ host, guest, want string }

const (
	direct  = "direct"
	routed  = "through the router"
	relayed = "relayed"
)

// pairs is all of them; both ends of each kind host and join.
var pairs = []pair{
	{"open", "open", direct}, {"open", "masq", routed}, {"masq", "open", routed}, {"open", "random", routed}, {"random", "open", routed},
	{"masq", "masq", routed}, {"masq", "random", relayed}, {"random", "masq", relayed}, {"random", "random", relayed},
	{"tcp443", "open", relayed}, {"open", "tcp443", relayed}, {"tcp443", "masq", relayed}, {"masq", "tcp443", relayed}, {"random", "tcp443", relayed}, {"tcp443", "tcp443", relayed},
	{"same", "same", direct},
}

// patience is how long anything may take on a machine that has much else to do.
const patience = time.Minute

// lab is the network and the program that plays on it.
type lab struct {
	*network
	dir, program string
}

// run connects the pairs n times each, and changes the path of one.
func run(ctx context.Context, out io.Writer, n int, only string) (err error) {
	net, err := newNetwork(ctx)
	if err != nil {
		return err
	}
	defer net.close()
	dir, err := os.MkdirTemp("", "nat")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l := &lab{net, dir, filepath.Join(dir, "lobby")}
	build := exec.CommandContext(ctx, "go", "build", "-o", l.program, "github.com/bunchnet/bunchnet/examples/lobby")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if said, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, said)
	}
	if err := certificate(dir); err != nil {
		return err
	}
	serve, err := l.start("srv", "-serve", meetAddr+":443", "-relay", relayAddr+":3478", "-tls", relayAddr+":443", "-public", relayAddr, "-cert", l.file("cert.pem"), "-key", l.file("key.pem"))
	if err != nil {
		return err
	}
	defer serve.end()
	if _, err := serve.until("the rendezvous is at "); err != nil {
		return err
	}
	fmt.Fprintf(out, "%-8s %-8s %-20s %8s %8s\n", "host", "guest", "path", "p50 ms", "p99 ms")
	var wrong []string
	var all []int
	done := 0
	for _, p := range pairs {
		if only != "" && p.host != only && p.guest != only {
			continue
		}
		if p.host == "same" {
			if err := l.together(); err != nil {
				return err
			}
		}
		if err := l.place(p.host, p.guest); err != nil {
			return err
		}
		paths, took, err := l.connect(p, n)
		if err != nil {
			return fmt.Errorf("host behind %s, guest behind %s: %w", p.host, p.guest, err)
		}
		done++
		all = append(all, took...)
		fmt.Fprintf(out, "%-8s %-8s %-20s %8d %8d\n", p.host, p.guest, strings.Join(paths, ", "), percentile(took, 50), percentile(took, 99))
		if len(paths) != 1 || paths[0] != p.want {
			wrong = append(wrong, fmt.Sprintf("%s and %s: %s, not %s", p.host, p.guest, strings.Join(paths, ", "), p.want))
		}
		if p.host == "masq" && p.guest == "masq" {
			if err := errors.Join(l.change(out), l.move(out)); err != nil {
				return err
			}
		}
	}
	if done == 0 {
		return fmt.Errorf("no pair has a router %q", only)
	}
	fmt.Fprintf(out, "%-38s %8d %8d\n", "all", percentile(all, 50), percentile(all, 99))
	if wrong != nil {
		return errors.New(strings.Join(wrong, "; "))
	}
	_, err = fmt.Fprintf(out, "PASS: %d pairs of routers, each with the path it should have, %d connections\n", done, len(all))
	return err
}

func percentile(list []int, p int) int {
	slices.Sort(list)
	return list[(len(list)*p+99)/100-1]
}

// connect has a guest join a host n times, and returns the different paths and the times to connect in ms.
func (l *lab) connect(p pair, n int) (paths []string, took []int, err error) {
	host, code, err := l.host()
	if err != nil {
		return nil, nil, err
	}
	defer host.end()
	for range n {
		began := time.Now()
		guest, ms, path, err := l.guest(code)
		if err != nil {
			return nil, nil, err
		}
		path, err = guest.plays(path, p.want)
		guest.end()
		if err != nil {
			return nil, nil, err
		}
		took = append(took, ms)
		if !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
		if n > 1 {
			time.Sleep(time.Until(began.Add(1100 * time.Millisecond))) // the rendezvous' rate for one address
		}
	}
	return paths, took, nil
}

func (l *lab) host() (*process, string, error) {
	host, err := l.start("a", "-host", "-bot", "-timeout", patience.String(), "-at", "https://"+meetAddr+":443", "-trust", l.file("cert.pem"))
	if err != nil {
		return nil, "", err
	}
	code, err := host.until("code: ")
	if err != nil {
		host.end()
		return nil, "", err
	}
	return host, code, nil
}

func (l *lab) guest(code string) (guest *process, ms int, path string, err error) {
	guest, err = l.start("b", "-join", code, "-bot", "-timeout", patience.String(), "-at", "https://"+meetAddr+":443", "-trust", l.file("cert.pem"))
	if err != nil {
		return nil, 0, "", err
	}
	text, err := guest.until("joined after ")
	if err == nil {
		_, err = fmt.Sscanf(text, "%d ms", &ms)
	}
	if err == nil {
		path, err = guest.until("path to the host: ")
	}
	if err != nil {
		guest.end()
		return nil, 0, "", err
	}
	return guest, ms, kind(path), nil
}

// kind is the path without the address that a line has behind it.
func kind(path string) string {
	path, _, _ = strings.Cut(path, ",")
	return path
}

// game begins a game of two by the routers. end ends both.
func (l *lab) game() (guest *process, path string, end func(), err error) {
	host, code, err := l.host()
	if err != nil {
		return nil, "", nil, err
	}
	guest, _, path, err = l.guest(code)
	if err != nil {
		host.end()
		return nil, "", nil, err
	}
	end = func() {
		guest.end()
		host.end()
	}
	if path, err = guest.plays(path, routed); err != nil {
		end()
		return nil, "", nil, err
	}
	return guest, path, end, nil
}

// change cuts the path between two routers amid a game, and mends it: the game goes on by the relay, and then by the routers again.
func (l *lab) change(out io.Writer) error {
	guest, path, end, err := l.game()
	if err != nil {
		return err
	}
	defer end()
	if path != routed {
		return fmt.Errorf("the path to be cut is %s", path)
	}
	for _, c := range []struct {
		cut  bool
		what string
		want string
	}{{true, "the path is cut amid the game", relayed}, {false, "and mended", routed}} {
		if err := l.cut(c.cut); err != nil {
			return err
		}
		began := time.Now()
		path, err := guest.until("path to the host: ")
		if err != nil {
			return fmt.Errorf("%s: %w", c.what, err)
		}
		if path = kind(path); path != c.want {
			return fmt.Errorf("%s: the path is %s, not %s", c.what, path, c.want)
		}
		fmt.Fprintf(out, "   %-14s %-20s %8d ms later\n", c.what+":", path, time.Since(began).Milliseconds())
		time.Sleep(2 * time.Second) // the game goes on; its end would be told
	}
	return nil
}

// move has players change to other networks amid a game: their own addresses and those outside of their routers are others. Their game goes on.
func (l *lab) move(out io.Writer) error {
	guest, _, end, err := l.game()
	if err != nil {
		return err
	}
	defer end()
	for i, c := range []struct {
		what  string
		sites []int
	}{{"the host moves amid the game", []int{0}}, {"the guest moves", []int{1}}, {"both move at once", []int{0, 1}}} {
		for _, s := range c.sites {
			if err := l.elsewhere(s, i+1); err != nil {
				return err
			}
		}
		began := time.Now()
		if _, err := guest.until("another path was found through the rendezvous"); err != nil {
			return fmt.Errorf("%s: %w", c.what, err)
		}
		fmt.Fprintf(out, "   %-30s another path %8d ms later\n", c.what+":", time.Since(began).Milliseconds())
		time.Sleep(5 * time.Second) // the game goes on; its end would be told
	}
	return errors.Join(l.elsewhere(0, 0), l.elsewhere(1, 0))
}

func (l *lab) file(name string) string { return filepath.Join(l.dir, name) }

// process is a program in a namespace.
type process struct {
	cmd   *exec.Cmd
	lines chan string
	said  []string
}

func (l *lab) start(space string, args ...string) (*process, error) {
	p := &process{cmd: l.command(space, l.program, args...), lines: make(chan string, 1024)}
	r, w := io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr = w, w
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(os.Interrupt) }
	p.cmd.WaitDelay = 5 * time.Second
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = w.CloseWithError(p.cmd.Wait())
	}()
	go func() {
		defer close(p.lines)
		for lines := bufio.NewScanner(r); lines.Scan(); {
			select {
			case p.lines <- lines.Text():
			default: // nobody wants to know
			}
		}
	}()
	return p, nil
}

// next returns the next line that begins with one of the prefixes: which, and the rest of it.
func (p *process) next(timer *time.Timer, prefixes ...string) (which, rest string, err error) {
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				return "", "", fmt.Errorf("%q didn't come; it said: %s", prefixes, strings.Join(p.said, "; "))
			}
			for _, prefix := range prefixes {
				if rest, ok := strings.CutPrefix(line, prefix); ok {
					return prefix, rest, nil
				}
			}
			p.said = append(p.said, line)
		case <-timer.C:
			return "", "", fmt.Errorf("%q: %w in %v; it said: %s", prefixes, errLate, patience, strings.Join(p.said, "; "))
		}
	}
}

var errLate = errors.New("didn't come")

// until waits for a line that begins so, and returns the rest of it.
func (p *process) until(prefix string) (string, error) {
	_, rest, err := p.next(time.NewTimer(patience), prefix)
	return rest, err
}

// plays waits until a guest plays, over the path that it should have. On a busy machine the relay may have answered first, and the game goes over to the
// better path when that has. It returns the path that it has in the end.
func (p *process) plays(path, want string) (string, error) {
	timer := time.NewTimer(patience)
	for playing := false; !playing || path != want; {
		which, rest, err := p.next(timer, "playing", "path to the host: ")
		switch {
		case playing && errors.Is(err, errLate):
			return path, nil
		case err != nil:
			return "", err
		case which == "playing":
			playing = true
		default:
			path = kind(rest)
		}
	}
	return path, nil
}

// end interrupts it and waits for its end.
func (p *process) end() {
	_ = p.cmd.Process.Signal(os.Interrupt) // it may have ended
	for range p.lines {
	}
}

// certificate writes a certificate for the servers, which is its own authority, and its key.
func certificate(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.ParseIP(meetAddr), net.ParseIP(relayAddr)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "cert.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644),
		os.WriteFile(filepath.Join(dir, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
}
