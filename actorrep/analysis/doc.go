// Package analysis finds mistakes in programs that use actorrep, before they run. It is a module of its own, since
// it needs golang.org/x/tools. The command bunchvet runs all of it:
//
//	go install github.com/bunchnet/bunchnet/actorrep/analysis/cmd/bunchvet@latest
//	go vet -vettool=$(which bunchvet) ./...
//	bunchvet -fix ./...
//
// A program that also runs other analysers, such as an editor or a linter, gets the analysers from [All].
//
// # The analysers
//
//	badtag           a net tag that Register refuses, or that doesn't do what it says
//	netmap           a map, pointer, func, ... among replicated values
//	copyvar          an actor or a Var copied by value
//	notowner         a ClientRPC on an actor that has no owner; an RPC called at the end where it runs
//	reliablelooprpc  a reliable RPC called every tick
//	notifywrites     a notify that writes what the server replicates
//	rawfloat         a float sent as all its bits
//
// # How sure
//
// Each message begins with how sure it is:
//
//	error    fails at run time, or does something else than it says
//	warning  nearly always a mistake
//	advice   works, and costs more than it needs to
//
// To silence a finding, add a comment with a reason on its line or on the line before:
//
//	Damping float64 `net:"initial"` //bunchvet:ignore rawfloat clients must compute with the very same value
//
// notowner, reliablelooprpc and notifywrites judge by how programs are usually written. They look at one package at a
// time, know the RPCs that other packages export, keep silent when in doubt, and leave tests alone.
package analysis
