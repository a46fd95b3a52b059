//go:build !js

package web

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/udp"
)

var errSieve = errors.New("of the socket")

// script is a socket whose reads and writes a test has written down.
type script struct {
	queued
	reads   []string // what each read finds: p is a probe, d another datagram, e an empty one, and ! an error behind them
	calls   string   // w for a read that waits, t for one that doesn't
	writes  func(p []byte) (bool, error)
	written []byte // the last byte of each answer
	most    int    // that a write takes; 0 no bound
	late    error  // of writes that have written all
}

func (s *script) read(call string, msgs []udp.Message) (n int, err error) {
	s.calls += call
	if len(s.reads) == 0 {
		return 0, nil
	}
	found := s.reads[0]
	s.reads = s.reads[1:]
	found, failed := strings.CutSuffix(found, "!")
	for i, kind := range found {
		p := []byte{1, 2, 3}
		switch kind {
		case 'p':
			p = newProbe(probeAsk)
			p[len(p)-1] = byte(i)
		case 'e':
			p = nil
		}
		msgs[i].Lend(msgs[i].Buf[:copy(msgs[i].Buf, p)])
	}
	if failed {
		err = errSieve
	}
	return len(found), err
}

func (s *script) ReadBatch(msgs []udp.Message) (int, error)    { return s.read("w", msgs) }
func (s *script) TryReadBatch(msgs []udp.Message) (int, error) { return s.read("t", msgs) }

func (s *script) WriteBatch(msgs []udp.Message) (n int, err error) {
	if s.most > 0 && len(msgs) > s.most {
		return s.WriteBatch(msgs[:s.most])
	}
	for ; n < len(msgs); n++ {
		p := msgs[n].Buf
		if s.writes != nil {
			if ok, err := s.writes(p); !ok {
				return n, err
			}
		}
		s.written = append(s.written, p[len(p)-1])
	}
	return n, s.late
}

// TestSieve: a read that waits does so until there is a datagram for the driver. A full batch of which some were taken out has the places of these filled with what waits, a smaller one, or one
// behind which there is an error, is all there is.
func TestSieve(t *testing.T) {
	for _, c := range []struct {
		wait  bool
		reads string // by commas
		n     int
		calls string
		fails bool
	}{
		{true, "p,d", 1, "ww", false},
		{true, "pppp,d", 1, "ww", false},
		{true, "d", 1, "w", false},
		{true, "pdd,d", 2, "w", false},
		{true, "dddd,d", 4, "w", false},
		{true, "pddd", 3, "wt", false},
		{true, "pddd,d", 4, "wt", false},
		{true, "pddd,p,d", 4, "wtt", false},
		{true, "pddd!,d", 3, "w", true},
		{true, "pppp!,d", 0, "w", true},
		{true, "pddd,!", 3, "wt", true},
		{true, "", 0, "w", false},
		{false, "", 0, "t", false},
		{false, "pdd,d", 2, "t", false},
		{false, "pddd,p,d,d", 4, "ttt", false},
		{false, "pppp,dddd", 4, "tt", false},
		{false, "pddd!,d", 3, "t", true},
		{false, "dddd!", 4, "t", true},
		{false, "ddep,d", 4, "tt", false},
	} {
		s := &script{reads: strings.Split(c.reads, ",")}
		read := Answer(s).TryReadBatch
		if c.wait {
			read = Answer(s).ReadBatch
		}
		msgs := make([]udp.Message, 4)
		for i := range msgs {
			msgs[i].Buf = make([]byte, 1500)
		}
		n, err := read(msgs)
		require.Equal(t, c.n, n, "%+v", c)
		require.Equal(t, c.calls, s.calls, "%+v", c)
		require.Equal(t, c.fails, errors.Is(err, errSieve), "%+v", c)
		want := strings.NewReplacer("p", "", "!", "", ",", "").Replace(c.reads)[:n]
		for i, kind := range want {
			if kind == 'e' {
				require.Empty(t, msgs[i].Data(), "%+v", c)
			} else {
				require.Equal(t, []byte{1, 2, 3}, msgs[i].Data(), "%+v", c)
			}
		}
	}
}

// TestSieveIsBounded: 4096 probes in a row end a read of what waits, and those of earlier reads, and what isn't a probe, don't count.
func TestSieveIsBounded(t *testing.T) {
	const batch = 64
	for _, c := range []struct{ datagrams, probes, ticks, least int }{{10_000, 10, 1, 10_010}, {100, 100, 100, 200}, {0, 10_000, 1, maxSifted}} {
		left := 0
		q := &queued{next: func() []byte {
			if left--; left < 0 {
				return nil
			}
			if (left*c.probes)%(c.datagrams+c.probes) < c.probes {
				return newProbe(probeAsk)
			}
			return []byte{1, 2, 3}
		}}
		s := Answer(q)
		msgs := make([]udp.Message, batch)
		for i := range msgs {
			msgs[i].Buf = make([]byte, 1500)
		}
		for range c.ticks {
			left = c.datagrams + c.probes
			for n := batch; n == batch; {
				var err error
				n, err = s.TryReadBatch(msgs)
				require.NoError(t, err)
			}
			require.Equal(t, c.least, c.datagrams+c.probes-max(left, 0), "%+v", c)
		}
	}
}

// TestAnswersThatAreLost: an answer that can't be sent costs no other, and none is sent twice, whether the socket says why or not, and takes few at once.
func TestAnswersThatAreLost(t *testing.T) {
	for _, why := range []error{nil, errSieve} {
		for _, lost := range []string{"", "0", "1", "3", "03", "12", "0123"} {
			calls := 0
			s := &script{reads: []string{"pppp"}, late: why}
			if why == nil {
				s.most = 2
			}
			s.writes = func(p []byte) (bool, error) {
				calls++
				require.Less(t, calls, 10)
				return !strings.Contains(lost, fmt.Sprint(p[len(p)-1])), why
			}
			msgs := make([]udp.Message, 4)
			for i := range msgs {
				msgs[i].Buf, msgs[i].Addr = make([]byte, 1500), netip.MustParseAddrPort("192.0.2.9:999")
			}
			_, err := Answer(s).TryReadBatch(msgs)
			require.NoError(t, err)
			want := ""
			for i := range 4 {
				if !strings.Contains(lost, fmt.Sprint(i)) {
					want += fmt.Sprint(i)
				}
			}
			got := ""
			for _, i := range s.written {
				got += fmt.Sprint(i)
			}
			require.Equal(t, want, got, "%v, without %q", why, lost)
		}
	}
}
