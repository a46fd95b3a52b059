package message_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel/message"
)

// blob is a message of up to 60 kB.
type blob struct{ data []byte }

func (b *blob) Serialize(s *message.Stream) { s.Bytes(&b.data, 60_000) }

// TestUnusedMessagesAreBounded: what the kinds of a registry keep for reuse is bounded in bytes, however many large messages a peer had a game receive at once,
// and of however many kinds. Small ones are all kept.
func TestUnusedMessagesAreBounded(t *testing.T) {
	const kinds, each, most = 5, 64, 4 << 20
	for _, size := range []int{60_000, 10} {
		for _, reading := range []bool{true, false} {
			var reg, peers message.Registry
			var all, sent []*message.Kind
			made := 0
			for i := range kinds {
				name := fmt.Sprint("blob ", i)
				all = append(all, reg.Add(name, func() message.Message {
					made++
					return new(blob)
				}))
				sent = append(sent, peers.Add(name, func() message.Message { return new(blob) }))
			}
			sends := &peers
			if !reading {
				sends, sent = &reg, all
			}
			from, to := message.New(message.Config{Mode: message.Sequenced, Kinds: sends, MaxBits: 500_000, Budget: 524_280}), message.New(message.Config{Mode: message.Sequenced, Kinds: &reg, MaxBits: 500_000})
			packet := int64(0)
			for i, k := range all {
				var held []message.Message
				for range each {
					m := &blob{data: make([]byte, size)}
					require.NoError(t, from.Send(sent[i], m))
					w := bitio.NewWriter(make([]byte, 64<<10))
					require.Equal(t, 1, from.Write(0, w))
					packet++
					from.Sent(packet)
					from.Acked(packet)
					var r bitio.Reader
					r.Reset(w.Bytes(), w.Len())
					require.NoError(t, to.Read(&r))
					got, kind := to.Receive()
					require.Same(t, k, kind)
					if !reading {
						got = m
					}
					held = append(held, got)
				}
				for _, m := range held {
					k.Free(m)
				}
			}
			kept := 0
			for _, k := range all {
				for before := made; ; kept++ {
					m := k.New().(*blob)
					if made > before {
						break
					}
					require.LessOrEqual(t, cap(m.data), size)
				}
			}
			require.LessOrEqual(t, kept*size, most)
			if size == 10 {
				require.Equal(t, kinds*each, kept)
			} else {
				require.Greater(t, kept, most/size/2)
			}
		}
	}
}
