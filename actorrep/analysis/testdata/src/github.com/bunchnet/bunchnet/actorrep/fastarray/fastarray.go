// Package fastarray is what the analysers know of the real one.
package fastarray

import "github.com/bunchnet/bunchnet/bunch/bitio"

type List[T any] struct{ items []T }

type ID uint32

func (l *List[T]) Len() int                              { return 0 }
func (l *List[T]) Add(v T) (ID, error)                   { return 0, nil }
func (l *List[T]) Clear() error                          { return nil }
func (l *List[T]) NetKey() uint32                        { return 0 }
func (l *List[T]) NetWrite(w *bitio.Writer, base uint32) {}
func (l *List[T]) NetRead(r *bitio.Reader) error         { return nil }
