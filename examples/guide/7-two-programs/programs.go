package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"strings"
)

// all starts a server and two clients as programs of their own.
func all(ctx context.Context) error {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	self := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, os.Args[0], args...)
		cmd.Env, cmd.Stderr = append(os.Environ(), "BUNCHNET_KEY="+hex.EncodeToString(key)), os.Stderr
		return cmd
	}
	srv := self("-serve", "127.0.0.1:0", "-seconds", "180")
	out, err := srv.StdoutPipe()
	if err != nil {
		return err
	}
	if err := srv.Start(); err != nil {
		return err
	}
	defer func() { _, _ = srv.Process.Kill(), srv.Wait() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return err
	}
	go func() { _, _ = bufio.NewReader(out).WriteTo(os.Stderr) }() // so that the server doesn't wait for its reader
	addr := strings.TrimSpace(strings.TrimPrefix(line, "serving at "))
	var clients []*exec.Cmd
	for _, name := range []string{"Ann", "Bob"} {
		c := self("-join", addr, "-name", name, "-seconds", "5")
		c.Stdout = os.Stdout
		if err := c.Start(); err != nil {
			return err
		}
		clients = append(clients, c)
	}
	for _, c := range clients {
		err = errors.Join(err, c.Wait())
	}
	return err
}
