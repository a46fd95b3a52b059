package channel

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
)

// hearsLate is a handler that wants what comes behind its close.
type hearsLate struct{ *stub }

func (h hearsLate) ReceivedLate(ch *Channel, in *bunch.In) {
	h.stub.ReceivedBunch(ch, in)
	h.stub.got[len(h.stub.got)-1] += ", late"
}

// TestLateHandlersHearWhatCameBehindTheirClose: in order, as long as the channel is there.
func TestLateHandlersHearWhatCameBehindTheirClose(t *testing.T) {
	s := newStub(t, true, nil)
	s.accepts(header(0, 1, bunch.Control, opening), "")
	ch, err := s.table.Open(stubGame, hearsLate{s})
	require.NoError(t, err)
	s.send(ch, 1)
	s.accepts(header(ch.Index(), 1, stubGame, nil), "in time")
	require.NoError(t, ch.Close(bunch.Dormancy))
	s.accepts(header(ch.Index(), 2, stubGame, nil), "a call")
	s.accepts(header(ch.Index(), 3, stubGame, nil), "another")
	require.Equal(t, []string{"in time", "a call, late", "another, late"}, s.got)
	require.Zero(t, s.table.Counters.Ignored)
	s.accepts(header(ch.Index(), 4, stubGame, nil), "") // nothing in it
	require.EqualValues(t, 1, s.table.Counters.Ignored)
	s.ack(0)
	s.ack(1)
	require.Equal(t, []CloseReason{bunch.Dormancy}, s.closed)
	require.Nil(t, s.table.Channel(ch.Index()))
}
