package main

import (
	"bytes"
	"net/netip"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// servers is the game's two. They share the key with the token service, and nothing else.
type servers struct {
	list  []*driver.Driver
	names []map[string]bool // by server: who joined, by the name in the token
}

func newServers(key netcode.Key, slots int) (*servers, error) {
	s := &servers{}
	for i := range 2 {
		s.names = append(s.names, map[string]bool{})
		d, err := driver.Listen("127.0.0.1:0", driver.Config{
			Link: driver.Netcode{ProtocolID: protocolID, Key: key, Slots: slots},
			Joined: func(c *driver.Conn) {
				s.names[i][string(bytes.TrimRight(c.UserData()[:], "\x00"))] = true
			},
		})
		if err != nil {
			s.close()
			return nil, err
		}
		s.list = append(s.list, d)
	}
	return s, nil
}

func (s *servers) addrs() (a []netip.AddrPort) {
	for _, d := range s.list {
		a = append(a, d.LocalAddr())
	}
	return a
}

// where is the server that a player has joined, or -1.
func (s *servers) where(name string) int {
	for i, names := range s.names {
		if names[name] {
			return i
		}
	}
	return -1
}

func (s *servers) close() {
	for _, d := range s.list {
		_ = d.Close()
	}
}
