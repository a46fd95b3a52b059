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
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// manyPoint is one measurement of W3.
type manyPoint struct {
	Peer    string
	Clients int
	Rate    int // packets a second, of each

	Elapsed    time.Duration
	CPU        time.Duration // the server's
	ClientCPU  time.Duration // of all clients
	Idle, Load float64       // resident bytes a connection, after the clients have joined and under load
	Goroutines float64       // a connection
	Sent, Got  int64
	Late       int64 // echoes that took longer than w3Late
	Err        error
}

const (
	w3Size = 100
	w3Rate = 30
	w3Late = 100 * time.Millisecond
	// w3Idle is how often clients that send nothing are ticked.
	w3Idle = 100 * time.Millisecond
)

// share is a CPU time in cores.
func (p *manyPoint) share(cpu time.Duration) float64 {
	return cpu.Seconds() / max(p.Elapsed, time.Millisecond).Seconds()
}

// remark says when the clients didn't get their packets out.
func (p *manyPoint) remark() string {
	if rate := float64(p.Sent) / float64(p.Clients) / max(p.Elapsed, time.Millisecond).Seconds(); rate < 0.99*float64(p.Rate) {
		return fmt.Sprintf("only %.1f/s", rate)
	}
	return ""
}

// serverStats is what the server's process says of itself.
type serverStats struct {
	Addr       string        `json:",omitempty"`
	CPU        time.Duration // without that of these stats
	Resident   int
	Goroutines int
}

// serve is the server's process: it says where it listens, and its stats for each line it is sent.
func serve(w io.Writer, r io.Reader, name, profile string, rate, shards int) error {
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
	s, err := p.Listen(Options{Unreliable: p.Unreliable, Rate: rate, Many: true, Shards: shards}, echo)
	if err != nil {
		return err
	}
	defer s.Close()
	out := json.NewEncoder(w)
	var own time.Duration
	tell := func(addr string) error {
		now := cpuTime()
		debug.FreeOSMemory()
		own += cpuTime() - now
		return out.Encode(serverStats{Addr: addr, CPU: cpuTime() - own, Resident: residentBytes(), Goroutines: runtime.NumGoroutine()})
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

func startServer(name, profile string, rate, shards int) (s *server, st serverStats, err error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, st, err
	}
	args := []string{"-serve", name, "-rate", strconv.Itoa(rate), "-shards", strconv.Itoa(shards)}
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
			if p.LatencyOnly {
				continue
			}
			point := manyPoint{Peer: p.Name, Clients: n, Rate: s.rate}
			if point.Rate == 0 {
				point.Rate = w3Rate
			}
			if p.MaxConns > 0 && n > p.MaxConns {
				point.Err = fmt.Errorf("%d connections at most", p.MaxConns)
			} else {
				point.Err = point.measure(p, length, s.serverProfile, s.shards, s.light)
			}
			points = append(points, point)
			fmt.Fprintf(w, "w3 %s %d: %.1f %% of a core, %v\n", p.Name, n, 100*point.share(point.CPU), point.Err)
		}
	}
	return points
}

// manyClients is the clients of W3, all on the goroutine that calls them.
type manyClients interface {
	dial(peer *Peer, addr string, n int) error
	// load has every client send at its rate.
	load(length time.Duration) error
	// idle has them send nothing until done.
	idle(done <-chan time.Time)
	// counts is the packets sent, the echoes, and those of them that were late.
	counts() (sent, got, late int64)
	close()
}

func (p *manyPoint) measure(peer *Peer, length time.Duration, profile string, shards int, light bool) error {
	s, start, err := startServer(peer.Name, profile, p.Rate, shards)
	if err != nil {
		return err
	}
	defer s.stop()
	var clients manyClients = &crowd{rate: p.Rate}
	if light {
		clients = &lightCrowd{rate: p.Rate}
	}
	defer clients.close()
	if err := clients.dial(peer, start.Addr, p.Clients); err != nil {
		return err
	}
	idle, err := ask(clients, s, time.Second)
	if err != nil {
		return err
	}
	n := float64(p.Clients)
	p.Idle, p.Goroutines = float64(idle.Resident-start.Resident)/n, float64(idle.Goroutines-start.Goroutines)/n
	if err := clients.load(time.Second); err != nil { // warms up
		return err
	}
	before, err := ask(clients, s, w3Late)
	if err != nil {
		return err
	}
	begin, cpu := time.Now(), cpuTime()
	sent, got, late := clients.counts()
	if err := clients.load(length); err != nil {
		return err
	}
	p.Elapsed, p.ClientCPU = time.Since(begin), cpuTime()-cpu
	after, err := ask(clients, s, 0)
	if err != nil {
		return err
	}
	p.CPU = after.CPU - before.CPU
	p.Load = float64(after.Resident-start.Resident) / n
	clients.idle(time.After(w3Late))
	p.Sent, p.Got, p.Late = clients.counts()
	p.Sent, p.Got, p.Late = p.Sent-sent, p.Got-got, p.Late-late
	return nil
}

