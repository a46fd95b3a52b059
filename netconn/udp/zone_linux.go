package udp

import (
	"net"
	"strconv"
)

// zones are the names and numbers of the interfaces that link-local addresses (fe80::1%eth0) were of. Each direction of a socket has
// its own. It asks the system once for each.
type zones struct {
	names   map[uint32]string
	numbers map[string]uint32
}

// maxZones bounds what is remembered: a machine has few interfaces, but their numbers grow when they come and go.
const maxZones = 64

// name is that of an interface, or its number when it has gone.
func (z *zones) name(number uint32) string {
	if name, ok := z.names[number]; ok {
		return name
	}
	name := strconv.FormatUint(uint64(number), 10)
	if i, err := net.InterfaceByIndex(int(number)); err == nil {
		name = i.Name
	}
	z.remember(name, number)
	return name
}

// number returns the number of the interface with a name. It returns 0, with which the system chooses an interface, when there is none.
func (z *zones) number(name string) uint32 {
	if number, ok := z.numbers[name]; ok {
		return number
	}
	number := uint32(0)
	if i, err := net.InterfaceByName(name); err == nil {
		number = uint32(i.Index)
	} else if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		number = uint32(n)
	}
	z.remember(name, number)
	return number
}

func (z *zones) remember(name string, number uint32) {
	if z.names == nil || max(len(z.names), len(z.numbers)) >= maxZones {
		z.forget()
	}
	z.names[number], z.numbers[name] = name, number
}

// forget has the system asked again, as after an error: an interface that comes back has another number.
func (z *zones) forget() { z.names, z.numbers = map[uint32]string{}, map[string]uint32{} }
