package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// errNoNetworks is returned where there can't be network namespaces.
var errNoNetworks = errors.New("no network namespaces here")

// The addresses of the servers.
const (
	meetAddr  = "198.51.100.1"
	relayAddr = "198.51.100.2"
)

// network is the namespaces: the players' a and b, their routers ra and rb, the internet net, and the servers' srv.
type network struct {
	ctx    context.Context
	prefix string
}

func newNetwork(ctx context.Context) (n *network, err error) {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		return nil, fmt.Errorf("%w: they need Linux and root", errNoNetworks)
	}
	for _, program := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("%w: apt-get install iproute2 nftables", errNoNetworks)
		}
	}
	n = &network{ctx, fmt.Sprintf("nat%d-", os.Getpid())}
	for i, name := range []string{"net", "srv", "ra", "rb", "a", "b"} {
		if err := n.ip("netns", "add", n.prefix+name); err != nil {
			n.close()
			if i == 0 {
				err = fmt.Errorf("%w: %w", errNoNetworks, err)
			}
			return nil, err
		}
	}
	defer func() {
		if err != nil {
			n.close()
		}
	}()
	for _, name := range []string{"net", "srv", "ra", "rb", "a", "b"} {
		if err := n.in(name, "ip", "link", "set", "lo", "up"); err != nil {
			return nil, err
		}
		if err := n.in(name, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6; echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6"); err != nil {
			return nil, err
		}
	}
	for _, w := range []struct{ from, device, addr, to, toDevice, toAddr string }{
		{"srv", "wan", meetAddr + "/24", "net", "srv", "198.51.100.254/24"},
		{"ra", "wan", "203.0.113.2/30", "net", "ra", "203.0.113.1/30"},
		{"rb", "wan", "203.0.113.6/30", "net", "rb", "203.0.113.5/30"},
		{"a", "lan", "", "ra", "lan-a", ""},
		{"b", "lan", "", "rb", "lan-b", ""},
	} {
		if err := n.ip("link", "add", w.device, "netns", n.prefix+w.from, "type", "veth", "peer", "name", w.toDevice, "netns", n.prefix+w.to); err != nil {
			return nil, err
		}
		if err := errors.Join(n.up(w.from, w.device, w.addr), n.up(w.to, w.toDevice, w.toAddr)); err != nil {
			return nil, err
		}
	}
	return n, errors.Join(n.up("srv", "wan", relayAddr+"/24"), n.route("srv", "198.51.100.254"), n.route("ra", "203.0.113.1"), n.route("rb", "203.0.113.5"))
}

// up sets a device up, with an address unless it is "".
func (n *network) up(space, device, addr string) error {
	if addr != "" {
		if err := n.in(space, "ip", "addr", "add", addr, "dev", device); err != nil {
			return err
		}
	}
	return n.in(space, "ip", "link", "set", device, "up")
}

func (n *network) route(space, via string) error {
	return n.in(space, "ip", "route", "replace", "default", "via", via)
}

// A site is a player, its router and the kind of that.
type site struct{ player, router, kind string }

// The rules of a router; its own ports are closed, so that what comes unasked isn't taken for its own.
const (
	closed     = "chain input { type filter hook input priority 0; iifname wan ct state new drop; };"
	masquerade = "table ip t { chain nat { type nat hook postrouting priority 100; oifname wan masquerade%s; }; " + closed + " %s };"
	firewall   = "chain forward { type filter hook forward priority 0; policy drop; ct state established,related accept; iifname != wan tcp dport 443 accept; };"
)

// rules returns the rules of a kind of router.
func rules(kind string) string {
	switch kind {
	case "masq", "same":
		return fmt.Sprintf(masquerade, "", "")
	case "random":
		return fmt.Sprintf(masquerade, " fully-random", "")
	case "tcp443":
		return fmt.Sprintf(masquerade, "", firewall)
	}
	return ""
}

