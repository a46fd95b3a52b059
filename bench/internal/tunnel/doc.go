// Package tunnel is a bad network for IP packets, so for TCP and for other programs too: two network namespaces, each with a TUN device, and a link of
// netsim each way between the devices. It needs Linux, root and /dev/net/tun.
//
//	client 10.99.0.1  tun  ---> up --->  tun  10.99.0.2 server
//	                       <-- down <--
package tunnel

// The addresses of the two ends.
const (
	ClientAddr = "10.99.0.1"
	ServerAddr = "10.99.0.2"
)
