package readwait

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRead: a read ends with what try finds, with its error, and at its deadline, also when that comes while it waits.
func TestRead(t *testing.T) {
	w := New()
	tries := 0
	n, err := w.Read(func() (int, error) {
		if tries++; tries < 3 {
			w.Signal()
			return 0, nil
		}
		return 2, nil
	})
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, 3, tries)

	broken := errors.New("broken")
	_, err = w.Read(func() (int, error) { return 0, broken })
	require.ErrorIs(t, err, broken)

	tries = 0
	_, err = w.Read(func() (int, error) {
		if tries++; tries == 1 {
			go w.SetDeadline(time.Unix(1, 0))
		}
		return 0, nil
	})
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Equal(t, 1, tries)
	require.Equal(t, time.Unix(1, 0), w.Deadline())
	_, err = w.Read(func() (int, error) { panic("it is past the deadline") })
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)

	w.SetDeadline(time.Now().Add(time.Millisecond))
	_, err = w.Read(func() (int, error) { return 0, nil })
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}
