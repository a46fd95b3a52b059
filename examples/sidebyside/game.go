package main

import (
	"errors"
	"math"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/interp"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// Keys is what a player holds down in a tick.
type Keys struct{ Drive, Turn int8 }

// Car is a player's. It drives from coin to coin.
type Car struct {
	actorrep.Base
	X       float64 `net:"q=0.01,simulated" predict:"0.01" interp:""` // sent in steps of a centimetre
	Y       float64 `net:"q=0.01,simulated" predict:"0.01" interp:""`
	Heading float64 `net:"rot=12,simulated" predict:"0.1" interp:""` // degrees, 12 bits
	Coins   uint16  `net:""`                                         // how many it has
	Coin    uint8   `net:"max=99"`                                   // the one to take next: an index of coins

	keys Keys // without prediction: what the last call said
}

// Simulate moves the car by dt. With prediction both ends run it, without only the server.
func (c *Car) Simulate(k Keys, dt time.Duration) {
	c.Heading = math.Mod(c.Heading+240*float64(k.Turn)*dt.Seconds()+360, 360)
	way := 10 * float64(k.Drive) * dt.Seconds()
	c.X = min(max(c.X+way*math.Cos(c.Heading*math.Pi/180), 0), field)
	c.Y = min(max(c.Y+way*math.Sin(c.Heading*math.Pi/180), 0), field)
}

// Hold tells the server the keys, when nothing is predicted.
var Hold = actorrep.ServerRPC(func(_ actorrep.Call, c *Car, k Keys) error {
	c.keys = k
	return nil
})

const (
	field = 20.0 // m, each way
	reach = 0.8  // m, of a coin
)

// end is a server or a client.
type end struct {
	net   *driver.Driver
	world *actorrep.World
	cars  *predict.Class[*Car, Keys]
	past  *interp.Interpolator
	drawn *interp.Class[*Car]
	car   *Car

	predicted bool
	coins     []place
	now       time.Duration
	seen      Car  // on the client: the car as it is drawn
	keys      Keys // on the client: what the player holds down
	pressed   time.Duration
	moved     time.Duration
	err       error
}

func newEnd(world *actorrep.World, predicted bool, coins []place) (*end, error) {
	e := &end{world: world, predicted: predicted, coins: coins}
	var err error
	e.cars, err = predict.Register(world, "Car", predict.Config[*Car, Keys]{Input: func(*Car) Keys { return e.keys }}, actorrep.RPCs{"Hold": Hold})
	if err != nil {
		return nil, err
	}
	if e.past, err = interp.New(world, interp.Config{}); err != nil {
		return nil, err
	}
	e.drawn, err = interp.Register(e.past, interp.ClassConfig[*Car]{})
	return e, err
}

func serve(cfg driver.Config, predicted bool, coins []place) (*end, error) {
	var e *end
	e, err := newEnd(actorrep.NewServer(actorrep.Config{Failed: func(err error) { e.fail(err) }}), predicted, coins)
	if err != nil {
		return nil, err
	}
	cfg.Channels = e.world.ChannelTypes()
	cfg.Joined = func(conn *driver.Conn) {
		peer := e.world.AddConn(conn)
		e.car = &Car{X: field / 2, Y: field / 2}
		e.car.SetOwner(peer)
		e.fail(e.world.Spawn(e.car))
		if predicted {
			e.fail(e.cars.Possess(e.car, peer, conn.Now()))
		}
	}
	e.net, err = driver.Listen("", cfg)
	return e, err
}

func dial(addr string, cfg driver.Config, predicted bool, coins []place) (*end, error) {
	var e *end
	e, err := newEnd(actorrep.NewClient(actorrep.Config{
		Spawned: func(a actorrep.Actor) { e.car = a.(*Car) },
		Failed:  func(err error) { e.fail(err) },
	}), predicted, coins)
	if err != nil {
		return nil, err
	}
	cfg.Channels = e.world.ChannelTypes()
	e.net, err = driver.Dial(addr, cfg)
	return e, err
}

func (e *end) fail(err error) { e.err = errors.Join(e.err, err) }

// Tick is a frame of either end.
func (e *end) Tick(now time.Time) error {
	e.net.TickDispatch(now)
	e.now = e.net.Time(now)
	if e.net.IsServer() {
		e.serverFrame()
	} else {
		e.clientFrame()
	}
	e.net.TickFlush(now)
	return e.err
}

func (e *end) serverFrame() {
	e.fail(e.cars.Tick(e.now)) // simulates the inputs of predicted cars
	if c := e.car; c != nil {
		if !e.predicted {
			c.Simulate(c.keys, frame)
		}
		if at := e.coins[c.Coin]; math.Hypot(c.X-at.x, c.Y-at.y) < reach {
			c.Coins++
			c.Coin = (c.Coin + 1) % uint8(len(e.coins))
		}
	}
	e.world.Step(e.now) // sends what has changed
}

func (e *end) clientFrame() {
	e.world.Step(e.now) // applies what has arrived
	e.past.Tick(e.now)
	if e.car != nil {
		e.keys = e.player()
		if !e.predicted {
			e.fail(Hold.Call(e.car, e.keys))
		}
	}
	e.fail(e.cars.Tick(e.now)) // applies the keys, where the car is predicted
	if e.car != nil {
		x, heading := e.seen.X, e.seen.Heading
		e.drawn.At(e.car, &e.seen)
		e.feel(x, heading)
	}
}

// feel notes when the first key was held down, and when the picture changed: x and heading are those of the frame before.
func (e *end) feel(x, heading float64) {
	if e.pressed == 0 && e.keys != (Keys{}) {
		e.pressed = e.now
	}
	if e.pressed > 0 && e.moved == 0 && x > 0 && (e.seen.X != x || e.seen.Heading != heading) {
		e.moved = e.now
	}
}

// player is the same in both games: it turns to the coin that it sees, from the car that it sees.
func (e *end) player() (k Keys) {
	at := e.coins[e.car.Coin]
	if e.seen.X == 0 || e.now < start {
		return k // nothing is drawn yet
	}
	off := math.Remainder(math.Atan2(at.y-e.seen.Y, at.x-e.seen.X)*180/math.Pi-e.seen.Heading, 360)
	if off > 4 {
		k.Turn = 1
	} else if off < -4 {
		k.Turn = -1
	}
	if math.Abs(off) < 70 {
		k.Drive = 1
	}
	return k
}
