package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/examples/tanks/game"
	"github.com/bunchnet/bunchnet/examples/tanks/terminal"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/ice"
	"github.com/bunchnet/bunchnet/netconn/ice/rendezvous"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

const frame = time.Second / 60

// local is the address of the host's own player: no guest has it.
var local = netip.MustParseAddrPort("127.0.0.1:1")

// match is a game that is hosted here.
type match struct {
	room   *rendezvous.Room
	socket *ice.Host
	game   *game.Server
	own    *game.Client
	paths  map[netip.AddrPort]ice.Path
	stop   context.CancelFunc
	served chan error
	listed int
}

// newMatch opens a room, and the game with the host's own player.
func newMatch(ctx context.Context, o options, play game.Player) (m *match, err error) {
	client, conf, err := o.client()
	if err != nil {
		return nil, err
	}
	m = &match{paths: map[netip.AddrPort]ice.Path{}, served: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
		}
	}()
	if m.room, err = rendezvous.Open(ctx, rendezvous.RoomConfig{URL: o.at, Name: o.name + "'s tanks", Public: o.public, HTTP: client}); err != nil {
		return m, err
	}
	if m.socket, err = ice.Listen(ice.HostConfig{Config: o.ice(m.room.Servers, conf)}); err != nil {
		return m, err
	}
	both, own := udp.WithLocal(m.socket, local)
	if m.game, err = game.Listen("", driver.Config{Socket: both, Link: driver.Netcode{Key: m.room.Key()}, Timeout: o.timeout}, o.seed); err != nil {
		return m, errors.Join(err, own.Close(), m.socket.Close())
	}
	m.socket.Tell(m.game.Driver)
	if m.own, err = game.Dial(ice.HostAddr().String(), driver.Config{Socket: own, Link: driver.Netcode{Key: m.room.Key()}, Timeout: o.timeout}, o.name, play); err != nil {
		return m, err
	}
	ctx, m.stop = context.WithCancel(ctx)
	go func() { m.served <- m.room.Serve(ctx, m.socket) }()
	return m, nil
}

// tick is a frame; told gets what happened on the way.
func (m *match) tick(ctx context.Context, now time.Time, told func(string)) error {
	select {
	case err := <-m.served:
		if ctx.Err() == nil {
			told(fmt.Sprint("no more players can join: ", err))
		}
		m.stop()
		m.stop = nil
	default:
	}
	for c := range m.game.Driver.Conns {
		path, addr := m.socket.Path(c.RemoteAddr())
		if c.RemoteAddr() != local && path != m.paths[c.RemoteAddr()] {
			m.paths[c.RemoteAddr()] = path
			told(fmt.Sprintf("path to a guest: %v, at %v", path, addr))
		}
	}
	if n := m.game.Driver.Len(); n != m.listed {
		m.listed = n
		_ = m.room.Update(ctx, n) // Serve notices when it fails
	}
	return errors.Join(m.game.Tick(now), m.own.Tick(now), m.own.Driver.Err())
}

func (m *match) close() (err error) {
	if m.stop != nil {
		m.stop()
		<-m.served
	}
	if m.own != nil {
		err = m.own.Driver.Close()
	}
	if m.game != nil {
		err = errors.Join(err, m.game.Driver.Close()) // and its socket
	} else if m.socket != nil {
		err = errors.Join(err, m.socket.Close())
	}
	if m.room != nil {
		err = errors.Join(err, m.room.Close())
	}
	return err
}

// player is who plays here: the keyboard, or a bot.
type player struct {
	keys    *terminal.Keys
	restore func()
	screen  terminal.Screen
	in      game.Input
	out     io.Writer
}

func newPlayer(out io.Writer, o options) (*player, game.Player) {
	p := &player{screen: terminal.Screen{Out: out}, restore: func() {}, out: out}
	if !o.bot {
		p.keys, p.restore = terminal.OpenKeys()
	}
	if p.keys == nil {
		return p, game.Bot
	}
	return p, func(*game.Client) game.Input { return p.in }
}

// told prints what happened, or has it below the picture.
func (p *player) told(what string) {
	if p.keys != nil {
		p.screen.Told(what)
		return
	}
	fmt.Fprintln(p.out, what)
}

// loop plays until ctx is done or the player wants to go.
func (p *player) loop(ctx context.Context, c *game.Client, tick func(now time.Time) error) error {
	ticker := time.NewTicker(frame)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case now := <-ticker.C:
			if p.keys != nil {
				var quit bool
				if p.in, quit = p.keys.Down(now); quit {
					return nil
				}
				p.screen.Draw(now, c)
			}
			if err := tick(now); err != nil {
				return err
			}
		}
	}
}

// host hosts a game until it is interrupted.
func host(ctx context.Context, out io.Writer, o options) (err error) {
	p, play := newPlayer(out, o)
	defer p.restore()
	m, err := newMatch(ctx, o, play)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	m.own.Event = p.told
	fmt.Fprintf(out, "code: %s\nlink: %s\n", m.room.Code, m.room.Link())
	return p.loop(ctx, m.own, func(now time.Time) error { return m.tick(ctx, now, p.told) })
}

// friend is a guest.
type friend struct {
	*game.Client
	socket   *ice.Client
	path     ice.Path
	restarts uint64
	took     time.Duration
}

// joinGame finds a way to a game and its host.
func joinGame(ctx context.Context, o options, play game.Player) (*friend, error) {
	client, conf, err := o.client()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	g, err := rendezvous.Join(ctx, rendezvous.JoinConfig{Invitation: o.join, URL: o.at, Name: o.name, ICE: o.ice(nil, conf), HTTP: client})
	if err != nil {
		return nil, err
	}
	f := &friend{socket: g.Socket, took: time.Since(began)}
	if f.Client, err = game.Dial(ice.HostAddr().String(), driver.Config{Socket: g.Socket, Link: driver.Netcode{Token: g.Token}, Timeout: o.timeout}, o.name, play); err != nil {
		return nil, errors.Join(err, g.Socket.Close())
	}
	return f, nil
}

// tick is a frame; told gets what happened on the way.
func (f *friend) tick(now time.Time, told func(string)) error {
	if path, addr := f.socket.Path(); path != f.path {
		f.path = path
		told(fmt.Sprintf("path to the host: %v, at %v", path, addr))
	}
	if n := f.socket.Counters().Restarts; n != f.restarts {
		f.restarts = n
		_, addr := f.socket.Path()
		told(fmt.Sprintf("another path was found through the rendezvous, at %v", addr))
	}
	return errors.Join(f.Tick(now), f.Driver.Err())
}

// guest joins a game and plays until it is interrupted.
func guest(ctx context.Context, out io.Writer, o options) (err error) {
	p, play := newPlayer(out, o)
	defer p.restore()
	f, err := joinGame(ctx, o, play)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Driver.Close()) }()
	f.Event = p.told
	fmt.Fprintf(out, "joined after %d ms\n", f.took.Milliseconds())
	played := false
	err = p.loop(ctx, f.Client, func(now time.Time) error {
		if _, ok := f.Own(); ok && !played {
			played = true
			p.told("playing")
		}
		return f.tick(now, p.told)
	})
	fmt.Fprintf(out, "changes of the path: %d\n", f.socket.Counters().PathChanges)
	return err
}
