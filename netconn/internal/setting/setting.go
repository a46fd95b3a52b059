// Package setting checks fields of configurations.
package setting

import (
	"cmp"
	"fmt"
	"time"
)

// Longest is the longest duration that a setting may have, so that the time of now and one of them is never in the past.
const Longest = 100 * 365 * 24 * time.Hour

// Within returns an error that wraps kind and names the field, its value and its range, unless value is from low to high.
func Within[T cmp.Ordered](kind error, field string, value, low, high T) error {
	if value >= low && value <= high {
		return nil
	}
	return fmt.Errorf("%w: %s %v must be from %v to %v", kind, field, value, low, high)
}

// First returns the first error that isn't nil.
func First(errs ...error) error { return cmp.Or(errs...) }
