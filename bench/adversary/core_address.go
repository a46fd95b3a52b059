package main

import (
	"time"

	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

func init() {
	register(
		attack{area: "core", name: "idle at a new address", promise: "with the Unreal handshake an idle client whose address changes is found again", bound: atMost(8, "s"), run: newAddress},
		attack{area: "core", name: "restarts after silence", promise: "a restart that the server answers with an ack of the connection ends: datagrams a second, against a calm connection", bound: atMost(1.1, "x calm"), run: restarts},
	)
}

// idlePair is a client and a server over the Unreal handshake that have talked, and say nothing any more.
func idlePair(e *env) (w *world, got *numbers, send func() error) {
	got = &numbers{}
	w = newWorld(e, links["unreal"], func(m *member, c *driver.Config) {
		c.Channels[0].Accept = func(*channel.Channel) channel.Handler { return got }
		c.Timeout = 2 * time.Minute
	})
	client := w.join(netsim.Settings{Lag: 30 * time.Millisecond})
	if !w.runUntil(10*time.Second, func() bool { return client.conn != nil && w.server.conn != nil }) {
		return w, nil, nil
	}
	var ch *channel.Channel
	sent := uint64(0)
	return w, got, func() (err error) {
		if ch == nil {
			if ch, err = openData(w.server.conn.Conn, nil); err != nil {
				return err
			}
		}
		err = sendNumber(ch, sent, 40)
		sent++
		return err
	}
}

// newAddress is the longest time from a change of the client's address until what the server sends then arrives.
func newAddress(e *env) figure {
	worst := time.Duration(0)
	for range e.pick(3, 20) {
		e.seed++
		w, got, send := idlePair(e)
		if got == nil {
			return broken("never joined: %v", w.err)
		}
		_ = w.run(time.Duration(1+e.rng.IntN(15000)) * time.Millisecond) // the error stays
		w.clients[0].host.Rebind()
		began := w.Now()
		if err := send(); err != nil {
			return broken("%v", err)
		}
		if !w.runUntil(100*time.Second, func() bool { return got.next > 0 }) {
			return broken("not within 100 s: %v %v %v", w.err, w.server.result, w.clients[0].result)
		}
		worst = max(worst, w.Now()-began)
	}
	return figure{value: worst.Seconds()}
}

// restarts cuts both ways until the client wants to restart, and counts the datagrams of the next minute.
func restarts(e *env) figure {
	minute := func(cut time.Duration) (float64, error) {
		w, got, _ := idlePair(e)
		if got == nil {
			return 0, w.err
		}
		a, b := w.server.host, w.clients[0].host
		w.Cut(a, b)
		if err := w.run(cut); err != nil {
			return 0, err
		}
		w.Join(a, b)
		if err := w.run(5 * time.Second); err != nil {
			return 0, err
		}
		before := w.Counters.Sent
		err := w.run(time.Minute)
		return float64(w.Counters.Sent - before), err
	}
	calm, err := minute(0)
	if err != nil || calm == 0 {
		return broken("%v", err)
	}
	worst := 0.0
	for _, cut := range []time.Duration{1500 * time.Millisecond, 2500 * time.Millisecond, 6 * time.Second, 20 * time.Second} {
		n, err := minute(cut)
		if err != nil {
			return broken("%v", err)
		}
		e.notef("%v: %.0f datagrams in a minute, calm %.0f", cut, n, calm)
		worst = max(worst, n/calm)
	}
	return figure{value: worst}
}
