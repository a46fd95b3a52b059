// Package conformance runs golang.org/x/net/nettest, the test that every net.Conn has to pass, on
// streams. It is a module of its own, since the test is a dependency.
package conformance
