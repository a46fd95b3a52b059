// Package agones tells Agones' SDK server, a program beside the game server in its pod, how the game server is. It uses the published REST
// interface. A game server needs four calls of it:
//
//	sdk := agones.New("")                    // http://localhost:$AGONES_SDK_HTTP_PORT
//	err := sdk.Ready(ctx)                    // players may come: the pod isn't moved until then
//	every few seconds: err := sdk.Health(ctx)
//	err := sdk.Allocate(ctx)                 // players are here: scaling down spares this server
//	err := sdk.Shutdown(ctx)                 // the match is over: the pod is deleted
//
// The SDK server may start later than the game server: calls are tried again until their context ends. With package process set
// process.Config.SDK, which makes these calls.
package agones

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"
)

// PortEnv is the environment variable with the port of the SDK server, which Agones sets.
const PortEnv = "AGONES_SDK_HTTP_PORT"

// SDK is Agones' SDK server. Safe for concurrent use.
type SDK struct {
	url    string
	client http.Client
}

// GameServer is what Agones knows of the game server.
type GameServer struct {
	Name        string
	Labels      map[string]string
	Annotations map[string]string
	State       string // "Ready", "Allocated" and others
	Address     string // clients dial this
	Ports       []Port
}

// Port is a port of the game server as clients dial it.
type Port struct {
	Name string `json:"name"`
	Port uint16 `json:"port"`
}

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 1 << 20

// New returns the SDK at a URL. Default: that of the environment, with port 9358 if PortEnv isn't set.
func New(url string) *SDK {
	if url == "" {
		url = "http://localhost:" + cmp.Or(os.Getenv(PortEnv), "9358")
	}
	return &SDK{url: url, client: http.Client{Timeout: 5 * time.Second}}
}

// Ready says that the server can take players.
func (s *SDK) Ready(ctx context.Context) error { return s.post(ctx, "/ready", struct{}{}) }

// Health says that the server is alive. Agones restarts a server that doesn't say so for the time in its settings.
func (s *SDK) Health(ctx context.Context) error { return s.post(ctx, "/health", struct{}{}) }

// Allocate says that the server is in use, so that scaling down and updates spare it.
func (s *SDK) Allocate(ctx context.Context) error { return s.post(ctx, "/allocate", struct{}{}) }

// Reserve keeps the server from being removed for a time, in whole seconds, rounded up.
func (s *SDK) Reserve(ctx context.Context, d time.Duration) error {
	return s.post(ctx, "/reserve", map[string]string{"seconds": fmt.Sprint(int64((d + time.Second - 1) / time.Second))})
}

// Shutdown says that the server may be deleted.
func (s *SDK) Shutdown(ctx context.Context) error { return s.post(ctx, "/shutdown", struct{}{}) }

// SetLabel sets a label of the game server, below "agones.dev/sdk-".
func (s *SDK) SetLabel(ctx context.Context, key, value string) error {
	return s.call(ctx, http.MethodPut, "/metadata/label", map[string]string{"key": key, "value": value}, nil)
}

// SetAnnotation sets an annotation of the game server, below "agones.dev/sdk-".
func (s *SDK) SetAnnotation(ctx context.Context, key, value string) error {
	return s.call(ctx, http.MethodPut, "/metadata/annotation", map[string]string{"key": key, "value": value}, nil)
}

// GameServer returns what Agones knows: above all the address and port for fleet.Info.Addrs.
func (s *SDK) GameServer(ctx context.Context) (GameServer, error) {
	var a struct {
		Meta struct {
			Name        string            `json:"name"`
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"object_meta"`
		Status struct {
			State   string `json:"state"`
			Address string `json:"address"`
			Ports   []Port `json:"ports"`
		} `json:"status"`
	}
	err := s.call(ctx, http.MethodGet, "/gameserver", nil, &a)
	return GameServer{a.Meta.Name, a.Meta.Labels, a.Meta.Annotations, a.Status.State, a.Status.Address, a.Status.Ports}, err
}

func (s *SDK) post(ctx context.Context, path string, body any) error {
	return s.call(ctx, http.MethodPost, path, body, nil)
}

// call asks until there is an answer, or the context ends.
func (s *SDK) call(ctx context.Context, method, path string, body, out any) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return fmt.Errorf("agones: %w", err)
		}
	}
	if u, err := url.Parse(s.url); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" { // it wouldn't become better
		return fmt.Errorf("agones: %q isn't the URL of an SDK server", s.url)
	}
	for {
		err := s.once(ctx, method, path, text, out)
		var refused *Error
		if err == nil || errors.As(err, &refused) && refused.Status < 500 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// Error is an answer that isn't 200.
type Error struct {
	Status int
	Text   string // its first 100 bytes
}

func (e *Error) Error() string { return fmt.Sprintf("agones: status %d: %q", e.Status, e.Text) }

func (s *SDK) once(ctx context.Context, method, path string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("agones: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return fmt.Errorf("agones: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case err != nil:
		return fmt.Errorf("agones: %w", err)
	case resp.StatusCode != http.StatusOK:
		return &Error{resp.StatusCode, string(text[:min(len(text), 100)])}
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return &Error{resp.StatusCode, err.Error()}
	}
	return nil
}
