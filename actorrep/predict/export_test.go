package predict

import (
	"reflect"
	"unsafe"
)

func ptr[T any](v *T) unsafe.Pointer { return unsafe.Pointer(v) }

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }
