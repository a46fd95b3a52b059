// Package natskv is the store of a fleet on NATS JetStream: a key-value bucket.
//
//	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true))
//	bucket, err := natskv.Open(ctx, nc, natskv.Config{})     // creates the bucket if need be
//	store := bucket.Store(server)                            // of a kv.Machine; watches its keys
//	each tick: kv.Tick(server, store, now)                   // never waits
//
// Ops run in goroutines, MaxOps at a time for each Store. An op without an answer within Config.Timeout has status Unknown. What arrives waits for
// Events, which the owner of the machine calls: 65,536 events at most; then the watch ends, and begins anew when they have been fetched.
//
// The watch also begins anew when the connection was lost, and when nothing has come for Config.Quiet: NATS doesn't end a watch whose node was lost. A bucket that was lost is created again then,
// and the node is asked for the bucket. A node that doesn't answer within a quarter of Quiet, because it stands still or is cut off from the others, is left for the next one of the URL. By itself, with its
// default settings, the NATS client notices a node that stands still after some minutes, and one that is cut off never. Open leaves such a node as well, so that the next Open asks another one.
//
// Keys with a TTL need nats-server 2.11 or newer. In a cluster set Replicas to 3: the bucket survives the loss of one node; while a new
// leader is elected, some seconds, ops have status Unknown, and the fleet plays on. Reads are answered by the leader: Open
// switches AllowDirect off, with which a replica that is behind may answer.
package natskv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/bunchnet/bunchnet/netconn/kv"
)

// Config configures a Bucket.
type Config struct {
	// Name is the bucket's. Default "fleet".
	Name string
	// Replicas is how many nodes of a cluster have the bucket, when Open creates it. A bucket that exists stays as it is. Default 1.
	Replicas int
	// Timeout bounds one op, and the beginning of a watch. Default 2 s.
	Timeout time.Duration
	// Quiet is how long nothing may come of a watch before the node is asked for the bucket and the watch begins anew. A machine hears its own writes: set it to a few times their interval, for mesh.Keeper to half of its Lease. Default 15 s.
	Quiet time.Duration
}

// Bucket is a key-value bucket. Safe for concurrent use.
type Bucket struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	cfg     jetstream.KeyValueConfig
	kv      jetstream.KeyValue
	stream  jetstream.Stream
	prefix  string
	timeout time.Duration
	quiet   time.Duration
	asking  *sync.Mutex    // held by who asks whether the node reaches the bucket
	newest  *atomic.Uint64 // revision that was heard of
}

const (
	// MaxOps is the most ops of a Store under way. Further ones have status Unknown at once.
	MaxOps = 256

	maxEvents  = 1 << 16
	retryAfter = 500 * time.Millisecond
	// markerTTL is how long the store remembers a key that was deleted. Longer than an op may be late.
	markerTTL = 10 * time.Minute
)

// Open finds or creates the bucket.
func Open(ctx context.Context, nc *nats.Conn, cfg Config) (*Bucket, error) {
	cfg.Name, cfg.Replicas = cmp.Or(cfg.Name, "fleet"), cmp.Or(cfg.Replicas, 1)
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("natskv: %w", err)
	}
	b := &Bucket{nc: nc, js: js, prefix: "$KV." + cfg.Name + ".", timeout: cmp.Or(cfg.Timeout, 2*time.Second), quiet: cmp.Or(cfg.Quiet, 15*time.Second), asking: &sync.Mutex{}, newest: &atomic.Uint64{}}
	b.cfg = jetstream.KeyValueConfig{Bucket: cfg.Name, Description: "bunchnet fleet", Replicas: cfg.Replicas, MaxValueSize: kv.MaxValue, LimitMarkerTTL: markerTTL}
	if b.kv, err = b.find(ctx); err == nil {
		b.stream, err = js.Stream(ctx, "KV_"+cfg.Name)
	}
	if err != nil {
		b.leave(err)
		return nil, fmt.Errorf("natskv: %s: %w", cfg.Name, err)
	}
	return b, nil
}

// find finds or creates the bucket, and has the leader answer reads: a replica that is behind may say that a key isn't there, and a machine would take it for deleted.
func (b *Bucket) find(ctx context.Context) (jetstream.KeyValue, error) {
	k, err := b.findAny(ctx)
	if err != nil {
		return nil, err
	}
	s, err := b.js.Stream(ctx, "KV_"+b.cfg.Bucket)
	if err != nil || !s.CachedInfo().Config.AllowDirect {
		return k, err
	}
	cfg := s.CachedInfo().Config
	cfg.AllowDirect = false
	if _, err = b.js.UpdateStream(ctx, cfg); err != nil {
		return nil, err
	}
	return b.js.KeyValue(ctx, b.cfg.Bucket) // which keeps the setting
}

