package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/examples/tanks/game"
	"github.com/bunchnet/bunchnet/examples/tanks/page"
	"github.com/bunchnet/bunchnet/examples/tanks/terminal"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// table is a game over real sockets: the ends that are in this process.
type table struct {
	party
	o        options
	out      io.Writer
	own      *game.Client // that of the player here
	keys     *terminal.Keys
	screen   terminal.Screen
	pictures pictures
	input    game.Input
	tape     *os.File // of -record
	page     io.Closer
}

// local is the host's address: no other peer of the server has it.
var local = netip.MustParseAddrPort("127.0.0.1:1")

// play is a game over real sockets.
func play(ctx context.Context, out io.Writer, o options) (err error) {
	t := &table{party: newParty(nil), o: o, out: out, pictures: pictures{dir: o.pictures}, screen: terminal.Screen{Out: out}}
	t.real = true
	defer func() { err = errors.Join(err, t.close()) }()
	if o.watch != "" {
		return t.watch(ctx)
	}
	if o.spectate != "" {
		return t.spectate(ctx)
	}
	addr, cfg := o.join, driver.Config{Timeout: 10 * time.Second}
	if o.join == "" {
		if addr, cfg.Socket, err = t.listen(); err != nil {
			return err
		}
	}
	if o.serve == "" {
		player := t.keyboard
		if !o.bot && isTerminal() {
			var restore func()
			t.keys, restore = terminal.OpenKeys()
			defer restore()
		}
		if t.keys == nil {
			player = game.Bot
		}
		if t.own, err = t.join(addr, cfg, o.name, player); err != nil {
			return err
		}
		t.own.Event = t.screen.Told
	}
	for i := range o.bots {
		if _, err := t.join(addr, driver.Config{Timeout: 10 * time.Second}, fmt.Sprintf("bot %d", i+1), game.Bot); err != nil {
			return err
		}
	}
	if err := t.loop(ctx); err != nil || ctx.Err() != nil || o.seconds == 0 {
		return err
	}
	return t.agree(ctx)
}

// listen opens the server, and is where its host reaches it.
func (t *table) listen() (addr string, own udp.Socket, err error) {
	socket, err := udp.Listen(t.o.serve+t.o.host, udp.Config{})
	if err != nil {
		return "", nil, err
	}
	both, own := udp.WithLocal(socket, local)
	cfg := driver.Config{Timeout: 10 * time.Second, Socket: both}
	if t.o.public.IsValid() { // tokens name the address that is dialed
		cfg.Link = driver.Netcode{Addrs: []netip.AddrPort{t.o.public, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), socket.LocalAddr().Port())}}
	}
	if t.o.serve != "" {
		cfg.Logger = slog.Default() // says who is refused, and why
	}
	if t.o.delay > 0 {
		t.server, err = game.ListenDelayed("", cfg, t.o.seed, t.o.delay)
	} else {
		t.server, err = game.Listen("", cfg, t.o.seed)
	}
	if err != nil {
		return "", nil, err
	}
	fmt.Fprintf(t.out, "a server at %v; interrupt to end\n", socket.LocalAddr())
	if t.page, err = page.Serve(t.o.http, t.o.films, t.server, t.out); err != nil {
		return "", nil, err
	}
	if t.o.record != "" {
		if t.tape, err = os.Create(t.o.record); err == nil {
			err = t.server.Record(t.tape)
		}
	}
	return fmt.Sprintf("127.0.0.1:%d", socket.LocalAddr().Port()), own, err
}

// watch shows a match that was written with -record.
func (t *table) watch(ctx context.Context) error {
	f, err := os.Open(t.o.watch)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	c, err := game.Watch(f, info.Size())
	if err != nil {
		return err
	}
	if err := t.show(ctx, c, c.Tick, c.Done); err != nil || ctx.Err() != nil {
		return err
	}
	rows, _ := c.Board()
	_, err = fmt.Fprintln(t.out, "PASS: the match is over:", rows)
	return err
}

// spectate shows the game of a server, with its delay.
func (t *table) spectate(ctx context.Context) error {
	c, err := game.Spectate(t.o.spectate, driver.Config{Timeout: 10 * time.Second})
	if err != nil {
		return err
	}
	defer c.Driver.Close()
	begin := time.Now()
	tick := func(now time.Time) error { return errors.Join(c.Tick(now), c.Driver.Err()) }
	over := func() bool { return t.o.seconds > 0 && time.Since(begin) >= time.Duration(t.o.seconds)*time.Second }
	if err := t.show(ctx, c, tick, over); err != nil || ctx.Err() != nil {
		return err
	}
	rows, _ := c.Board()
	if c.Shown() == 0 {
		return errors.New("nothing was to see")
	}
	_, err = fmt.Fprintf(t.out, "PASS: saw the match until %v of it: %v\n", c.Shown().Round(100*time.Millisecond), rows)
	return err
}

