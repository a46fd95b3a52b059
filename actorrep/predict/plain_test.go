package predict_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestPlainRegisterIsTold: a client that has registered the class with World.Register isn't a player, and is told, once of each procedure; so is the server.
func TestPlainRegisterIsTold(t *testing.T) {
	var refused string
	s := &stage{}
	s.Rig = rig.New(t, 1, netsim.Settings{}, actorrep.Config{SchemaRefused: func(_ *actorrep.Peer, why string) { refused = why }}, func(w *actorrep.World) (err error) {
		s.class, err = predict.Register(w, "Runner", right())
		return err
	})
	l := s.JoinOther(func(w *actorrep.World) error { return w.Register("Runner", (*runner)(nil)) })
	r := &runner{}
	require.NoError(t, s.Server.Spawn(r))
	require.NoError(t, s.class.Possess(r, l.Peer, s.Now))
	for range 150 {
		require.NoError(t, s.class.Tick(s.Now))
		s.Step()
	}
	require.Len(t, l.Failed, 2)
	for i, name := range []string{"Runner.predict.Begin", "Runner.predict.Reply"} {
		require.ErrorIs(t, l.Failed[i], actorrep.ErrNoProcedure)
		require.ErrorContains(t, l.Failed[i], name)
		require.Contains(t, refused, strings.TrimPrefix(name, "Runner."))
	}
}