// findAny finds or creates the bucket.
func (b *Bucket) findAny(ctx context.Context) (jetstream.KeyValue, error) {
	k, err := b.js.KeyValue(ctx, b.cfg.Bucket)
	if !errors.Is(err, jetstream.ErrBucketNotFound) {
		return k, err
	}
	k, err = b.js.CreateKeyValue(ctx, b.cfg)
	if errors.Is(err, jetstream.ErrBucketExists) { // somebody else has created it meanwhile, with other settings
		return b.js.KeyValue(ctx, b.cfg.Bucket)
	}
	return k, err
}

// Store is the bucket as one machine sees it. It implements kv.Store. Close it at the end.
type Store struct {
	b    *Bucket
	wake chan struct{}
	ctx  context.Context
	end  context.CancelFunc
	all  sync.WaitGroup

	mu      sync.Mutex
	in, out []kv.Event
	pending int
	full    bool // in is; the watch ends
}

// Store begins to watch a machine's keys.
func (b *Bucket) Store(m kv.Machine) *Store {
	s := &Store{b: b, wake: make(chan struct{}, 1)}
	s.ctx, s.end = context.WithCancel(context.Background())
	var keys []string
	for _, k := range m.Watches() {
		if strings.HasSuffix(k, ".") {
			k += ">"
		}
		keys = append(keys, k)
	}
	s.all.Go(func() { s.watch(keys) })
	return s
}

// Close ends the watch and ops under way, and waits for them. What they did is unknown.
func (s *Store) Close() {
	s.end()
	s.all.Wait()
}

// Wake returns a channel that has a value when there are new events, for an owner without ticks of its own.
func (s *Store) Wake() <-chan struct{} { return s.wake }

// Events implements kv.Store.
func (s *Store) Events() []kv.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in, s.out, s.full = s.out[:0], s.in, false
	return s.out
}

// Do implements kv.Store.
func (s *Store) Do(op kv.Op) {
	s.mu.Lock()
	room := s.pending < MaxOps && s.ctx.Err() == nil
	if room {
		s.pending++
	}
	s.mu.Unlock()
	if !room {
		s.push(kv.Event{Kind: kv.Result, ID: op.ID, Status: kv.Unknown})
		return
	}
	since := s.b.newest.Load()
	s.all.Go(func() {
		ctx, cancel := context.WithTimeout(s.ctx, s.b.timeout)
		defer cancel()
		e := s.b.do(ctx, op, since)
		e.Kind, e.ID = kv.Result, op.ID
		s.mu.Lock()
		s.pending--
		s.mu.Unlock()
		s.push(e)
	})
}

// push adds an event. It reports whether there was room; results always have some.
func (s *Store) push(e kv.Event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Kind != kv.Result && len(s.in) >= maxEvents {
		s.full = true
		return false
	}
	s.in = append(s.in, e)
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return true
}

// do does an op. since is the newest revision that was heard of when it began.
func (b *Bucket) do(ctx context.Context, op kv.Op, since uint64) kv.Event {
	switch op.Kind {
	case kv.Get:
		return b.get(ctx, op.Key)
	case kv.Put:
		return b.put(ctx, op, since)
	}
	_, err := b.publish(ctx, op)
	return kv.Event{Status: status(err)}
}

// heard notes a revision.
func (b *Bucket) heard(revision uint64) {
	for {
		if newest := b.newest.Load(); revision <= newest || b.newest.CompareAndSwap(newest, revision) {
			return
		}
	}
}

// marker returns the revision in which a key was deleted; 0: it is there, or was never.
func (b *Bucket) marker(ctx context.Context, key string) (uint64, error) {
	last, err := b.stream.GetLastMsgForSubject(ctx, b.prefix+key)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return 0, nil
	case err != nil:
		return 0, err
	}
	b.heard(last.Sequence)
	if last.Header.Get("KV-Operation") != "" || last.Header.Get("Nats-Marker-Reason") != "" {
		return last.Sequence, nil
	}
	return 0, nil
}

func (b *Bucket) get(ctx context.Context, key string) kv.Event {
	e, err := b.kv.Get(ctx, key)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		if _, err := b.marker(ctx, key); err != nil { // a Put that begins after this shall be after the deletion
			return kv.Event{Status: kv.Unknown}
		}
		return kv.Event{Status: kv.Missing}
	case err != nil:
		return kv.Event{Status: kv.Unknown}
	}
	b.heard(e.Revision())
	return kv.Event{Key: key, Value: e.Value(), Revision: e.Revision()}
}

// put writes a value. A key that was deleted has a marker with a revision: who expects no key writes over that, unless it may have begun before the deletion.
func (b *Bucket) put(ctx context.Context, op kv.Op, since uint64) kv.Event {
	rev, err := b.publish(ctx, op)
	if op.Expect == 0 && status(err) == kv.Conflict {
		deleted, lastErr := b.marker(ctx, op.Key)
		if lastErr == nil && deleted > 0 && deleted <= since {
			op.Expect = deleted
			rev, err = b.publish(ctx, op)
		}
	}
	return kv.Event{Status: status(err), Revision: rev}
}

