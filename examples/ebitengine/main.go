// Ebitengine is the arena as a game with a window, over github.com/hajimehoshi/ebiten: arrows steer, space fires.
// The own ship moves at once (actorrep/prediction), the others are shown evenly (actorrep/interpolation), and below
// the field is a graph of the network, which the keys make worse while you play.
//
//	go run .                                       # a server with bots in this process, and a window
//	go run ./dedicated -serve :7777 -bots 6        # a server without graphics
//	go run . -join 127.0.0.1:7777 -name Ann        # both with the same BUNCHNET_KEY=$(openssl rand -hex 32)
//
// Keys: [ and ] less and more lag, - and = less and more loss, 0 none, Escape ends.
//
// The game itself is in package arena, without graphics. On Linux the window needs the headers of X11
// (libx11-dev libxrandr-dev libxcursor-dev libxinerama-dev libxi-dev libxxf86vm-dev), and OpenGL.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/hajimehoshi/ebiten/v2"

	"github.com/bunchnet/bunchnet/examples/ebitengine/arena"
)

func main() {
	join := flag.String("join", "", "join the server at this address; otherwise there is one in this process")
	name := flag.String("name", "Player", "your name")
	bots := flag.Int("bots", 5, "ships without a player, on the server in this process")
	fps := flag.Int("fps", 120, "frames drawn a second at most, for screens that don't limit them")
	seconds := flag.Float64("seconds", 0, "end by itself after so long; 0 is when the window is closed")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "%q isn't a flag; see -help\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := run(*join, *name, *bots, *fps, time.Duration(*seconds*float64(time.Second))); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

func run(join, name string, bots, fps int, length time.Duration) error {
	if fps < 1 {
		return errors.New("-fps must be at least 1")
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	if join == "" {
		s, err := arena.Listen(arena.ServerConfig{Addr: "127.0.0.1:0", Bots: bots, Seed: 1})
		if err != nil {
			stop()
			return err
		}
		join = s.Driver.LocalAddr().String()
		go func() { served <- s.Run(ctx) }()
	} else {
		served <- nil
	}
	c, err := arena.Dial(arena.ClientConfig{Addr: join, Name: name, Seed: 1})
	if err == nil {
		ebiten.SetWindowSize(arena.ScreenWidth, arena.ScreenHeight)
		ebiten.SetWindowTitle("bunchnet arena: " + name)
		ebiten.SetRunnableOnUnfocused(true) // the game goes on
		err = ebiten.RunGame(&window{client: c, frame: time.Second / time.Duration(fps), length: length})
		err = errors.Join(err, c.Driver.Close())
	}
	stop()
	return errors.Join(err, <-served)
}
