package predict

import (
	"reflect"
	"unsafe"
)

func ptr[T any](v *T) unsafe.Pointer { return unsafe.Pointer(v) }

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// Followed is how many Classes this one keeps by Follow.
func (c *Class[A, I]) Followed() (n int) {
	for f := c.follows; f != nil && f != c; f = f.follows {
		n++
	}
	return n
}
