package coding

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// last is a cover of n packets.
func last(n int) Cover { return 1<<n - 1 }

func TestTrailerRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for range 2000 {
		packet, k, covers := randomContent(rng, 300), rng.IntN(MaxSymbols+1), last(1+rng.IntN(MaxWindow))
		if rng.IntN(2) == 0 {
			covers = Cover(1 + rng.IntN(1<<MaxWindow-1))
		}
		size := []int{1, 2, 127, 128, 129, 255, 256, 1200, 8192}[rng.IntN(9)]
		repaired := rng.Uint32() >> (32 - rng.IntN(MaxRepaired+1))
		if k == 0 && repaired == 0 {
			continue
		}
		symbols := randomBytes(rng, k*size)
		p := append(append([]byte{}, packet...), symbols...)
		p = AppendEnd(p, k, covers, size, repaired)
		require.LessOrEqual(t, len(p)-len(packet)-len(symbols), TrailerBytes)
		require.True(t, Marked(p))
		got, trailer, ok := Split(p)
		require.True(t, ok)
		require.Equal(t, packet, got)
		require.Equal(t, repaired, trailer.Repaired)
		require.Equal(t, len(symbols), len(trailer.Symbols))
		if k > 0 {
			require.Equal(t, symbols, trailer.Symbols)
			require.Equal(t, covers, trailer.Covers)
			require.Equal(t, size, trailer.Size)
		}
	}
}

// TestTrailersThatCannotBe: each says why it is refused.
func TestTrailersThatCannotBe(t *testing.T) {
	for why, p := range map[string][]byte{
		"empty":                           {},
		"a lone zero":                     {0},
		"no packet":                       {0x10, 0},
		"nothing in it":                   {1, 2, 3, 0x00, 0},
		"not marked":                      {1, 2, 3, 4, 1, 0x10, 1},
		"covers without symbols":          {1, 2, 9, 0x41, 0},
		"more repaired than bytes":        {9, 0xc0, 0},
		"a byte of none repaired":         {1, 2, 9, 0, 0x80, 0},
		"no packet behind the repaired":   {9, 9, 9, 0xc0, 0},
		"no size":                         {0x10, 0},
		"size 0":                          {1, 2, 3, 0, 0x10, 0},
		"size longer than it needs":       {1, 2, 3, 0, 0x81, 0x10, 0},
		"half a size":                     {0x81, 0x10, 0},
		"symbols as long as the datagram": {1, 2, 2, 0x10, 0},
		"not all covered, but which":      {9, 2, 1, 0x80, 0x81, 0x12, 0},
		"not all covered, though all are": {1, 7, 0, 0x80, 0x81, 0x12, 0},
		"one before the oldest covered":   {1, 13, 0, 0x80, 0x81, 0x12, 0},
		"only newer ones covered":         {1, 2, 0, 0x80, 0x81, 0x12, 0},
		"half a cover":                    {5, 0x80, 0x81, 0x12, 0},
		"no size with a cover":            {1, 5, 0, 0x80, 0x80, 0x12, 0},
		"two symbols, room for one":       {1, 2, 2, 2, 0x20, 0},
		"a packet that ends with a zero":  {1, 0, 2, 1, 0x10, 0},
	} {
		_, trailer, ok := Split(p)
		require.False(t, ok, why)
		require.Zero(t, trailer.Symbols, why)
	}
}

func TestHello(t *testing.T) {
	for _, heard := range []bool{false, true} {
		p := AppendHello(nil, heard)
		require.Len(t, p, HelloBytes)
		require.True(t, Marked(p))
		got, ok := Hello(p)
		require.True(t, ok)
		require.Equal(t, heard, got)
		_, _, ok = Split(p)
		require.False(t, ok, "it has no packet")
	}
	for _, p := range [][]byte{nil, {3, 0, 0}, {2, 0, 0, 0}, {3, 2, 0, 0}, {3, 0, 0x10, 0}, {3, 0, 0, 1}, {3, 0, 0, 0, 0}} {
		_, ok := Hello(p)
		require.False(t, ok, "%v", p)
	}
}

