// Package placing joins a fleet's Placer with a token service: many goroutines ask one placer, which has a goroutine of its own.
//
//	placer, err := fleet.NewPlacer(fleet.PlacerConfig{})
//	service := placing.Start(placer, bucket.Store(placer))
//	defer service.Close()
//	tokens, err := tokenserver.New(tokenserver.Config{Key: key, Authenticate: ..., Life: 30 * time.Second, // at most fleet.Timing.Life
//		Place: service.Place(func(r *http.Request, p *tokenserver.Player) (fleet.Want, error) {
//			return fleet.Want{Build: r.Header.Get("X-Build")}, nil
//		})})
//
// Clients are refused with these answers, which tokenserver.Fetch returns as *tokenserver.Error:
//
//	426  no server takes the client's build or schema; the reason lists the builds, or those that have room and "and others"
//	409  the party is larger than any server
//	404  no server is near enough
//	503  "full", "no_servers", "unavailable", "busy": ask again after a second or more
package placing

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/bunchnet/bunchnet/netconn/fleet"
	"github.com/bunchnet/bunchnet/netconn/kv"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netcode/tokenserver"
)

// Store is a store that says when there are events: natskv.Store.
type Store interface {
	kv.Store
	Wake() <-chan struct{}
}

// Service runs a Placer. Safe for concurrent use.
type Service struct {
	placer *fleet.Placer
	store  Store
	asks   chan *ask
	end    chan struct{}
	done   sync.WaitGroup
	ended  sync.Once
}

type ask struct {
	do   func()              // on the placer's goroutine
	want fleet.Want          // without do
	out  chan *fleet.Outcome // has room for one
}

// stepEvery is the most time between two steps of the placer.
const stepEvery = 20 * time.Millisecond

// Start starts the placer's goroutine. The placer and the store are its own from now on, until Close.
func Start(p *fleet.Placer, s Store) *Service {
	v := &Service{placer: p, store: s, asks: make(chan *ask, 1024), end: make(chan struct{})}
	v.done.Go(v.run)
	return v
}

// Close ends the goroutine. Placings under way, and later ones, end with ErrUnavailable. It doesn't close the store.
func (v *Service) Close() {
	v.ended.Do(func() { close(v.end) })
	v.done.Wait()
}

func (v *Service) run() {
	began := time.Now()
	ticker := time.NewTicker(stepEvery)
	defer ticker.Stop()
	waiting := map[uint64]chan *fleet.Outcome{}
	for {
		select {
		case <-v.end:
			for _, out := range waiting {
				out <- &fleet.Outcome{Err: fleet.ErrUnavailable}
			}
			return
		case a := <-v.asks:
			v.take(a, waiting)
			for range len(v.asks) { // all that ask now are placed by the same writes
				v.take(<-v.asks, waiting)
			}
		case <-v.store.Wake():
		case <-ticker.C:
		}
		kv.Tick(v.placer, v.store, time.Since(began))
		for _, o := range v.placer.Outcomes() {
			waiting[o.ID] <- &o
			delete(waiting, o.ID)
		}
	}
}

func (v *Service) take(a *ask, waiting map[uint64]chan *fleet.Outcome) {
	if a.do != nil {
		a.do()
		a.out <- nil
		return
	}
	id, err := v.placer.Place(a.want)
	if err != nil {
		a.out <- &fleet.Outcome{Err: err}
		return
	}
	waiting[id] = a.out
}

// ask gives an ask to the placer's goroutine, and waits.
func (v *Service) ask(ctx context.Context, a *ask) (*fleet.Outcome, error) {
	a.out = make(chan *fleet.Outcome, 1)
	select {
	case v.asks <- a:
	case <-v.end:
		return nil, fleet.ErrUnavailable
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case o := <-a.out:
		return o, nil
	case <-v.end:
		return nil, fleet.ErrUnavailable
	case <-ctx.Done(): // its seats lapse
		return nil, ctx.Err()
	}
}

// Find places a want. Errors are those of Placer.Place and of an Outcome, and the context's.
func (v *Service) Find(ctx context.Context, w fleet.Want) (fleet.Placement, error) {
	o, err := v.ask(ctx, &ask{want: w})
	if err != nil {
		return fleet.Placement{}, err
	}
	return o.Placement, o.Err
}

// Look calls f with the placer, on its goroutine: to see its list, its counters. f must not call Step, and must not keep the placer.
func (v *Service) Look(ctx context.Context, f func(p *fleet.Placer)) error {
	_, err := v.ask(ctx, &ask{do: func() { f(v.placer) }})
	return err
}

// Place returns a function for tokenserver.Config.Place. want says what the player wants, of a request whose login is good. Its Player is the login's
// ID unless want sets it, so an account has one seat however often it asks. ID 0 is nobody's: each of its requests gets a seat, so give accounts others.
func (v *Service) Place(want func(r *http.Request, p *tokenserver.Player) (fleet.Want, error)) func(r *http.Request, p *tokenserver.Player) error {
	return func(r *http.Request, p *tokenserver.Player) error {
		w, err := want(r, p)
		if err != nil {
			return err
		}
		if w.Player == 0 {
			w.Player = p.ID
		}
		pl, err := v.Find(r.Context(), w)
		if err != nil {
			return refusal(err)
		}
		p.Servers, p.Internal = servers(&pl)
		pl.Ticket.Write(&p.UserData)
		return nil
	}
}

// servers returns the addresses of a token: those of the server that has the seat, then those of the others.
func servers(pl *fleet.Placement) (dial, internal []netip.AddrPort) {
	own := false
	for _, i := range append([]fleet.Info{pl.Server}, pl.Backups...) {
		in := i.Internal
		if own = own || len(in) > 0; len(in) == 0 {
			in = i.Addrs
		}
		if len(dial)+len(i.Addrs) > netcode.MaxServers || len(internal)+len(in) > netcode.MaxServers {
			break
		}
		dial, internal = slices.Concat(dial, i.Addrs), slices.Concat(internal, in)
	}
	if !own {
		internal = nil
	}
	return dial, internal
}

// maxReason is the most bytes of a reason that a client is told.
const maxReason = 100

// builds is a reason that lists as many builds as have room, and says when there are more.
func builds(all []string) string {
	for n := len(all); ; n-- {
		reason := (&fleet.OtherBuild{Builds: all[:n]}).Error()
		if n < len(all) {
			reason += " and others"
		}
		if len(reason) <= maxReason || n == 0 {
			return reason
		}
	}
}

func refusal(err error) error {
	var other *fleet.OtherBuild
	refuse := func(status int, reason string) error { return &tokenserver.Error{Status: status, Reason: reason} }
	switch {
	case errors.As(err, &other):
		return refuse(http.StatusUpgradeRequired, builds(other.Builds))
	case errors.Is(err, fleet.ErrTooLarge):
		return refuse(http.StatusConflict, "party_too_large")
	case errors.Is(err, fleet.ErrRegion):
		return refuse(http.StatusNotFound, "no_server_near")
	case errors.Is(err, fleet.ErrConfig):
		return refuse(http.StatusBadRequest, "bad_want")
	case errors.Is(err, fleet.ErrFull):
		return refuse(http.StatusServiceUnavailable, "full")
	case errors.Is(err, fleet.ErrBusy):
		return refuse(http.StatusServiceUnavailable, "busy")
	case errors.Is(err, fleet.ErrNoServers):
		return refuse(http.StatusServiceUnavailable, "no_servers")
	}
	return tokenserver.ErrUnavailable
}
