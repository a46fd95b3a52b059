package packetnotify

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/history/seqnum"
)

// A script is a play of two ends, A and B, one act to a line:
//
//	begin A 1000 B 500 [wait]     first ids of both; wait: with WaitForFlush
//	send A 3                      A sends three packets
//	write A / refresh A OK / commit A   one packet in its three steps; OK is yes or no
//	lose A 1001 1003..1005        these of A's packets never arrive
//	deliver A 1002                arrives at the other end and is processed; then, after "as":
//	                                refused    processed, but not accepted by the channels
//	                                dropped    it isn't even looked at
//	                                waiting    left alone until a flush
//	again A 1002 as dropped       arrives once more
//	want A acked 500 502 lost 501     A has heard this since the last want, in this order
//	want A nothing
//	header A acks 1002 words 1    what A would write now
//	flying A 2                    packets of A's whose fate A doesn't know
//
// At the end nobody may have heard anything that no line wanted.
type script struct {
	t      *testing.T
	where  string
	ends   map[string]*Notify
	out    map[string]*bitio.Writer
	mail   map[string]map[int64][]byte // by sender
	heard  map[string]*facts
	gone   map[string]map[int64]bool
	played int
}

func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			s := &script{t: t}
			for i, line := range strings.Split(string(b), "\n") {
				line, _, _ = strings.Cut(line, "#")
				if words := strings.Fields(line); len(words) > 0 {
					s.where = fmt.Sprintf("%s:%d: %s", file, i+1, strings.TrimSpace(line))
					s.play(words)
				}
			}
			s.finish()
		})
	}
}

var other = map[string]string{"A": "B", "B": "A"}

func (s *script) play(words []string) {
	verb, end, rest := words[0], words[1], words[2:]
	require.Contains(s.t, other, end, s.where)
	switch s.played++; verb {
	case "begin":
		s.begin(rest)
	case "send":
		for range s.number(rest[0]) {
			s.write(end)
			s.commit(end)
		}
	case "write":
		s.write(end)
	case "refresh":
		require.Equal(s.t, rest[0] == "yes", s.ends[end].RefreshHeader(s.out[end], 0), s.where)
	case "commit":
		s.commit(end)
	case "lose":
		for _, id := range s.ids(rest) {
			s.take(end, id)
		}
	case "deliver", "again":
		ids, how, _ := strings.Cut(strings.Join(rest, " "), " as ")
		for _, id := range s.ids(strings.Fields(ids)) {
			s.deliver(end, id, how, verb == "again")
		}
	case "want":
		s.want(end, rest)
	case "header":
		h := headerOf(s.ends[end], s.ends[end].words())
		require.Equal(s.t, rest, strings.Fields(fmt.Sprintf("acks %d words %d", h.AckedSeq, h.Words)), s.where)
	case "flying":
		require.Equal(s.t, s.number(rest[0]), s.ends[end].Outstanding(), s.where)
	default:
		s.t.Fatal("unknown verb: ", s.where)
	}
}

func (s *script) begin(rest []string) {
	first := map[string]uint16{"A": uint16(s.number(rest[0])), "B": uint16(s.number(rest[2]))}
	cfg := Config{}
	if len(rest) > 3 {
		cfg = Config{WaitForFlush: true, AckRecords: maxRecords}
	}
	s.ends, s.out, s.heard = map[string]*Notify{}, map[string]*bitio.Writer{}, map[string]*facts{}
	s.mail, s.gone = map[string]map[int64][]byte{}, map[string]map[int64]bool{}
	for end, peer := range other {
		s.ends[end], s.heard[end] = new(Notify), new(facts)
		s.ends[end].Init(cfg, first[peer], first[end])
		s.mail[end], s.gone[end] = map[int64][]byte{}, map[int64]bool{}
	}
}

func (s *script) write(end string) {
	s.out[end] = bitio.NewWriter(make([]byte, 64))
	s.ends[end].WriteHeader(s.out[end])
}

func (s *script) commit(end string) {
	s.mail[end][s.ends[end].Commit()] = s.out[end].Bytes()
}

// take is a packet that was sent, and neither lost nor delivered until now.
func (s *script) take(from string, id int64) []byte {
	require.Contains(s.t, s.mail[from], id, s.where)
	require.False(s.t, s.gone[from][id], "%s: %d is gone", s.where, id)
	s.gone[from][id] = true
	return s.mail[from][id]
}

func (s *script) deliver(from string, id int64, how string, again bool) {
	b := s.mail[from][id]
	if !again {
		b = s.take(from, id)
	}
	var h Header
	err := h.Read(bitio.NewReader(b, len(b)*8))
	require.NoError(s.t, err, s.where)
	to := other[from]
	n := s.ends[to]
	delta, process := n.Update(&h, s.heard[to])
	got := "dropped"
	switch {
	case process:
		got = ""
		if how == "refused" {
			got = how
		}
		n.AckSeq(how != "refused")
	case delta > 0 || n.WaitingForFlush():
		got = "waiting"
	}
	require.Equal(s.t, how, got, "%s: packet %d", s.where, id)
	checkInvariants(s.t, n, s.where)
}

func (s *script) want(end string, rest []string) {
	var want facts
	acked := false
	for _, word := range rest {
		switch word {
		case "acked", "lost":
			acked = word == "acked"
		case "nothing":
		default:
			for _, id := range s.ids([]string{word}) {
				want = append(want, fact{id, acked})
			}
		}
	}
	require.Equal(s.t, want, *s.heard[end], s.where)
	*s.heard[end] = nil
}

func (s *script) finish() {
	for end, heard := range s.heard {
		require.Empty(s.t, *heard, "%s heard what no line wanted", end)
	}
	require.Positive(s.t, s.played)
}

func (s *script) number(word string) int {
	v, err := strconv.Atoi(word)
	require.NoError(s.t, err, s.where)
	return v
}

// ids expands numbers and ranges like 5..7.
func (s *script) ids(words []string) (ids []int64) {
	for _, word := range words {
		from, to, ranged := strings.Cut(word, "..")
		if !ranged {
			to = from
		}
		for id := s.number(from); id <= s.number(to); id++ {
			ids = append(ids, int64(id))
		}
	}
	return ids
}

// headerOf is the header of the next packet with that many words of history.
func headerOf(n *Notify, words int) Header {
	return Header{Seq: seqnum.Packet.Truncate(n.outSeq), AckedSeq: seqnum.Packet.Truncate(n.inAckSeq), Words: words, History: n.in}
}