// TestWhatIsKnownIsNotCovered: symbols cover what is in the encoder without gaps right before their packet, and nothing that was forgotten.
func TestWhatIsKnownIsNotCovered(t *testing.T) {
	var e Encoder
	covers := func(carrier int64, window, n, size int) {
		t.Helper()
		gotN, gotSize := e.Covers(carrier, window)
		require.Equal(t, last(n), gotN)
		require.Equal(t, size, gotSize)
	}
	covers(0, 5, 0, 0)
	covers(7, 5, 0, 0)
	for id := int64(7); id < 30; id++ {
		e.Add(id, bytes.Repeat([]byte{1}, int(id)), false)
	}
	covers(30, 5, 5, 29)
	covers(30, 100, MaxWindow, 29)
	covers(31, 5, 0, 0)
	covers(29, 5, 0, 0)
	e.Forget(27)
	covers(30, 5, 3, 29)
	e.Forget(20)
	covers(30, 5, 3, 29)
	e.Forget(40)
	covers(30, 5, 0, 0)
	e.Add(41, []byte{1}, false)
	covers(42, 5, 1, 1)
	e.Add(43, []byte{1, 1}, false)
	covers(44, 5, 1, 2)
	for id := int64(44); id < 49; id++ { // a minor one is left out, and takes no part of the window
		e.Add(id, bytes.Repeat([]byte{1}, int(id)), id == 46)
	}
	got, size := e.Covers(49, 3)
	require.Equal(t, Cover(0b1011), got)
	require.Equal(t, 48, size)
	covers(49, 2, 2, 48)
}

// fill is an encoder and a decoder with the same packets id-n..id-1.
func fill(id int64, n, size int) (e Encoder, d Decoder) {
	rng := rand.New(rand.NewPCG(3, 9))
	for i := id - int64(n); i < id; i++ {
		c := randomContent(rng, size)
		e.Add(i, c, false)
		d.Add(i, c)
	}
	return e, d
}

// TestFalseSymbols: what can't be is refused or counted, and neither harms what comes later nor adds up.
func TestFalseSymbols(t *testing.T) {
	_, d := fill(100, 20, 30)
	for _, s := range []struct{ k, n, size int }{{-1, 3, 5}, {3, 3, 5}, {0, 0, 5}, {0, 3, 0}} {
		require.ErrorIs(t, d.Symbol(100, s.k, last(s.n), make([]byte, s.size)), ErrSymbol)
	}
	// Over packets that it doesn't have, or not any more.
	require.NoError(t, d.Symbol(80, 0, last(16), []byte{1}))
	require.NoError(t, d.Symbol(-1<<40, 0, last(16), []byte{1}))
	require.EqualValues(t, 2, d.Counters.TooOld)
	// A sum of zero: no packet is empty.
	require.NoError(t, d.Symbol(101, 0, last(1), []byte{0, 0}))
	require.EqualValues(t, 1, d.Counters.Inconsistent)
	// Shorter than what it covers.
	require.NoError(t, d.Symbol(101, 0, last(16), []byte{1}))
	require.EqualValues(t, 2, d.Counters.Inconsistent)
	// Two that contradict each other.
	require.NoError(t, d.Symbol(102, 0, last(2), []byte{1, 1}))
	require.NoError(t, d.Symbol(102, 0, last(2), []byte{1, 2}))
	require.EqualValues(t, 3, d.Counters.Inconsistent)
	require.NoError(t, d.Symbol(102, 0, last(2), []byte{1, 1}))
	require.EqualValues(t, 1, d.Counters.Redundant, "replayed")
	checkDecoder(t, &d)
	// A jump as far as can be, then an honest peer.
	require.NoError(t, d.Symbol(1<<50, 0, last(2), []byte{1, 1}))
	e, _ := fill(1<<50+100, 16, 30)
	n, size := e.Covers(1<<50+100, 4)
	for i := int64(0); i < 16; i++ {
		if i != 14 {
			d.Add(1<<50+84+i, e.packets[(84+i)&(MaxWindow-1)].data[:e.packets[(84+i)&(MaxWindow-1)].n])
		}
	}
	require.NoError(t, d.Symbol(1<<50+100, 0, n, e.AppendSymbol(nil, 1<<50+100, 0, n, size)))
	id, content, ok := d.Next(1 << 60)
	require.True(t, ok)
	require.Equal(t, int64(1<<50+98), id)
	require.Equal(t, e.packets[2].data[:e.packets[2].n], content)
}

