module github.com/bunchnet/bunchnet/bench/compare

go 1.26.0

require (
	github.com/bunchnet/bunchnet v0.0.0
	github.com/pion/logging v0.2.4
	github.com/pion/sctp v1.9.5
	github.com/pion/transport/v4 v4.0.1
	github.com/quic-go/quic-go v0.64.1
	github.com/xtaci/kcp-go/v5 v5.6.72
	golang.org/x/net v0.56.0
	golang.org/x/sys v0.47.0
	gonum.org/v1/plot v0.17.0
)

require (
	codeberg.org/go-fonts/liberation v0.5.0 // indirect
	codeberg.org/go-latex/latex v0.2.0 // indirect
	codeberg.org/go-pdf/fpdf v0.11.1 // indirect
	git.sr.ht/~sbinet/gg v0.7.0 // indirect
	github.com/ajstarks/svgo v0.0.0-20211024235047-1546f124cd8b // indirect
	github.com/golang/freetype v0.0.0-20170609003504-e2365dfdc4a0 // indirect
	github.com/google/btree v1.1.3 // indirect
	github.com/klauspost/cpuid/v2 v2.2.6 // indirect
	github.com/klauspost/reedsolomon v1.12.0 // indirect
	github.com/pion/randutil v0.1.0 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/tjfoc/gmsm v1.4.1 // indirect
	golang.org/x/crypto v0.54.0 // indirect
	golang.org/x/image v0.30.0 // indirect
	golang.org/x/text v0.40.0 // indirect
	golang.org/x/time v0.14.0 // indirect
)

replace github.com/bunchnet/bunchnet => ../..
