package lockstep_test

import (
	"bytes"
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/channel/lockstep"
)

// A game is recorded as it is played, and read back with the hash of each turn.
func ExampleNewRecorder() {
	cfg := lockstep.Config{Players: 1, Protocol: 1}
	host, _ := lockstep.NewHost(lockstep.HostConfig{Config: cfg, Secret: [32]byte{1, 2, 3}}, nil)
	var up, down queue
	peer, _ := lockstep.NewPeer(lockstep.PeerConfig{Config: cfg, Session: 1}, &up)
	_ = host.Connect(0, &down)

	var file bytes.Buffer
	rec, err := lockstep.NewRecorder(&file, cfg, []byte("map 7"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for now := time.Duration(0); peer.Turn() < 4; now += 50 * time.Millisecond {
		if t, ok := peer.Next(); ok {
			hash := uint64(100 + t.N) // of the game's state
			_ = rec.Turn(t, hash)     // before Done
			_ = peer.Done(hash)
		}
		peer.Tick(now)
		up.drain(func(b []byte) error { return host.Receive(now, 0, b) })
		if host.Ready() == 0b1 {
			host.Start(now)
		}
		host.Tick(now)
		down.drain(func(b []byte) error { return peer.Receive(now, b) })
	}
	fmt.Println(rec.Close())

	replay, err := lockstep.OpenReplay(bytes.NewReader(file.Bytes()), int64(file.Len()), 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", replay.Setup())
	for t, _, err := replay.Next(); err == nil; t, _, err = replay.Next() {
		fmt.Println("turn", t.N)
	}
	// Output:
	// <nil>
	// map 7
	// turn 0
	// turn 1
	// turn 2
	// turn 3
}