// TestRowsAreBounded: symbols that never come to anything give way to newer ones.
func TestRowsAreBounded(t *testing.T) {
	_, d := fill(100, 1, 30)
	most := 0
	for k := range MaxSymbols {
		for carrier := int64(110); carrier < 128; carrier++ {
			require.NoError(t, d.Symbol(carrier, k, last(10), []byte{byte(carrier), byte(k), 1, 1}))
			checkDecoder(t, &d)
			require.LessOrEqual(t, d.n, maxRows)
			most = max(most, d.n)
		}
	}
	require.Equal(t, maxRows, most)
	require.NotZero(t, d.Counters.Dropped)
	require.NoError(t, d.Symbol(150, 0, last(2), []byte{1}))
	require.Equal(t, 1, d.n, "the others are too old")
	d.Add(200, []byte{1})
	require.Zero(t, d.n)
}

// TestMayCome tells what is worth waiting for.
func TestMayCome(t *testing.T) {
	e, d := fill(100, 20, 30)
	require.False(t, d.MayCome(101), "nobody knows of it")
	for id := int64(100); id < 110; id++ {
		e.Add(id, []byte{byte(id)}, false)
	}
	d.Add(104, []byte{104})
	require.True(t, d.MayCome(101), "no symbol since")
	n, size := e.Covers(110, 8)
	require.NoError(t, d.Symbol(110, 0, n, e.AppendSymbol(nil, 110, 0, n, size)))
	require.False(t, d.MayCome(101), "it isn't covered, and none of a later packet will cover it")
	require.False(t, d.MayCome(103), "six others are missing too")
	for id := int64(105); id < 109; id++ {
		require.False(t, d.MayCome(103), "before %d", id)
		d.Add(id, []byte{byte(id)})
	}
	require.False(t, d.MayCome(103), "102 and 109 are missing too")
	d.Add(109, []byte{109})
	require.True(t, d.MayCome(103), "102 is missing too, and the next symbol may say more")
	require.True(t, d.MayCome(102))
	require.True(t, d.Known(104))
	require.False(t, d.Known(103))
	d.Add(150, []byte{1})
	require.False(t, d.MayCome(103))
}

// TestMemoryIsBounded: the largest that can be, on any number of packets and symbols.
func TestMemoryIsBounded(t *testing.T) {
	const size = 1200
	e, d := fill(1000, 500, size)
	rng := rand.New(rand.NewPCG(1, 9))
	for carrier := int64(1000); carrier < 1200; carrier++ {
		if rng.IntN(3) == 0 {
			d.Add(carrier-1, randomContent(rng, size))
		}
		for k := range MaxSymbols {
			require.NoError(t, d.Symbol(carrier, k, last(1+rng.IntN(MaxWindow)), randomBytes(rng, size)))
		}
	}
	kept := func(b *buffer) int { return cap(b.data) }
	encoder, decoder := kept(&e.sum), 0
	for i := range e.packets {
		encoder += kept(&e.packets[i])
	}
	for i := range d.slots {
		decoder += kept(&d.slots[i])
	}
	for i := range d.rows {
		decoder += kept(&d.rows[i].sum)
	}
	require.LessOrEqual(t, encoder+int(unsafe.Sizeof(e)), EncoderBytes(size))
	require.LessOrEqual(t, decoder+int(unsafe.Sizeof(d)), DecoderBytes(size))
	require.LessOrEqual(t, DecoderBytes(size), 64<<10)
}

