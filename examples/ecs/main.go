// ECS replicates the components of an entity component system, github.com/mlange-42/ark, without the game's types
// knowing: components are plain structs, and a bridge of a hundred lines keeps one actor for each entity that carries
// their values (mirror.go says which components, and in what form). Components come and go on the way, and clients
// add their own. A server and three clients run in virtual time over a bad network; then every client's entities are
// compared with the server's.
//
//	go run .
//	go run . -loss 30 -seconds 60 -seed 4
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/mlange-42/ark/ecs"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

func main() {
	loss := flag.Float64("loss", 10, "datagrams lost, percent, each way")
	seconds := flag.Int("seconds", 30, "how long the world runs")
	seed := flag.Uint64("seed", 1, "seed of the game and of the network")
	flag.Parse()
	if flag.NArg() > 0 || *seconds < 1 {
		fmt.Fprintln(os.Stderr, "a flag is out of range; see -help")
		os.Exit(2)
	}
	bad := netsim.Settings{Loss: *loss, LagMin: 20 * time.Millisecond, LagMax: 60 * time.Millisecond, Dup: 2}
	if err := run(bad, *seconds, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

func run(bad netsim.Settings, seconds int, seed uint64) error {
	p, err := newPlay(3, bad, seed)
	if err != nil {
		return err
	}
	for range 30 * seconds {
		if err := p.step(false); err != nil {
			return err
		}
	}
	for range 30 * 5 { // what is on its way arrives
		if err := p.step(true); err != nil {
			return err
		}
	}
	if err := p.compare(); err != nil {
		return err
	}
	g, n := p.game, p.actors.Counters
	fmt.Printf("%d sheep came, %d burnt down, %d fires; %.0f %% of the packets lost each way, seed %d\n", g.born, g.died, g.lit, bad.Loss, seed)
	fmt.Printf("%d updates of %.1f bits, %d of them sent again; %d actors spawned, %d closed\n", n.Updates, float64(n.UpdateBits)/float64(max(1, n.Updates)), n.Resent, n.Opened, n.Closed)
	for i := range p.clients {
		w := &p.clients[i].ecs
		far, q := 0.0, ecs.NewFilter1[Trail](w).Query()
		for q.Next() {
			far = max(far, q.Get().Length)
		}
		fmt.Printf("client %d: %d entities, the farthest came %.0f m\n", i+1, len(snapshot(w)), far)
	}
	_, err = fmt.Println("PASS: every client's components are the server's")
	return err
}