// publish writes a value, or a marker that the key was deleted, as jetstream's KeyValue does, and returns its revision.
func (b *Bucket) publish(ctx context.Context, op kv.Op) (uint64, error) {
	m := nats.NewMsg(b.prefix + op.Key)
	m.Data = op.Value
	opts := []jetstream.PublishOpt{jetstream.WithRetryAttempts(0)}
	if op.Expect != kv.Any {
		opts = append(opts, jetstream.WithExpectLastSequencePerSubject(op.Expect))
	}
	ttl := op.TTL
	if op.Kind == kv.Delete {
		ttl = markerTTL
		m.Header.Set("KV-Operation", "PURGE")
		m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	}
	if ttl > 0 {
		opts = append(opts, jetstream.WithMsgTTL((ttl + time.Second - 1).Truncate(time.Second)))
	}
	ack, err := b.js.PublishMsg(ctx, m, opts...)
	if err != nil {
		return 0, err
	}
	b.heard(ack.Sequence)
	return ack.Sequence, nil
}

func status(err error) kv.Status {
	var api *jetstream.APIError
	switch {
	case err == nil:
		return kv.OK
	case errors.Is(err, jetstream.ErrKeyRevisionMismatch):
		return kv.Conflict
	case errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant):
		return kv.Conflict
	}
	return kv.Unknown
}

// watch watches until Close.
func (s *Store) watch(keys []string) {
	up := s.b.nc.StatusChanged(nats.CONNECTED)
	defer s.b.nc.RemoveStatusListener(up)
	for s.ctx.Err() == nil {
		s.watchOnce(keys, up)
		select {
		case <-s.ctx.Done():
		case <-time.After(retryAfter):
		}
	}
}

// watchOnce watches until the watch breaks.
func (s *Store) watchOnce(keys []string, up <-chan nats.Status) {
	s.mu.Lock()
	full := s.full
	s.mu.Unlock()
	if full {
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	store, err := s.b.made(ctx)
	if err != nil {
		return
	}
	late := time.AfterFunc(s.b.timeout, cancel)             // ctx is for as long as the watch goes on
	w, err := s.b.kv.WatchFiltered(ctx, slices.Clone(keys)) // which it changes
	if err != nil {
		return
	}
	if !late.Stop() {
		_ = w.Stop()
		return
	}
	defer func() { _ = w.Stop() }()
	if again, err := s.b.made(ctx); err != nil || again != store {
		return
	}
	if !s.push(kv.Event{Kind: kv.Begin, Store: store}) {
		return
	}
	timer := time.NewTimer(s.b.quiet)
	defer timer.Stop()
	for {
		timer.Reset(s.b.quiet)
		select {
		case <-s.ctx.Done():
			return
		case <-up: // connected again
			return
		case <-timer.C:
			s.b.leaveMute(s.ctx)
			return
		case e, ok := <-w.Updates():
			if ok && e != nil {
				s.b.heard(e.Revision())
			}
			if !ok || !s.push(event(e)) {
				return
			}
		}
	}
}

// leaveMute has the connection go to another node when there is no answer about the bucket through its own. Ops under way are unknown at once then.
func (b *Bucket) leaveMute(ctx context.Context) {
	if !b.asking.TryLock() {
		return // another store's watch asks
	}
	defer b.asking.Unlock()
	ask, cancel := context.WithTimeout(ctx, b.quiet/4)
	defer cancel()
	if _, err := b.js.Stream(ask, "KV_"+b.cfg.Bucket); ctx.Err() == nil {
		b.leave(err)
	}
}

// leave has the connection go to another node when an error says that the bucket wasn't reached.
func (b *Bucket) leave(err error) {
	var api *jetstream.APIError
	mute := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrJetStreamNotEnabled)
	if (mute || errors.As(err, &api) && api.Code == 503) && b.nc.IsConnected() {
		_ = b.nc.ForceReconnect() // it fails for a connection that the program has closed
	}
}

// made returns the number of the bucket, for Event.Store: when it was created. A bucket that was lost is created.
func (b *Bucket) made(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	if _, err := b.find(ctx); err != nil {
		return 0, err
	}
	s, err := b.js.Stream(ctx, "KV_"+b.cfg.Bucket)
	if err != nil {
		return 0, err
	}
	return uint64(s.CachedInfo().Created.UnixNano()), nil
}

func event(e jetstream.KeyValueEntry) kv.Event {
	switch {
	case e == nil:
		return kv.Event{Kind: kv.Current}
	case e.Operation() == jetstream.KeyValuePut:
		return kv.Event{Kind: kv.Changed, Key: e.Key(), Value: e.Value(), Revision: e.Revision()}
	}
	return kv.Event{Kind: kv.Deleted, Key: e.Key(), Revision: e.Revision()}
}