// link sends packets of 100 bytes with a symbol each from an encoder to a decoder, which misses every lost-th.
func link(lost int) func() {
	e, d := new(Encoder), new(Decoder)
	content := bytes.Repeat([]byte{7}, 100)
	buf := make([]byte, 0, 512)
	id := int64(16_000)
	return func() {
		p := append(buf, content...)
		n, size := e.Covers(id, 5)
		if n > 0 {
			p = AppendEnd(e.AppendSymbol(p, id, 0, n, size), 1, n, size, 0)
		}
		e.Add(id, content, false)
		if id++; lost > 0 && id%int64(lost) == 0 {
			return
		}
		if !Marked(p) {
			d.Add(id-1, p)
			return
		}
		packet, t, ok := Split(p)
		if !ok || d.Symbol(id-1, 0, t.Covers, t.Symbols) != nil {
			panic("a symbol was refused")
		}
		d.Add(id-1, packet)
		for _, _, ok := d.Next(id); ok; _, _, ok = d.Next(id) {
		}
	}
}

func TestAllocs(t *testing.T) {
	for _, lost := range []int{0, 2, 7, 20} {
		send := link(lost)
		for range 200 {
			send()
		}
		require.Zero(t, testing.AllocsPerRun(2000, send))
	}
}

func BenchmarkSentAndReceived(b *testing.B) {
	for name, lost := range map[string]int{"clean": 0, "5%": 20} {
		b.Run(name, func(b *testing.B) {
			send := link(lost)
			for b.Loop() {
				send()
			}
		})
	}
}

// FuzzDecoder takes any datagrams: packets, symbols over anything, jumps.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 1, 1, 9, 3, 2, 1})
	f.Add(bytes.Repeat([]byte{1, 3, 0x25, 4, 9, 1}, 40))
	f.Fuzz(func(t *testing.T, p []byte) {
		var d Decoder
		id := int64(16_370)
		for len(p) > 4 {
			op, at, size := p[0], p[1], 1+int(p[2]%48)
			body := make([]byte, size)
			copy(body, p[3:])
			p = p[min(len(p), 3+size/8):]
			switch op % 4 {
			case 0:
				d.Add(id+int64(int8(at)), append(body, 1))
				id++
			case 1:
				if d.Symbol(id+int64(int8(at))/8, int(op>>4&3), Cover(op>>2)|Cover(at)<<8, body) == nil && op>>4&3 == 3 {
					t.Fatal("symbol 3")
				}
			case 2:
				for {
					id, content, ok := d.Next(id)
					if !ok {
						break
					}
					if !d.Known(id) || len(content) == 0 || content[len(content)-1] == 0 {
						t.Fatal(id, content)
					}
				}
			case 3:
				id += int64(at)
				d.MayCome(id - 3)
			}
			checkDecoder(t, &d)
		}
	})
}

// FuzzSplit: what is taken apart is what puts it together again.
func FuzzSplit(f *testing.F) {
	f.Add([]byte{1, 2, 3, 2, 0x10, 0})
	f.Add([]byte{1, 9, 9, 9, 0xc0, 0})
	f.Fuzz(func(t *testing.T, p []byte) {
		Hello(p)
		packet, trailer, ok := Split(p)
		if !ok {
			return
		}
		again := append(append([]byte{}, packet...), trailer.Symbols...)
		k := 0
		if trailer.Size > 0 {
			k = len(trailer.Symbols) / trailer.Size
		}
		again = AppendEnd(again, k, trailer.Covers, trailer.Size, trailer.Repaired)
		require.Equal(t, p, again)
	})
}
