package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// manyPoint is one measurement of W3.
type manyPoint struct {
	Peer    string
	Clients int
	Rate    int // packets a second, of each

	Share      float64 // of one core, the server's
	CPU        time.Duration
	Idle, Load float64 // resident bytes a connection, after the clients have joined and under load
	Goroutines float64 // a connection
	Sent, Got  int64
	Late       int64 // echoes that took longer than w3Late
	Err        error
}

const (
	w3Size = 100
	w3Rate = 30
	w3Late = 100 * time.Millisecond
)

// serverStats is what the server's process says of itself.
type serverStats struct {
	Addr       string `json:",omitempty"`
	CPU        time.Duration
	Resident   int
	Goroutines int
}

// serve is the server's process: it says where it listens, and its stats for each line it is sent.
func serve(w io.Writer, r io.Reader, name, profile string) error {
	all, err := choose(io.Discard, name)
	if err != nil {
		return err
	}
	stop, err := startProfile(profile)
	if err != nil {
		return err
	}
	defer stop()
	moreFiles()
	p := all[0]
	s, err := p.Listen(Options{Unreliable: p.Unreliable, Rate: w3Rate, Many: true}, echo)
	if err != nil {
		return err
	}
	defer s.Close()
	out := json.NewEncoder(w)
	tell := func(addr string) error {
		debug.FreeOSMemory()
		return out.Encode(serverStats{Addr: addr, CPU: cpuTime(), Resident: residentBytes(), Goroutines: runtime.NumGoroutine()})
	}
	err = tell(s.Addr())
	for lines := bufio.NewScanner(r); err == nil && lines.Scan(); {
		err = tell("")
	}
	return err
}

// server is that process as its parent sees it.
type server struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

func startServer(name, profile string) (s *server, st serverStats, err error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, st, err
	}
	args := []string{"-serve", name}
	if profile != "" {
		args = append(args, "-cpuprofile", profile)
	}
	s = &server{cmd: exec.Command(exe, args...)}
	s.cmd.Stderr = os.Stderr
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, st, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, st, err
	}
	s.out = json.NewDecoder(out)
	if err = s.cmd.Start(); err == nil {
		err = s.out.Decode(&st)
	}
	return s, st, err
}

func (s *server) stats() (st serverStats, err error) {
	if _, err = io.WriteString(s.in, "\n"); err == nil {
		err = s.out.Decode(&st)
	}
	return st, err
}

func (s *server) stop() {
	_ = s.in.Close() // its process then ends
	done := time.AfterFunc(5*time.Second, func() { _ = s.cmd.Process.Kill() })
	_ = s.cmd.Wait()
	done.Stop()
}

func runW3(w io.Writer, all []*Peer, s settings) []manyPoint {
	moreFiles()
	counts, length := []int{200, 1000, 5000}, 10*time.Second
	if s.quick {
		counts, length = counts[:1], 3*time.Second
	}
	if s.clients > 0 {
		counts = []int{s.clients}
	}
	var points []manyPoint
	for _, n := range counts {
		for _, p := range all {
			point := manyPoint{Peer: p.Name, Clients: n, Rate: s.rate}
			if point.Rate == 0 {
				point.Rate = w3Rate
			}
			if p.MaxConns > 0 && n > p.MaxConns {
				point.Err = fmt.Errorf("%d connections at most", p.MaxConns)
			} else {
				point.Err = point.measure(p, length, s.serverProfile)
			}
			points = append(points, point)
			fmt.Fprintf(w, "w3 %s %d: %.1f %% of a core, %v\n", p.Name, n, 100*point.Share, point.Err)
		}
	}
	return points
}

func (p *manyPoint) measure(peer *Peer, length time.Duration, profile string) error {
	s, start, err := startServer(peer.Name, profile)
	if err != nil {
		return err
	}
	defer s.stop()
	clients := &crowd{rate: p.Rate}
	defer clients.close()
	if err := clients.dial(peer, start.Addr, p.Clients); err != nil {
		return err
	}
	time.Sleep(time.Second)
	idle, err := s.stats()
	if err != nil {
		return err
	}
	n := float64(p.Clients)
	p.Idle, p.Goroutines = float64(idle.Resident-start.Resident)/n, float64(idle.Goroutines-start.Goroutines)/n
	clients.load(time.Second) // warms up
	before, err := s.stats()
	if err != nil {
		return err
	}
	begin, sent, got, late := time.Now(), clients.sent.Load(), clients.got.Load(), clients.late.Load()
	clients.load(length)
	after, err := s.stats()
	if err != nil {
		return err
	}
	p.CPU = after.CPU - before.CPU
	p.Share = p.CPU.Seconds() / time.Since(begin).Seconds()
	p.Load = float64(after.Resident-start.Resident) / n
	time.Sleep(w3Late)
	p.Sent, p.Got, p.Late = clients.sent.Load()-sent, clients.got.Load()-got, clients.late.Load()-late
	return nil
}

// crowd is the clients of W3.
type crowd struct {
	rate            int
	conns           []Conn
	sent, got, late atomic.Int64
}

func (c *crowd) dial(peer *Peer, addr string, n int) error {
	c.conns = make([]Conn, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	free := make(chan struct{}, 32)
	for i := range n {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			c.conns[i], errs[i] = peer.Dial(addr, Options{Unreliable: peer.Unreliable, Rate: w3Rate, Many: true}, c.echoed)
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("client %d: %w", i, err)
		}
	}
	return nil
}

func (c *crowd) echoed(_ Conn, msg []byte) {
	c.got.Add(1)
	if len(msg) == w3Size && time.Since(w1Epoch)-stamp(msg) > w3Late {
		c.late.Add(1)
	}
}

// load has every client send at the rate, evenly spread.
func (c *crowd) load(length time.Duration) {
	const slices = 32 // of the clients, one after another
	msg := make([]byte, w3Size)
	begin := time.Now()
	for i := 0; ; i++ {
		due := begin.Add(time.Duration(i) * time.Second / time.Duration(c.rate*slices))
		if due.Sub(begin) >= length {
			return
		}
		time.Sleep(time.Until(due))
		setStamp(msg, time.Since(w1Epoch))
		for j := i % slices; j < len(c.conns); j += slices {
			if c.conns[j].Send(msg) == nil && c.conns[j].Flush() == nil {
				c.sent.Add(1)
			}
		}
	}
}

func (c *crowd) close() {
	var wg sync.WaitGroup
	for _, conn := range c.conns {
		if conn != nil {
			wg.Go(func() { _ = conn.Close() })
		}
	}
	wg.Wait()
}
