// Package bitio is what the examples need of the real one.
package bitio

type Writer struct{}
type Reader struct{}
