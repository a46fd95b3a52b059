package flight

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

// TestLog writes entries of all kinds and reads them: what is kept is the newest of them, whole, within the bound, and no memory is made
// once the log is full.
func TestLog(t *testing.T) {
	const seed = 7
	rnd := rand.New(rand.NewPCG(seed, seed))
	p := &pool{}
	l := &log{pool: p, max: 2, keep: time.Hour}
	var wrote []entry
	var records []bridge.Sent
	at := time.Duration(0)
	one := func() {
		at += time.Duration(rnd.IntN(3)) * time.Duration(rnd.IntN(1000)) * time.Microsecond
		e := entry{at: at, conn: rnd.Uint32N(3) * 1000, packet: rnd.Int64N(2) << 33, // the same again, with others between
			a: rnd.Uint64() >> rnd.IntN(64), b: rnd.Uint64() >> rnd.IntN(64)}
		switch kind := byte(rnd.IntN(kindMore)); kind {
		case kindNote:
			e = entry{kind: kind, at: at, conn: e.conn, a: e.a, text: []byte(strings.Repeat("x", rnd.IntN(maxText+1)))}
			l.begin(kind, at, e.conn).uint(e.a).bytes(e.text)
		case kindValue:
			e.kind, e.b, e.text = kind, 0, []byte(strings.Repeat("y", rnd.IntN(6*maxShown)))
			l.begin(kind, at, e.conn).uint(uint64(e.packet)).uint(e.a).bytes(e.text)
		case kindCall, kindView, kindCorrected, kindWaits:
			e.kind, e.text = kind, []byte(strings.Repeat("z", rnd.IntN(20)))
			l.begin(kind, at, e.conn).uint(uint64(e.packet)).uint(e.a).uint(e.b).bytes(e.text)
		case kindSent, kindGone, kindEnded:
			e.kind, e.b = kind, 0
			l.begin(kind, at, e.conn).uint(uint64(e.packet)).uint(e.a)
		case kindAcked, kindLost, kindReceived, kindLook, kindBegan:
			e.kind, e.a, e.b = kind, 0, 0
			l.begin(kind, at, e.conn).uint(uint64(e.packet))
		case kindOpening, kindBunch, kindAppears, kindCarried, kindClosing, kindUnsaid:
			e.kind = kind
			l.begin(kind, at, e.conn).uint(uint64(e.packet)).uint(e.a).uint(e.b)
		case kindRecord:
			e.kind, e.a = kind, e.a>>33
			for range rnd.IntN(400) { // of one packet: near ids, and units that are seldom others
				if e.text = []byte{}; rnd.IntN(30) == 0 {
					e.text = []byte("lost")
				}
				if rnd.IntN(20) == 0 {
					e.b = rnd.Uint64() >> rnd.IntN(64)
				}
				if e.a += 3; rnd.IntN(10) == 0 {
					e.a += rnd.Uint64N(300)
				}
				records = append(records, bridge.Sent{Actor: netguid.GUID(e.a), Units: e.b, Waited: string(e.text)})
				wrote = append(wrote, e)
			}
			l.records(at, e.conn, e.packet, records)
			records = records[:0]
			return
		}
		wrote = append(wrote, e)
	}
	for range 5_000 {
		one()
		require.LessOrEqual(t, p.all, l.max)
		require.LessOrEqual(t, len(l.pages[len(l.pages)-1].data), pageBytes)
	}
	var read []entry
	entries(l.pages, func(e *entry) { read = append(read, *e) })
	require.Len(t, l.pages, l.max)
	require.Greater(t, len(read), 10_000)
	wrote = wrote[len(wrote)-len(read):]
	for i := range read { // a record's time is that of the first of its packet in the page
		if read[i].at != wrote[i].at {
			require.Equal(t, byte(kindRecord), read[i].kind)
			read[i].at = wrote[i].at
		}
		if len(read[i].text) == 0 {
			require.Empty(t, wrote[i].text)
			read[i].text, wrote[i].text = nil, nil
		}
		require.Equal(t, wrote[i], read[i], "entry %d, seed %d", i, seed)
	}

	require.Zero(t, testing.AllocsPerRun(10, func() { // each takes more than a page
		for i := range 1000 {
			records = append(records[:0], bridge.Sent{Actor: netguid.GUID(i), Units: 1})
			l.records(at, 5, 77, records)
		}
		for range pageBytes / 4 {
			l.begin(kindSent, at, 5).uint(77).uint(1000)
		}
	}))

	// What a film reads isn't written to again.
	taken := take(l.pages)
	var before []entry
	entries(taken, func(e *entry) {
		kept := *e
		kept.text = bytes.Clone(e.text)
		before = append(before, kept)
	})
	for range 50_000 {
		l.begin(kindLost, at, 9).uint(1)
	}
	require.LessOrEqual(t, p.all, l.max)
	i := 0
	entries(taken, func(e *entry) {
		if b := before[i]; b.at != e.at || b.a != e.a || string(b.text) != string(e.text) {
			require.Equal(t, b, *e)
		}
		i++
	})

	// Old pages go when a new one is needed, although there may be more.
	l.max, l.keep = 9, time.Second
	for range 3 {
		at += time.Minute
		for range pageBytes / 4 {
			l.begin(kindLost, at, 9).uint(1)
		}
		require.Equal(t, at, l.last)
	}
	require.LessOrEqual(t, len(l.pages), 2)
}
