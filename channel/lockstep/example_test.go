package lockstep_test

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/channel/lockstep"
)

// queue is a transport in memory, as for a player on the host's machine.
type queue struct{ packets [][]byte }

func (q *queue) Send(_ time.Duration, p []byte) error {
	q.packets = append(q.packets, append([]byte(nil), p...))
	return nil
}

func (q *queue) drain(receive func(p []byte) error) {
	for _, p := range q.packets {
		if err := receive(p); err != nil {
			fmt.Println(err)
		}
	}
	q.packets = nil
}

func Example() {
	cfg := lockstep.Config{Players: 2, Protocol: 1}
	host, _ := lockstep.NewHost(lockstep.HostConfig{Config: cfg, Secret: [32]byte{1, 2, 3}}, nil)
	var peers [2]*lockstep.Peer
	var up, down [2]queue
	for i := range peers {
		peers[i], _ = lockstep.NewPeer(lockstep.PeerConfig{Config: cfg, Player: i, Session: 1}, &up[i])
		_ = host.Connect(i, &down[i])
	}
	for now := time.Duration(0); peers[0].Turn() < 4; now += 50 * time.Millisecond {
		for i, p := range peers {
			if t, ok := p.Next(); ok {
				for player, cmd := range t.Commands() {
					fmt.Printf("turn %d on machine %d: player %d says %s\n", t.N, i, player, cmd)
				}
				if t.N == 0 {
					_ = p.Submit(fmt.Appendf(nil, "go-%d", i))
				}
				_ = p.Done(uint64(t.N)) // the hash of the game's state
			}
			p.Tick(now)
			up[i].drain(func(b []byte) error { return host.Receive(now, i, b) })
		}
		if host.Ready() == 0b11 {
			host.Start(now)
		}
		host.Tick(now)
		for i, p := range peers {
			down[i].drain(func(b []byte) error { return p.Receive(now, b) })
		}
	}
	// Output:
	// turn 2 on machine 0: player 0 says go-0
	// turn 2 on machine 0: player 1 says go-1
	// turn 2 on machine 1: player 0 says go-0
	// turn 2 on machine 1: player 1 says go-1
}

// A delay grows at once with the worst path.
func ExampleAdaptiveDelay() {
	policy := lockstep.NewAdaptiveDelay()
	near := []lockstep.Path{{Player: 1, RTT: 30 * time.Millisecond}}
	far := append(near, lockstep.Path{Player: 2, RTT: 200 * time.Millisecond, Jitter: 10 * time.Millisecond})
	const turn = 50 * time.Millisecond
	first := policy.Delay(1, turn, near)
	fmt.Println(first < policy.Delay(first, turn, far))
	// Output: true
}
