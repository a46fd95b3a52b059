package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/replay"
)

type buildA struct {
	actorrep.Base
	Pos   [3]float32 `net:"q=0.1"`
	Hp    uint16     `net:"max=100"`
	Name  string     `net:"cap=30"`
	Items []int32    `net:""`
}

type buildB struct { // other bounds, another order, one more, one less
	actorrep.Base
	Items []int32    `net:""`
	Hp    uint8      `net:"max=200,owner"`
	Name  string     `net:"cap=10"`
	Pos   [3]float32 `net:"q=0.5"`
	Extra bool       `net:""`
}

type buildC struct { // retyped
	actorrep.Base
	Pos [3]float32 `net:"rot=16"`
}

type buildD struct { // elements retyped
	actorrep.Base
	Items []uint32 `net:""`
}

type buildE struct { // fewer numbers
	actorrep.Base
	Pos [2]float32 `net:"q=0.1"`
}

type shot struct{ X, Y float64 }

func fire[A actorrep.Actor](actorrep.Call, A, shot) error { return nil }

type aimed struct {
	X    float64
	Far  bool
	Hard uint8
}

var builds = []struct {
	a    actorrep.Actor
	rpcs actorrep.RPCs
}{
	{(*buildA)(nil), nil},
	{(*buildA)(nil), actorrep.RPCs{"Fire": actorrep.ServerRPC(fire[*buildA])}},
	{(*buildA)(nil), actorrep.RPCs{"Fire": actorrep.ServerRPC(fire[*buildA], actorrep.Reliable)}},
	{(*buildA)(nil), actorrep.RPCs{"Fire": actorrep.MulticastRPC(fire[*buildA])}},
	{(*buildA)(nil), actorrep.RPCs{"Fire": actorrep.ServerRPC(func(actorrep.Call, *buildA, aimed) error { return nil })}},
	{(*buildA)(nil), actorrep.RPCs{"Shout": actorrep.ServerRPC(fire[*buildA])}},
	{(*buildB)(nil), actorrep.RPCs{"Fire": actorrep.ServerRPC(fire[*buildB])}},
	{(*buildC)(nil), nil},
	{(*buildD)(nil), nil},
	{(*buildE)(nil), actorrep.RPCs{"Fire": actorrep.ServerRPC(fire[*buildE])}},
}

func buildWorld(t testing.TB, i int, name string) *actorrep.World {
	w := actorrep.NewServer(actorrep.Config{})
	require.NoError(t, w.Register(name, builds[i].a, builds[i].rpcs))
	return w
}

// meet is what a client of one build has against a server of another: here a recording, which is matched as a connection is.
func meet(t testing.TB, server, client int) error {
	var file bytes.Buffer
	w := buildWorld(t, server, "thing")
	rec, err := replay.Record(w, &file, replay.Config{})
	require.NoError(t, err)
	w.Step(time.Second)
	require.NoError(t, rec.Close())
	replay, err := replay.Open(bytes.NewReader(file.Bytes()), int64(file.Len()))
	require.NoError(t, err)
	c := actorrep.NewClient(actorrep.Config{})
	rpcs := actorrep.RPCs{}
	for name, p := range builds[client].rpcs {
		rpcs[name] = p
	}
	require.NoError(t, c.Register("thing", builds[client].a, rpcs))
	return replay.Play(c)
}

// TestDiffIsTheRule compares what Diff says of two builds with what happens when a client of one meets a server of the
// other, through JSON.
func TestDiffIsTheRule(t *testing.T) {
	breaking := 0
	for i := range builds {
		for j := range builds {
			a, b := buildWorld(t, i, "thing"), buildWorld(t, j, "thing")
			data, err := json.Marshal(Of(a))
			require.NoError(t, err)
			var was Schema
			require.NoError(t, json.Unmarshal(data, &was))
			require.Equal(t, Of(a), was)
			breaks := false
			for _, c := range was.Diff(Of(b)) {
				breaks = breaks || c.Severity == Breaking
			}
			for _, pair := range [][2]int{{i, j}, {j, i}} {
				require.Equal(t, breaks, meet(t, pair[0], pair[1]) != nil, "builds %d and %d", i, j)
			}
			if i == j {
				require.Empty(t, was.Diff(Of(b)))
			}
			if breaks {
				breaking++
			}
		}
	}
	require.Positive(t, breaking)
	require.Less(t, breaking, len(builds)*len(builds))
}

func TestDiffWords(t *testing.T) {
	diff := func(i, j int) string {
		var b strings.Builder
		for _, c := range Of(buildWorld(t, i, "thing")).Diff(Of(buildWorld(t, j, "thing"))) {
			fmt.Fprintf(&b, "%s %s.%s: %s\n", c.Severity, c.Class, c.Name, c.What)
		}
		return b.String()
	}
	require.Equal(t, `fine thing.Pos: step of 0.1 became step of 0.5
`, firstLine(strings.Replace(diff(1, 6), "3 × ", "", 2)))
	require.Contains(t, diff(1, 6), `risky thing.Hp: uint16 became uint8: values that the smaller can't hold arrive as its largest
fine thing.Hp: max=100 became 200
fine thing.Hp: condition "" became "owner": the server's counts
risky thing.Name: cap=30 became 10: the build with the smaller refuses what is longer
fine thing.Extra: added: keeps its default with a server without it
`)
	require.Equal(t, "breaks thing.Pos: retyped from 3 × step of 0.1 to 3 × angle of 16 bits\n", firstLine(diff(0, 7)))
	require.Contains(t, diff(0, 8), "breaks thing.Items: a slice of something else")
	require.Contains(t, diff(1, 4), "breaks thing.Fire: procedure with other parameters: Y removed; Far added; Hard added\n")
	require.Contains(t, diff(1, 2), "breaks thing.Fire: procedure retyped from unreliable server to reliable server\n")
	require.Contains(t, diff(1, 5), "fine thing.Fire: procedure removed")
	a, b := Of(buildWorld(t, 0, "one")), Of(buildWorld(t, 0, "other"))
	require.Len(t, a.Diff(b), 2)
	require.True(t, reflect.DeepEqual(a.Diff(a), []Change(nil)))
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line + "\n"
}
