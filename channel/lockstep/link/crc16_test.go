package link

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// slowCRC divides bit by bit.
func slowCRC(p []byte) uint16 {
	crc := uint16(crcInit)
	for _, b := range p {
		for i := 7; i >= 0; i-- {
			bit := uint16(b>>i)&1 ^ crc>>15
			crc = crc<<1 ^ bit*crcPoly
		}
	}
	return crc
}

func TestCRC16(t *testing.T) {
	require.EqualValues(t, 0x29b1, crc16(crcInit, []byte("123456789")))
	require.EqualValues(t, 0xffff, crc16(crcInit, nil))
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		p := make([]byte, n)
		for i := range p {
			p[i] = byte(rng.Uint32())
		}
		require.Equal(t, slowCRC(p), crc16(crcInit, p), "%d bytes", n)
	}
}

func BenchmarkCRC16(b *testing.B) {
	p := make([]byte, 100)
	b.SetBytes(100)
	for b.Loop() {
		crc16(crcInit, p)
	}
}
