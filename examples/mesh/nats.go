package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/bunchnet/bunchnet/netconn/fleet/natskv"
)

// bucketName is the bucket that has the leases and the actors.
const bucketName = "mesh"

// nodes is how many NATS nodes there are. Each has all of the bucket.
const nodes = 3

// natsConfig is what a NATS node is told.
type natsConfig struct {
	Name          string
	Dir           string
	Client, Route int   // its ports
	Routes        []int // of all nodes
}

// playNATS is the life of a NATS node.
func playNATS() error {
	var cfg natsConfig
	told, err := orders[struct{}](&cfg)
	if err != nil {
		return err
	}
	o := &natsserver.Options{ServerName: cfg.Name, Host: "127.0.0.1", Port: cfg.Client, JetStream: true, StoreDir: cfg.Dir, NoSigs: true, NoLog: true,
		Cluster: natsserver.ClusterOpts{Name: "mesh", Host: "127.0.0.1", Port: cfg.Route}}
	for _, port := range cfg.Routes {
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", port)})
	}
	s, err := natsserver.NewServer(o)
	if err != nil {
		return err
	}
	go s.Start()
	for range told { // until the first process ends
	}
	s.Shutdown()
	s.WaitForShutdown()
	return nil
}

// cluster is the NATS nodes, and this program's own connection to them.
type cluster struct {
	dir     string
	configs [nodes]natsConfig
	url     string // of all

	conn *nats.Conn
	js   jetstream.JetStream

	mu     sync.Mutex
	nodes  [nodes]*process // nil: it doesn't run
	still  [nodes]bool     // it stands still
	leader string          // of the bucket; "": there is none, or nobody answers
	asked  context.CancelFunc
	all    sync.WaitGroup
}

func startCluster() (c *cluster, err error) {
	c = &cluster{}
	if c.dir, err = os.MkdirTemp("", "mesh"); err != nil {
		return c, err
	}
	ports, err := freePorts(2 * nodes)
	if err != nil {
		return c, err
	}
	var urls []string
	for i := range c.configs {
		name := fmt.Sprintf("nats%d", i+1)
		c.configs[i] = natsConfig{name, filepath.Join(c.dir, name), ports[i], ports[nodes+i], ports[nodes:]}
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", ports[i]))
		if err := c.start(i); err != nil {
			return c, err
		}
	}
	c.url = strings.Join(urls, ",")
	if c.conn, err = connect(c.url); err != nil {
		return c, err
	}
	if c.js, err = jetstream.New(c.conn); err != nil {
		return c, err
	}
	var ctx context.Context
	ctx, c.asked = context.WithCancel(context.Background())
	c.all.Go(func() { c.ask(ctx) })
	return c, nil
}

// connect connects to whichever node is there, now or later. What is wrong with a connection isn't written over the map: who asks for something hears of it.
func connect(url string, more ...nats.Option) (*nats.Conn, error) {
	return nats.Connect(url, append([]nats.Option{nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true), nats.ReconnectWait(100 * time.Millisecond), nats.ReconnectJitter(0, 0),
		nats.PingInterval(time.Second), nats.MaxPingsOutstanding(2), nats.Timeout(time.Second),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})}, more...)...)
}

// openBucket opens the bucket, as soon as there is one, or a cluster that can make it.
func openBucket(ctx context.Context, nc *nats.Conn) (*natskv.Bucket, error) {
	for {
		once, cancel := context.WithTimeout(ctx, 5*time.Second)
		b, err := natskv.Open(once, nc, natskv.Config{Name: bucketName, Replicas: nodes, Timeout: time.Second, Quiet: lease / 2})
		cancel()
		if err == nil || ctx.Err() != nil {
			return b, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// freePorts returns ports of the loopback that nobody uses.
func freePorts(n int) (ports []int, err error) {
	var open []net.Listener
	defer func() {
		for _, l := range open {
			_ = l.Close()
		}
	}()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		open = append(open, l)
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// ask asks for the bucket's leader, again and again.
func (c *cluster) ask(ctx context.Context) {
	for ctx.Err() == nil {
		once, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		leader := ""
		if s, err := c.js.Stream(once, "KV_"+bucketName); err == nil && s.CachedInfo().Cluster != nil {
			leader = s.CachedInfo().Cluster.Leader
		}
		cancel()
		c.mu.Lock()
		if i := c.index(leader); i < 0 || c.nodes[i] == nil || c.still[i] {
			leader = ""
		}
		c.leader = leader
		c.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(250 * time.Millisecond):
		}
	}
}

func (c *cluster) index(name string) int {
	return slices.IndexFunc(c.configs[:], func(n natsConfig) bool { return n.Name == name })
}

// look returns which nodes run, and which leads the bucket: -1 when none does.
func (c *cluster) look() (run [nodes]bool, leader int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, p := range c.nodes {
		run[i] = p != nil && !p.ended() && !c.still[i]
	}
	return run, c.index(c.leader)
}

// whole reports whether all nodes run, and one leads the bucket.
func (c *cluster) whole() bool {
	run, leader := c.look()
	return leader >= 0 && !slices.Contains(run[:], false)
}

// start starts a node that doesn't run, and wakes one that stands still.
func (c *cluster) start(i int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.nodes[i]; p != nil {
		if !c.still[i] {
			return nil
		}
		c.still[i] = false
		return standStill(p.cmd.Process, false)
	}
	p, err := startProcess(c.configs[i].Name, "nats", c.configs[i], func([]byte) {})
	c.nodes[i] = p
	return err
}

// pause has a node that runs stand still.
func (c *cluster) pause(i int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nodes[i] == nil || c.still[i] {
		return nil
	}
	if err := standStill(c.nodes[i].cmd.Process, true); err != nil {
		return err
	}
	c.still[i] = true
	if c.leader == c.configs[i].Name {
		c.leader = ""
	}
	return nil
}

// kill kills a node.
func (c *cluster) kill(i int) {
	c.mu.Lock()
	p := c.nodes[i]
	c.nodes[i], c.still[i] = nil, false
	if c.leader == c.configs[i].Name {
		c.leader = ""
	}
	c.mu.Unlock()
	if p != nil {
		p.kill()
	}
}

// failed is what is wrong with the nodes.
func (c *cluster) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.nodes {
		if p != nil && p.ended() {
			return errors.New(p.why())
		}
	}
	return nil
}

func (c *cluster) close() {
	if c.asked != nil {
		c.asked()
		c.all.Wait()
	}
	if c.conn != nil {
		c.conn.Close()
	}
	for i := range c.nodes {
		c.kill(i)
	}
	if c.dir != "" {
		_ = os.RemoveAll(c.dir)
	}
}
