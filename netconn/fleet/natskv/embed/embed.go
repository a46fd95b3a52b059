// Package embed runs a NATS server with JetStream within the process: for tests, examples, and a fleet on one machine.
package embed

import (
	"errors"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Start starts a server on the loopback that keeps its data in dir. port 0 is any free one. Shut it down at the end.
func Start(dir string, port int) (*server.Server, error) {
	if port == 0 {
		port = server.RANDOM_PORT
	}
	s, err := server.NewServer(&server.Options{ServerName: "embedded", Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true})
	if err != nil {
		return nil, err
	}
	go s.Start()
	if !s.ReadyForConnections(20 * time.Second) {
		s.Shutdown()
		return nil, errors.New("embed: the NATS server didn't start within 20 s")
	}
	return s, nil
}