// show draws what a client without a player sees, at 60 frames a second, until it is over.
func (t *table) show(ctx context.Context, c *game.Client, tick func(time.Time) error, over func() bool) error {
	c.Event = t.screen.Told
	ticker := time.NewTicker(time.Second / 60)
	defer ticker.Stop()
	for begin := time.Now(); !over(); {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticker.C:
			if err := tick(now); err != nil {
				return err
			}
			if isTerminal() {
				t.screen.Draw(now, c)
			}
			if err := t.pictures.take(now.Sub(begin), c); err != nil {
				return err
			}
		}
	}
	return nil
}

func isTerminal() bool {
	in, err := os.Stdin.Stat()
	out, err2 := os.Stdout.Stat()
	return err == nil && err2 == nil && in.Mode()&out.Mode()&os.ModeCharDevice != 0
}

func (t *table) join(addr string, cfg driver.Config, name string, player game.Player) (*game.Client, error) {
	if t.clients[name] != nil {
		return nil, fmt.Errorf("there is a %q already", name)
	}
	c, err := game.Dial(addr, cfg, name, player)
	if err != nil {
		return nil, err
	}
	t.names = append(t.names, name)
	t.clients[name] = c
	return c, nil
}

// keyboard is the player here.
func (t *table) keyboard(*game.Client) game.Input { return t.input }

var errQuit = errors.New("quit")

// tick is a frame of all ends here: clients first, so that what the host does is in the server's frame.
func (t *table) tick(now time.Time) error {
	if t.keys != nil {
		var quit bool
		if t.input, quit = t.keys.Down(now); quit {
			return errQuit
		}
	}
	for _, name := range t.names {
		c := t.clients[name]
		if err := errors.Join(c.Tick(now), c.Driver.Err()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if t.server != nil {
		return t.server.Tick(now)
	}
	return nil
}

// loop plays until the time is over.
func (t *table) loop(ctx context.Context) error {
	ticker := time.NewTicker(time.Second / 60)
	defer ticker.Stop()
	begin := time.Now()
	end := time.Duration(t.o.seconds) * time.Second
	for said := false; ; {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticker.C:
			if err := t.tick(now); errors.Is(err, errQuit) {
				return nil
			} else if err != nil {
				return err
			}
			at := now.Sub(begin)
			if t.own != nil {
				if t.keys != nil {
					t.screen.Draw(now, t.own)
				}
				if err := t.pictures.take(at, t.own); err != nil {
					return err
				}
			}
			if !said && t.all(ready) {
				said = true
				for _, c := range t.clients {
					if err := c.Say("hello"); err != nil {
						return err
					}
				}
			}
			if t.o.seconds > 0 && at > end && said {
				return nil
			}
		}
	}
}

// all reports whether something is so for all clients here.
func (t *table) all(f func(c *game.Client) bool) bool {
	for _, c := range t.clients {
		if !f(c) {
			return false
		}
	}
	return true
}

// ready reports whether a player has a tank and the board.
func ready(c *game.Client) bool {
	_, ok := c.Own()
	rows, _ := c.Board()
	return ok && len(rows) > 0
}

// agreeTime is how long all may take to agree once nothing moves.
const agreeTime = time.Minute

// agree stops the world, waits until all have the same, and says so.
func (t *table) agree(ctx context.Context) error {
	for _, c := range t.clients {
		c.Still()
	}
	if t.server == nil {
		for _, name := range t.names {
			c := t.clients[name]
			v := c.View()
			fmt.Fprintf(t.out, "%s scored %d with %d shots; %d inputs, %d corrections\n", name, c.Score(name), c.Shots, v.Inputs, v.Corrections)
		}
		_, err := fmt.Fprintf(t.out, "PASS: played for %d s\n", t.o.seconds)
		return err
	}
	t.server.Still()
	for begin := time.Now(); ctx.Err() == nil; {
		for range 30 {
			time.Sleep(time.Second / 60)
			if err := t.tick(time.Now()); err != nil && !errors.Is(err, errQuit) {
				return err
			}
		}
		var b strings.Builder
		err := t.verdict(&b, 0)
		if err == nil || time.Since(begin) > agreeTime {
			fmt.Fprint(t.out, b.String())
			if err == nil {
				_, err = fmt.Fprintln(t.out, "PASS: everybody agrees on where the tanks are and on the score")
			}
			return err
		}
	}
	return nil
}

// close ends what is here, and waits until the others know.
func (t *table) close() (err error) {
	var drivers []*driver.Driver
	for _, c := range t.clients {
		drivers = append(drivers, c.Driver)
	}
	if t.server != nil {
		drivers = append(drivers, t.server.Driver)
		err = t.server.EndRecord()
	}
	for _, d := range drivers {
		d.Shutdown("")
	}
	open := func(d *driver.Driver) bool { return d.Len() > 0 }
	for i := 0; i < 60 && slices.ContainsFunc(drivers, open); i++ {
		time.Sleep(time.Second / 60)
		now := time.Now()
		for _, d := range drivers {
			d.TickDispatch(now)
			d.TickFlush(now)
		}
	}
	for _, d := range drivers {
		err = errors.Join(err, d.Close())
	}
	if t.page != nil {
		err = errors.Join(err, t.page.Close())
	}
	if t.tape != nil {
		err = errors.Join(err, t.tape.Close())
	}
	return err
}
