// Bunchvet finds mistakes in programs that use actorrep: tags that Register refuses, actors copied by value, reliable
// RPCs called every tick, and others (bunchvet help lists them). It works alone and under go vet:
//
//	bunchvet ./...
//	bunchvet -fix ./...
//	go vet -vettool=$(which bunchvet) ./...
package main

import (
	"golang.org/x/tools/go/analysis/multichecker"

	"github.com/bunchnet/bunchnet/actorrep/analysis"
)

func main() { multichecker.Main(analysis.All()...) }