// place puts the two players behind routers of two kinds.
func (n *network) place(a, b string) error {
	sites := []site{{"a", "ra", a}, {"b", "rb", b}}
	for i, s := range sites {
		_ = n.in(s.router, "nft", "flush", "ruleset")
		if r := rules(s.kind); r != "" {
			if err := n.in(s.router, "nft", r); err != nil {
				return err
			}
		}
		lan := fmt.Sprintf("10.%d.0.", i+1)
		if s.kind == "open" {
			lan = fmt.Sprintf("198.18.%d.", i+1)
		}
		if s.kind == "same" {
			continue
		}
		if err := errors.Join(n.address(s.router, "lan-"+s.player, lan+"1/24"), n.address(s.player, "lan", lan+"2/24"), n.route(s.player, lan+"1"),
			n.in("net", "ip", "route", "replace", fmt.Sprintf("198.18.%d.0/24", i+1), "via", fmt.Sprintf("203.0.113.%d", 4*i+2))); err != nil {
			return err
		}
	}
	return nil
}

// address gives a device one address.
func (n *network) address(space, device, addr string) error {
	return errors.Join(n.in(space, "ip", "addr", "flush", "dev", device), n.in(space, "ip", "addr", "add", addr, "dev", device))
}

// elsewhere gives a player and its router, the i-th, other addresses, as if they were others; 0 are those of newNetwork and place.
func (n *network) elsewhere(i, network int) error {
	player, router := [2]string{"a", "b"}[i], [2]string{"ra", "rb"}[i]
	lan, wan := fmt.Sprintf("10.%d.%d.", i+1, network), fmt.Sprintf("203.0.113.%d/30", 4*i+16*network+2)
	outside := fmt.Sprintf("203.0.113.%d", 4*i+16*network+1)
	return errors.Join(n.address(router, "wan", wan), n.address("net", router, outside+"/30"), n.route(router, outside),
		n.address(router, "lan-"+player, lan+"1/24"), n.address(player, "lan", lan+"2/24"), n.route(player, lan+"1"))
}

// together moves player b behind router ra, on a network with a.
func (n *network) together() error {
	return errors.Join(
		n.in("rb", "ip", "link", "del", "lan-b"),
		n.ip("link", "add", "lan", "netns", n.prefix+"b", "type", "veth", "peer", "name", "lan-b", "netns", n.prefix+"ra"),
		n.in("ra", "ip", "link", "add", "home", "type", "bridge"),
		n.in("ra", "ip", "link", "set", "lan-a", "master", "home"),
		n.in("ra", "ip", "link", "set", "lan-b", "master", "home"),
		n.in("ra", "ip", "addr", "flush", "dev", "lan-a"),
		n.up("ra", "lan-b", ""), n.up("ra", "home", "10.1.0.1/24"), n.up("b", "lan", "10.1.0.3/24"), n.route("b", "10.1.0.1"),
		n.address("a", "lan", "10.1.0.2/24"), n.route("a", "10.1.0.1"))
}

// cut has the internet carry nothing between the two routers any more, or again.
func (n *network) cut(on bool) error {
	if !on {
		return n.in("net", "nft", "flush", "ruleset")
	}
	return n.in("net", "nft", "table ip cut { chain forward { type filter hook forward priority 0; ip saddr { 203.0.113.2, 203.0.113.6 } ip daddr { 203.0.113.2, 203.0.113.6 } drop; }; };")
}

// ip runs the program ip.
func (n *network) ip(args ...string) error { return n.do("ip", args...) }

// in runs a program in a namespace, to its end.
func (n *network) in(space, program string, args ...string) error {
	return n.do("ip", append([]string{"netns", "exec", n.prefix + space, program}, args...)...)
}

func (n *network) do(program string, args ...string) error {
	if out, err := exec.CommandContext(n.ctx, program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// command is a program in a namespace, yet to be started.
func (n *network) command(space, program string, args ...string) *exec.Cmd {
	return exec.CommandContext(n.ctx, "ip", append([]string{"netns", "exec", n.prefix + space, program}, args...)...)
}

func (n *network) close() {
	n.ctx = context.WithoutCancel(n.ctx)
	for _, name := range []string{"a", "b", "ra", "rb", "srv", "net"} {
		_ = n.ip("netns", "del", n.prefix+name) // it may not be there yet
	}
}
