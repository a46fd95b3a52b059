package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Query says what a viewer wants to see.
type Query struct {
	// Conn is the ID of the connection shown in Detail. 0 is the first connection.
	Conn uint32
	// Also lists up to 7 connections whose packets are shown beside it.
	Also []uint32
	// Conns selects the connections listed.
	Conns ConnQuery
	// Actors selects the actors shown.
	Actors ActorQuery
	// Export asks for all packets that are kept, instead of the newest 64, and for up to 4096 connections, instead of 64.
	Export bool
}

// maxAlso bounds Query.Also.
const maxAlso = 7

// ErrQuery: a Query exceeds its bounds. It has too many connections in Also, too long a text in a Match, a From below 0, or no known column in Conns.Sort.
var ErrQuery = fmt.Errorf("inspect: at most %d connections beside one, a text of at most %d bytes to look for, and a column of the page to sort by", maxAlso, maxMatch)

func (q *Query) check() error {
	sorts := q.Conns.Sort == "" || orders[q.Conns.Sort] != nil
	if len(q.Also) > maxAlso || max(len(q.Actors.Match), len(q.Conns.Match)) > maxMatch || min(q.Actors.From, q.Conns.From) < 0 || !sorts {
		return ErrQuery
	}
	return nil
}

// maxLooks bounds the looks at the driver within an age, each for all who ask the same.
const maxLooks = 16

// looks is what the driver was asked lately, so that viewers share what they ask for within an age.
type looks struct {
	mu      sync.Mutex
	age     time.Duration
	byQuery map[string]*look
}

type look struct {
	began time.Time
	done  chan struct{}
	view  View
	err   error

	encode  sync.Once
	json    []byte
	jsonErr error
}

// encoded is the view as JSON and a newline. Viewers share it.
func (k *look) encoded() ([]byte, error) {
	k.encode.Do(func() {
		k.json, k.jsonErr = json.Marshal(k.view)
		k.json = append(k.json, '\n')
	})
	return k.json, k.jsonErr
}

// get returns a look that is young enough, or ask's answer.
func (l *looks) get(ctx context.Context, query string, ask func() (View, error)) (*look, error) {
	now := time.Now()
	l.mu.Lock()
	k := l.byQuery[query]
	if k == nil || now.Sub(k.began) >= l.age {
		for q, old := range l.byQuery {
			if now.Sub(old.began) >= l.age {
				delete(l.byQuery, q)
			}
		}
		if len(l.byQuery) >= maxLooks {
			l.mu.Unlock()
			return nil, ErrBusy
		}
		k = &look{began: now, done: make(chan struct{})}
		l.byQuery[query] = k
		l.mu.Unlock()
		k.view, k.err = ask()
		if k.err != nil {
			l.forget(query, k)
		}
		close(k.done)
		return k, k.err
	}
	l.mu.Unlock()
	select {
	case <-k.done:
		return k, k.err
	case <-ctx.Done():
		return nil, errors.Join(ErrNotTicked, ctx.Err())
	}
}

// forget has the next one ask again.
func (l *looks) forget(query string, k *look) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byQuery[query] == k {
		delete(l.byQuery, query)
	}
}
