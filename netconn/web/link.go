//go:build !js

package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/coder/websocket"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/webtransport-go"

	"github.com/bunchnet/bunchnet/netconn/internal/mailbox"
)

const (
	// writeTime is how long a peer may take to take a datagram.
	writeTime = 5 * time.Second
	// closeTime is how long the end of a session may take.
	closeTime = 500 * time.Millisecond
)

var (
	errText  = errors.New("web: a text message; send binary ones, each a datagram")
	errLong  = fmt.Errorf("web: a message of more than %d bytes", mailbox.MaxDatagram)
	errSlow  = errors.New("web: the peer doesn't read")
	errLarge = errors.New("web: a datagram is larger than the path carries")
)

// link is one session: one goroutine sends, another receives.
type link interface {
	// send sends a datagram. After an error other than errLarge the session is of no use.
	send(p []byte) error
	// receive waits for a datagram, which is in memory of the inbox or its own.
	receive(b *mailbox.Inbox) ([]byte, error)
	// close ends the session, and tells the peer why.
	close(why error)
}

// hearOut waits for the half of a session that receives: it has the peer's words, which a send that fails meanwhile hasn't.
func hearOut(ended <-chan struct{}) {
	select {
	case <-ended:
	case <-time.After(closeTime):
	}
}

// socketLink is a WebSocket.
type socketLink struct {
	conn  *websocket.Conn
	below *below
}

func (l socketLink) send(p []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeTime)
	defer cancel()
	err := l.conn.Write(ctx, websocket.MessageBinary, p)
	if err != nil && ctx.Err() != nil {
		return errSlow
	}
	return err
}

func (l socketLink) receive(b *mailbox.Inbox) ([]byte, error) {
	kind, r, err := l.conn.Reader(context.Background())
	if err != nil {
		return nil, err
	}
	if kind != websocket.MessageBinary {
		return nil, errText
	}
	p := b.Buffer()
	n, err := io.ReadFull(r, p)
	if err == io.EOF || err == io.ErrUnexpectedEOF { // the message's end; that of the connection is wrapped
		return p[:n], nil
	}
	if err == nil { // the end is to be read yet
		var more [1]byte
		_, err = r.Read(more[:])
		if err == io.EOF {
			return p[:n], nil
		}
	}
	if err == nil {
		err = errLong
	}
	return nil, err
}

func (l socketLink) close(why error) {
	code := websocket.StatusGoingAway
	switch {
	case errors.Is(why, errText):
		code = websocket.StatusUnsupportedData
	case errors.Is(why, errLong):
		code = websocket.StatusMessageTooBig
	}
	timer := time.AfterFunc(closeTime, l.below.cut)
	defer timer.Stop()
	_ = l.conn.Close(code, why.Error()) // the peer may have gone
}

// sessionLink is a WebTransport session.
type sessionLink struct {
	session *webtransport.Session
}

func (l sessionLink) send(p []byte) error {
	err := l.session.SendDatagram(p)
	var large *quic.DatagramTooLargeError
	if errors.As(err, &large) {
		return errLarge
	}
	return err
}

func (l sessionLink) receive(*mailbox.Inbox) ([]byte, error) {
	p, err := l.session.ReceiveDatagram(context.Background())
	if err == nil && len(p) > mailbox.MaxDatagram {
		err = errLong
	}
	if err != nil && err != errLong {
		err = l.ended(err)
	}
	return p, err
}

// ended is why the session has ended: in the peer's words, which only its streams tell, if they come at once.
func (l sessionLink) ended(err error) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	select {
	case <-l.session.Context().Done():
	case <-ctx.Done():
		return err
	}
	var said *webtransport.SessionError
	if _, why := l.session.AcceptUniStream(ctx); errors.As(why, &said) {
		return said
	}
	return err
}

func (l sessionLink) close(why error) {
	time.Sleep(lingerTime)
	_ = l.session.CloseWithError(0, why.Error()) // the peer may have gone
}
