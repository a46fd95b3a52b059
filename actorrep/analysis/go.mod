module github.com/bunchnet/bunchnet/actorrep/analysis

go 1.26.0

require (
	github.com/bunchnet/bunchnet v0.0.0-00010101000000-000000000000
	github.com/stretchr/testify v1.12.1
	golang.org/x/tools v0.51.0
)

require (
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/mod v0.41.0 // indirect
	golang.org/x/sync v0.23.0 // indirect
)

replace github.com/bunchnet/bunchnet => ../..
