package actorrep_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

type path255 struct {
	Aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa struct {
		Bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb uint8
	}
}

type path256 struct {
	Aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa struct {
		Bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb uint8
	}
}

type path257 struct {
	Aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa struct {
		Bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb uint8
	}
}

// TestNameCap: names of classes, procedures and fields of up to 256 bytes work at both ends, longer ones are errors of Register.
func TestNameCap(t *testing.T) {
	none := actorrep.MulticastRPC(func(actorrep.Call, *bell, uint8) error { return nil })
	for _, n := range []int{255, 256, 257} {
		name := strings.Repeat("n", n)
		for what, register := range map[string]func(w *actorrep.World) error{
			"class":     func(w *actorrep.World) error { return w.Register(name, (*bell)(nil)) },
			"procedure": func(w *actorrep.World) error { return w.Register("bell", (*bell)(nil), actorrep.RPCs{name: none}) },
			"field": func(w *actorrep.World) error {
				if err := w.Register("path", map[int]actorrep.Actor{255: (*filler[path255])(nil), 256: (*filler[path256])(nil), 257: (*filler[path257])(nil)}[n]); err != nil {
					return err
				}
				return w.Register("bell", (*bell)(nil))
			},
		} {
			err := register(actorrep.NewServer(actorrep.Config{}))
			if n > 256 {
				require.ErrorIs(t, err, actorrep.ErrLongName, what)
				continue
			}
			require.NoError(t, err, what)
			w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{}, func(t testing.TB, w *actorrep.World) { require.NoError(t, register(w)) })
			l := w.join()
			b := &bell{Rings: 3}
			require.NoError(t, w.Server.Spawn(b))
			w.Await(what, w.Step, func() bool { m, ok := l.World.Find(b.GUID()).(*bell); return ok && m.Rings == 3 })
		}
	}
}
