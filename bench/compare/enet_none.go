//go:build !enet

package main

// enetPeer says how to have ENet.
func enetPeer() *Peer {
	return &Peer{Name: "enet", Reliable: true, Unreliable: true, Missing: "needs Debian's libenet-dev and `go run -tags enet .`"}
}
