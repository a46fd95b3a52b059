package fastarray

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// TestVersionsWrap: a list whose versions wrap while it changes, or run far ahead while most elements stay as they are, looks
// the same at both ends.
func TestVersionsWrap(t *testing.T) {
	for _, from := range []uint32{0, 1<<31 - 20, 1<<32 - 20} {
		for _, jump := range []uint32{0, 1 << 16, 1<<31 - 5, 1 << 31, 1<<32 - 30} {
			var server, client List[uint16]
			server.version = from
			send := func(base uint32) uint32 {
				w := bitio.NewWriter(make([]byte, 1<<14))
				server.NetWrite(w, base)
				require.NoError(t, w.Err())
				require.NoError(t, client.NetRead(bitio.NewReader(w.Bytes(), w.Len())))
				return server.NetKey()
			}
			var ids []ID
			for i := range 10 {
				id, err := server.Add(uint16(i))
				require.NoError(t, err)
				ids = append(ids, id)
			}
			base := send(0)
			for i := range 40 {
				if i == 20 { // as if one element had changed so often, and each time was acked
					server.version += jump
					require.NoError(t, server.Set(ids[9], 999))
					client.version, base = server.version-1, server.version-1
				}
				require.NoError(t, server.Set(ids[i%8], uint16(100+i)))
				if i == 25 {
					require.NoError(t, server.Remove(ids[8]))
				}
				base = send(base)
				require.Equal(t, server.Len(), client.Len(), "from %d, %d ahead, %d", from, jump, i)
				for id, v := range server.All {
					got, ok := client.Find(id)
					require.True(t, ok)
					require.Equal(t, v, got, "from %d, %d ahead, %d", from, jump, i)
				}
			}
		}
	}
}
