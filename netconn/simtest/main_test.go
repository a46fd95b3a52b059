package simtest_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain: nothing in a simulation may start a goroutine that stays.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