// crowd is the clients of W3. Those that are ticked are so on the goroutine that calls its methods.
type crowd struct {
	rate            int
	conns           []Conn
	sent, got, late atomic.Int64
}

// dialed is what became of a dial.
type dialed struct {
	conn Conn
	err  error
}

func (c *crowd) dial(peer *Peer, addr string, n int) error {
	results := make(chan dialed)
	go func() {
		free := make(chan struct{}, 32)
		for range n {
			free <- struct{}{}
			go func() {
				conn, err := peer.Dial(addr, Options{Unreliable: peer.Unreliable, Rate: c.rate, Many: true}, c.echoed)
				<-free
				results <- dialed{conn, err}
			}()
		}
	}()
	var failed error
	c.conns = make([]Conn, 0, n)
	idle := time.NewTicker(w3Idle)
	defer idle.Stop()
	for done := 0; done < n; {
		select {
		case r := <-results:
			if done++; r.err == nil {
				c.conns = append(c.conns, r.conn)
			} else if failed == nil {
				failed = fmt.Errorf("after %d clients: %w", len(c.conns), r.err)
			}
		case now := <-idle.C:
			c.tick(now)
		}
	}
	return failed
}

// tick lets the clients that are ticked do what time asks for.
func (c *crowd) tick(now time.Time) {
	for _, conn := range c.conns {
		if t, ok := conn.(ticked); ok {
			t.Tick(now)
			_ = conn.Flush() // what doesn't go out is missed
		}
	}
}

// idle ticks until done.
func (c *crowd) idle(done <-chan time.Time) {
	idle := time.NewTicker(w3Idle)
	defer idle.Stop()
	for {
		select {
		case <-done:
			c.tick(time.Now())
			return
		case now := <-idle.C:
			c.tick(now)
		}
	}
}

// ask has the server's stats after a while.
func ask(c manyClients, s *server, after time.Duration) (st serverStats, err error) {
	done := make(chan time.Time)
	go func() {
		time.Sleep(after)
		st, err = s.stats()
		close(done)
	}()
	c.idle(done)
	return st, err
}

func (c *crowd) counts() (sent, got, late int64) { return c.sent.Load(), c.got.Load(), c.late.Load() }

func (c *crowd) echoed(_ Conn, msg []byte) {
	c.got.Add(1)
	if len(msg) == w3Size && time.Since(w1Epoch)-stamp(msg) > w3Late {
		c.late.Add(1)
	}
}

// load has every client send at the rate, one after another, evenly spread. One that is ticked reads just before it sends, and
// at low rates now and then between, in time to see an echo that isn't late.
func (c *crowd) load(length time.Duration) error {
	msg := make([]byte, w3Size)
	n, perSecond := len(c.conns), len(c.conns)*c.rate
	at := func(i int) time.Duration { return time.Duration(i) * time.Second / time.Duration(perSecond) }
	total := int(length * time.Duration(perSecond) / time.Second)
	reads := int((at(n) + w3Late/2 - 1) / (w3Late / 2)) // an interval
	for i, begin := 0, time.Now(); i < total; {
		now := time.Now()
		setStamp(msg, now.Sub(w1Epoch))
		for ; i < total && at(i) <= now.Sub(begin); i++ {
			for j := 1; j < reads; j++ {
				if t, ok := c.conns[(i+n*j/reads)%n].(ticked); ok {
					t.Tick(now)
				}
			}
			c.send(c.conns[i%n], now, msg)
		}
		time.Sleep(time.Until(begin.Add(at(i))))
	}
	return nil
}

// send has one send.
func (c *crowd) send(conn Conn, now time.Time, msg []byte) {
	if t, ok := conn.(ticked); ok {
		t.Tick(now)
	}
	if conn.Send(msg) == nil && conn.Flush() == nil {
		c.sent.Add(1)
	}
}

func (c *crowd) close() {
	var wg sync.WaitGroup
	for _, conn := range c.conns {
		wg.Go(func() { _ = conn.Close() })
	}
	wg.Wait()
}
