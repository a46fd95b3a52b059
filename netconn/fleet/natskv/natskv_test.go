package natskv

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/fleet"
	"github.com/bunchnet/bunchnet/netconn/fleet/natskv/embed"
	"github.com/bunchnet/bunchnet/netconn/fleet/placing"
	"github.com/bunchnet/bunchnet/netconn/kv"
)

// patience is how long anything may take, on a machine that has much else to do.
const patience = time.Minute

// open starts a NATS server and opens its bucket, which waits long for answers: what late and lost ones do is tested in package fleet, in virtual time.
func open(t *testing.T) (*Bucket, func()) {
	s, err := embed.Start(t.TempDir(), 0)
	require.NoError(t, err)
	nc, err := nats.Connect(s.ClientURL(), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	require.NoError(t, err)
	b, err := Open(context.Background(), nc, Config{Timeout: patience})
	require.NoError(t, err)
	stop := func() { s.Shutdown(); s.WaitForShutdown() }
	t.Cleanup(func() { nc.Close(); stop() })
	return b, stop
}

// asks is a machine that does what it is told.
type asks []string

func (a asks) Watches() []string                            { return a }
func (a asks) Step(time.Duration, []kv.Event) (out []kv.Op) { return nil }

// reader collects what a store says.
type reader struct {
	t   *testing.T
	s   *Store
	got []kv.Event
}

func (r *reader) until(what func(e kv.Event) bool) kv.Event {
	r.t.Helper()
	deadline := time.After(patience)
	for {
		for i, e := range r.got {
			if what(e) {
				r.got = append(r.got[:i], r.got[i+1:]...)
				return e
			}
		}
		select {
		case <-r.s.Wake():
		case <-deadline:
			require.Fail(r.t, "nothing", "%+v", r.got)
		}
		r.got = append(r.got, r.s.Events()...)
	}
}

func (r *reader) do(op kv.Op) kv.Event {
	r.t.Helper()
	r.s.Do(op)
	return r.until(func(e kv.Event) bool { return e.Kind == kv.Result && e.ID == op.ID })
}

// TestContract: NATS does what package kv says: revisions grow, compare-and-set lets one of two write, keys come and go, also by their TTL, and a
// watch tells it all in order.
func TestContract(t *testing.T) {
	b, _ := open(t)
	s := b.Store(asks{"a.", "single"})
	defer s.Close()
	r := &reader{t: t, s: s}
	r.until(func(e kv.Event) bool { return e.Kind == kv.Begin })
	r.until(func(e kv.Event) bool { return e.Kind == kv.Current })
	require.Equal(t, kv.Missing, r.do(kv.Op{ID: 1, Kind: kv.Get, Key: "a.x"}).Status)
	first := r.do(kv.Op{ID: 2, Kind: kv.Put, Key: "a.x", Value: []byte("1")})
	require.Equal(t, kv.OK, first.Status)
	require.Equal(t, kv.Conflict, r.do(kv.Op{ID: 3, Kind: kv.Put, Key: "a.x", Value: []byte("2")}).Status)
	require.Equal(t, kv.Conflict, r.do(kv.Op{ID: 4, Kind: kv.Put, Key: "a.x", Value: []byte("2"), Expect: first.Revision + 7}).Status)
	second := r.do(kv.Op{ID: 5, Kind: kv.Put, Key: "a.x", Value: []byte("2"), Expect: first.Revision})
	require.Equal(t, kv.OK, second.Status)
	require.Greater(t, second.Revision, first.Revision)
	got := r.do(kv.Op{ID: 6, Kind: kv.Get, Key: "a.x"})
	require.Equal(t, []byte("2"), got.Value)
	require.Equal(t, second.Revision, got.Revision)
	require.Equal(t, kv.Conflict, r.do(kv.Op{ID: 7, Kind: kv.Delete, Key: "a.x", Expect: first.Revision}).Status)
	require.Equal(t, kv.OK, r.do(kv.Op{ID: 8, Kind: kv.Delete, Key: "a.x", Expect: second.Revision}).Status)
	require.Equal(t, kv.Missing, r.do(kv.Op{ID: 9, Kind: kv.Get, Key: "a.x"}).Status)
	again := r.do(kv.Op{ID: 10, Kind: kv.Put, Key: "a.x", Value: []byte("3")})
	require.Equal(t, kv.OK, again.Status, "a deleted key doesn't exist")
	require.Equal(t, kv.Conflict, r.do(kv.Op{ID: 11, Kind: kv.Put, Key: "a.x", Value: []byte("4")}).Status)
	require.Equal(t, kv.OK, r.do(kv.Op{ID: 12, Kind: kv.Put, Key: "a.x", Value: []byte("5"), Expect: kv.Any}).Status)
	require.Equal(t, kv.OK, r.do(kv.Op{ID: 13, Kind: kv.Put, Key: "other", Value: []byte("5")}).Status)
	require.Equal(t, kv.OK, r.do(kv.Op{ID: 14, Kind: kv.Put, Key: "single", Value: []byte("6"), TTL: time.Second}).Status)
	var watched []string
	for gone := fmt.Sprint(kv.Deleted, "single", ""); !slices.Contains(watched, gone); {
		e := r.until(func(e kv.Event) bool { return e.Kind == kv.Begin || e.Kind == kv.Changed || e.Kind == kv.Deleted })
		if e.Kind == kv.Begin {
			watched = nil // a watch may begin anew, then with what is there
			continue
		}
		watched = append(watched, fmt.Sprint(e.Kind, e.Key, string(e.Value)))
	}
	require.Contains(t, watched, fmt.Sprint(kv.Changed, "a.x", "5"))
	want := []string{fmt.Sprint(kv.Changed, "a.x", "1"), fmt.Sprint(kv.Changed, "a.x", "2"), fmt.Sprint(kv.Deleted, "a.x", ""), fmt.Sprint(kv.Changed, "a.x", "3"),
		fmt.Sprint(kv.Changed, "a.x", "5"), fmt.Sprint(kv.Changed, "single", "6"), fmt.Sprint(kv.Deleted, "single", "")}
	for _, e := range watched { // in order; one that was late leaves out what was replaced meanwhile
		i := slices.Index(want, e)
		require.GreaterOrEqual(t, i, 0, "%q in %q", e, watched)
		want = want[i+1:]
	}
	require.Equal(t, kv.OK, r.do(kv.Op{ID: 15, Kind: kv.Put, Key: "single", Value: []byte("7")}).Status, "nor does one whose TTL is over")

	later := b.Store(asks{"a."})
	defer later.Close()
	l := &reader{t: t, s: later}
	l.until(func(e kv.Event) bool { return e.Kind == kv.Current })
	require.Equal(t, kv.Begin, l.got[0].Kind)
	require.Equal(t, "5", string(l.got[1].Value))
}

// TestLatePut: a Put that must find no key, and comes after the key was deleted, doesn't make it again, if it began before that.
func TestLatePut(t *testing.T) {
	b, _ := open(t)
	s := b.Store(asks{"x"})
	defer s.Close()
	r := &reader{t: t, s: s}
	r.until(func(e kv.Event) bool { return e.Kind == kv.Current })
	late, began := kv.Op{Kind: kv.Put, Key: "a", Value: []byte("late")}, b.newest.Load()
	made := r.do(kv.Op{ID: 1, Kind: kv.Put, Key: "a", Value: []byte("1")})
	require.Equal(t, kv.OK, r.do(kv.Op{ID: 2, Kind: kv.Delete, Key: "a", Expect: made.Revision}).Status)
	require.Equal(t, kv.Conflict, b.do(t.Context(), late, began).Status)
	require.Equal(t, kv.Missing, r.do(kv.Op{ID: 3, Kind: kv.Get, Key: "a"}).Status)

	other, err := Open(t.Context(), b.nc, Config{Timeout: patience}) // another process, which knows of no deletion
	require.NoError(t, err)
	require.Equal(t, kv.Missing, other.do(t.Context(), kv.Op{Kind: kv.Get, Key: "a"}, other.newest.Load()).Status)
	require.Equal(t, kv.OK, other.do(t.Context(), kv.Op{Kind: kv.Put, Key: "a", Value: []byte("2")}, other.newest.Load()).Status)
	require.Equal(t, kv.Conflict, b.do(t.Context(), late, b.newest.Load()).Status)
}

// TestAwayAndBack: while the server is away ops are unknown; when it is back the watch begins anew.
func TestAwayAndBack(t *testing.T) {
	dir := t.TempDir()
	srv, err := embed.Start(dir, 0)
	require.NoError(t, err)
	port := srv.Addr().(interface{ AddrPort() netip.AddrPort }).AddrPort().Port()
	nc, err := nats.Connect(srv.ClientURL(), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	require.NoError(t, err)
	defer nc.Close()
	b, err := Open(context.Background(), nc, Config{Timeout: time.Second})
	require.NoError(t, err)
	s := b.Store(asks{"a."})
	defer s.Close()
	r := &reader{t: t, s: s}
	id := uint64(1)
	for r.do(kv.Op{ID: id, Kind: kv.Put, Key: "a.x", Value: []byte("1"), Expect: kv.Any}).Status == kv.Unknown { // a machine that is slow answers late
		id++
		require.Less(t, id, uint64(60))
	}
	r.until(func(e kv.Event) bool { return e.Kind == kv.Changed })
	srv.Shutdown()
	srv.WaitForShutdown()
	r.got = nil
	require.Equal(t, kv.Unknown, r.do(kv.Op{ID: 100, Kind: kv.Get, Key: "a.x"}).Status)
	srv, err = embed.Start(dir, int(port))
	require.NoError(t, err)
	defer func() { srv.Shutdown(); srv.WaitForShutdown() }()
	r.until(func(e kv.Event) bool { return e.Kind == kv.Begin })
	require.Equal(t, "1", string(r.until(func(e kv.Event) bool { return e.Kind == kv.Changed }).Value))
	r.until(func(e kv.Event) bool { return e.Kind == kv.Current })
}

// front is a NATS node that can stand still: connections to it are taken and nothing is answered. It can be alone: it answers pings, and nothing else, as one that doesn't reach the others.
type front struct {
	net.Listener
	to    string
	still chan struct{} // closed when it stands still
	alone atomic.Bool
	late  atomic.Int64 // by how many nanoseconds each way is longer
	ended chan struct{}
}

func newFront(t *testing.T, to string) *front {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := &front{Listener: l, to: to, still: make(chan struct{}), ended: make(chan struct{})}
	var all sync.WaitGroup
	copies := func(to, from net.Conn, fromNode bool) {
		defer func() { _, _ = to.Close(), from.Close() }()
		buf := make([]byte, 1<<16)
		for {
			n, err := from.Read(buf)
			select {
			case <-f.still:
				<-f.ended
				return
			default:
			}
			time.Sleep(time.Duration(f.late.Load()))
			if f.alone.Load() {
				if !fromNode && bytes.Contains(buf[:n], []byte("PING\r\n")) {
					_, _ = from.Write([]byte("PONG\r\n"))
				}
				if err != nil {
					return
				}
				if !bytes.HasPrefix(buf[:n], []byte("INFO")) && !bytes.HasPrefix(buf[:n], []byte("CONNECT")) {
					continue
				}
			}
			if _, failed := to.Write(buf[:n]); err != nil || failed != nil {
				return
			}
		}
	}
	all.Go(func() {
		for {
			c, err := f.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", to)
			if err != nil {
				_ = c.Close()
				continue
			}
			all.Go(func() { copies(s, c, false) })
			all.Go(func() { copies(c, s, true) })
		}
	})
	t.Cleanup(func() { close(f.ended); _ = f.Close(); all.Wait() })
	return f
}

func (f *front) url() string { return "nats://" + f.Addr().String() }

// fronts has two nodes, of which a connection takes the first, and opens the bucket.
func fronts(t *testing.T, cfg Config) (first, second *front, nc *nats.Conn) {
	srv, err := embed.Start(t.TempDir(), 0)
	require.NoError(t, err)
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	to := strings.TrimPrefix(srv.ClientURL(), "nats://")
	first, second = newFront(t, to), newFront(t, to)
	nc, err = nats.Connect(first.url()+","+second.url(), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.DontRandomize(), nats.Timeout(time.Second))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	require.Equal(t, first.Addr().String(), nc.ConnectedAddr())
	return first, second, nc
}

// TestNodeAlone: a node that answers, but doesn't reach the bucket because it is cut off from the others, is left for another one: by who opens the bucket, and by who has it open.
func TestNodeAlone(t *testing.T) {
	cfg := Config{Timeout: 500 * time.Millisecond, Quiet: time.Second}
	first, second, nc := fronts(t, cfg)
	first.alone.Store(true)
	var b *Bucket
	for deadline := time.Now().Add(patience); b == nil; {
		require.True(t, time.Now().Before(deadline), "it never opens")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		b, _ = Open(ctx, nc, cfg)
		cancel()
	}
	require.Equal(t, second.Addr().String(), nc.ConnectedAddr())
	s := b.Store(asks{"a."})
	defer s.Close()
	r := &reader{t: t, s: s}
	r.until(func(e kv.Event) bool { return e.Kind == kv.Current })
	first.alone.Store(false)
	second.alone.Store(true)
	r.got = nil
	r.until(func(e kv.Event) bool { return e.Kind == kv.Begin })
	require.Equal(t, first.Addr().String(), nc.ConnectedAddr())
	require.Equal(t, kv.OK, r.do(kv.Op{ID: 1, Kind: kv.Put, Key: "a.x", Value: []byte("1"), Expect: kv.Any}).Status)
}

// TestLateNode: a node whose answers all come late, by more than a ping may take, is kept while the watch hears of writes, and no op is lost.
func TestLateNode(t *testing.T) {
	cfg := Config{Timeout: patience, Quiet: 2 * time.Second}
	first, _, nc := fronts(t, cfg)
	b, err := Open(t.Context(), nc, cfg)
	require.NoError(t, err)
	s := b.Store(asks{"a."})
	defer s.Close()
	r := &reader{t: t, s: s}
	r.until(func(e kv.Event) bool { return e.Kind == kv.Current })
	first.late.Store(int64(350 * time.Millisecond))
	for id := uint64(1); id <= 6; id++ {
		require.Equal(t, kv.OK, r.do(kv.Op{ID: id, Kind: kv.Put, Key: "a.x", Value: []byte("1"), Expect: kv.Any}).Status)
	}
	require.Zero(t, nc.Statistics.Reconnects)
}

// TestStandsStill: a node that stands still is left for another one, without settings of NATS' pings.
func TestStandsStill(t *testing.T) {
	srv, err := embed.Start(t.TempDir(), 0)
	require.NoError(t, err)
	defer func() { srv.Shutdown(); srv.WaitForShutdown() }()
	to := strings.TrimPrefix(srv.ClientURL(), "nats://")
	still, other := newFront(t, to), newFront(t, to)
	nc, err := nats.Connect(still.url()+","+other.url(), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.DontRandomize(), nats.Timeout(time.Second))
	require.NoError(t, err)
	defer nc.Close()
	b, err := Open(context.Background(), nc, Config{Timeout: time.Second, Quiet: time.Second})
	require.NoError(t, err)
	s := b.Store(asks{"a."})
	defer s.Close()
	r := &reader{t: t, s: s}
	r.until(func(e kv.Event) bool { return e.Kind == kv.Current })
	require.Equal(t, still.Addr().String(), nc.ConnectedAddr())
	close(still.still)
	r.got = nil
	r.until(func(e kv.Event) bool { return e.Kind == kv.Begin })
	for id := uint64(1); r.do(kv.Op{ID: id, Kind: kv.Put, Key: "a.x", Value: []byte("1"), Expect: kv.Any}).Status != kv.OK; id++ {
		require.Less(t, id, uint64(60))
	}
	require.Equal(t, other.Addr().String(), nc.ConnectedAddr())
}

// TestThousandOnNATS: 1000 players at once, from 8 token services, on 10 servers of 100 seats: each is full and none overfilled.
func TestThousandOnNATS(t *testing.T) {
	b, _ := open(t)
	timing := fleet.Timing{Beat: 100 * time.Millisecond, Expiry: patience, Life: 3 * patience, OpTimeout: patience}
	var servers []*fleet.Server
	stop, stopped := make(chan struct{}), make(chan struct{})
	defer func() { close(stop); <-stopped }()
	var stores []*Store
	for i := range 10 {
		s, err := fleet.NewServer(fleet.ServerConfig{Name: "s" + strconv.Itoa(i), Timing: timing, Info: fleet.Info{Addrs: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:1")}, Capacity: 100}})
		require.NoError(t, err)
		s.Ready()
		servers = append(servers, s)
		stores = append(stores, b.Store(s))
	}
	go func() {
		defer close(stopped)
		began := time.Now()
		for {
			select {
			case <-stop:
				for _, s := range stores {
					s.Close()
				}
				return
			case <-time.After(10 * time.Millisecond):
				for i, s := range servers {
					kv.Tick(s, stores[i], time.Since(began))
				}
			}
		}
	}()
	var services []*placing.Service
	for range 8 {
		p, err := fleet.NewPlacer(fleet.PlacerConfig{ListConfig: fleet.ListConfig{Timing: timing}, Policy: fleet.Spread, Deadline: patience})
		require.NoError(t, err)
		store := b.Store(p)
		v := placing.Start(p, store)
		defer store.Close()
		defer v.Close()
		services = append(services, v)
	}
	for _, v := range services {
		free := 0
		for deadline := time.Now().Add(patience); free < 1000 && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			free = 0
			require.NoError(t, v.Look(t.Context(), func(p *fleet.Placer) {
				for i := range p.List().All {
					free += p.Free(i.ID)
				}
			}))
		}
		require.Equal(t, 1000, free)
	}
	type answer struct {
		server string
		err    error
	}
	answers := make(chan answer, 1000)
	began := time.Now()
	for i := range 1000 {
		go func() {
			for {
				pl, err := services[i%8].Find(context.Background(), fleet.Want{})
				if err == nil || time.Since(began) > 5*patience {
					answers <- answer{pl.Server.ID, err}
					return
				}
			}
		}()
	}
	placed := map[string]int{}
	for range 1000 {
		a := <-answers
		require.NoError(t, a.err, "%v", placed)
		placed[a.server]++
	}
	t.Logf("1000 players in %v", time.Since(began))
	for _, s := range servers {
		require.Equal(t, 100, placed[s.ID()])
	}
}

// TestOpenAtOnce: processes that open a bucket that isn't there at once, with different settings, all get it.
func TestOpenAtOnce(t *testing.T) {
	b, _ := open(t)
	for i := range 10 {
		name := "at-once-" + strconv.Itoa(i)
		errs := make(chan error, 8)
		for k := range cap(errs) {
			cfg := Config{Name: name, Replicas: 1}
			go func() {
				if k%2 == 1 { // another version of the program
					other := *b
					other.cfg.Bucket, other.cfg.Description = name, "other"
					_, err := other.find(context.Background())
					errs <- err
					return
				}
				_, err := Open(context.Background(), b.nc, cfg)
				errs <- err
			}()
		}
		for range cap(errs) {
			require.NoError(t, <-errs)
		}
	}
}

// TestLeaderReads: reads aren't answered by replicas, of a new bucket and of one that was made otherwise, nor of one that is created again.
func TestLeaderReads(t *testing.T) {
	b, _ := open(t)
	ctx := context.Background()
	_, err := b.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "other"})
	require.NoError(t, err)
	for _, name := range []string{"fleet", "other", "fleet"} {
		o, err := Open(ctx, b.nc, Config{Name: name, Timeout: patience})
		require.NoError(t, err)
		k, err := o.kv.Status(ctx)
		require.NoError(t, err)
		require.False(t, k.(*jetstream.KeyValueBucketStatus).StreamInfo().Config.AllowDirect, name)
		require.False(t, o.stream.CachedInfo().Config.AllowDirect, name)
		if name == "fleet" {
			require.NoError(t, b.js.DeleteKeyValue(ctx, name))
			_, err = o.made(ctx)
			require.NoError(t, err)
			s, err := b.js.Stream(ctx, "KV_"+name)
			require.NoError(t, err)
			require.False(t, s.CachedInfo().Config.AllowDirect, name)
		}
	}
}

// TestLostBucket: a bucket that is lost is created again, and machines are told that it is another one.
func TestLostBucket(t *testing.T) {
	b, _ := open(t)
	s := b.Store(asks{"a."})
	defer s.Close()
	r := &reader{t: t, s: s}
	first := r.until(func(e kv.Event) bool { return e.Kind == kv.Begin })
	require.NotZero(t, first.Store)
	require.Equal(t, kv.OK, r.do(kv.Op{ID: 1, Kind: kv.Put, Key: "a.1", Value: []byte("x")}).Status)
	require.NoError(t, b.js.DeleteKeyValue(context.Background(), b.cfg.Bucket))
	again := r.until(func(e kv.Event) bool { return e.Kind == kv.Begin })
	require.NotEqual(t, first.Store, again.Store)
	e := r.do(kv.Op{ID: 2, Kind: kv.Put, Key: "a.1", Value: []byte("y")})
	require.Equal(t, kv.OK, e.Status)
	require.EqualValues(t, 1, e.Revision)
	r.until(func(e kv.Event) bool { return e.Kind == kv.Changed && string(e.Value) == "y" })
}

// TestQuiet: a watch begins anew, and tells all that there is, when nothing has come for Config.Quiet, as when the node that had it is lost.
func TestQuiet(t *testing.T) {
	b, _ := open(t)
	b, err := Open(context.Background(), b.nc, Config{Timeout: patience, Quiet: 50 * time.Millisecond})
	require.NoError(t, err)
	s := b.Store(asks{"a."})
	defer s.Close()
	r := &reader{t: t, s: s}
	require.Equal(t, kv.OK, r.do(kv.Op{ID: 1, Kind: kv.Put, Key: "a.x", Value: []byte("1"), Expect: kv.Any}).Status)
	for range 5 { // with 15 s it wouldn't within patience
		r.until(func(e kv.Event) bool { return e.Kind == kv.Begin })
		r.until(func(e kv.Event) bool { return e.Kind == kv.Changed })
		r.until(func(e kv.Event) bool { return e.Kind == kv.Current })
	}
}
