package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"github.com/miekg/dns"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/webtransport-go"
	"github.com/stretchr/testify/require"
)

// TestACME: with -domain the server gets its certificate by ACME from Let's Encrypt's test service, which asks at the server's own port, and serves the page,
// WebSocket and WebTransport with it. A restart finds the certificate in its folder. For another name there is none.
func TestACME(t *testing.T) {
	const domain = "play.example.com"
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	at := free.Addr().(*net.TCPAddr)
	require.NoError(t, free.Close())
	directory, roots := authority(t, at.Port)
	o := options{domain: domain, https: at.String(), acme: directory, certs: t.TempDir(), udp: "127.0.0.1:0"}
	for _, directory := range []string{directory, "https://127.0.0.1:1/nobody"} {
		o.acme = directory
		s, err := listen(o, &client{})
		require.NoError(t, err)
		conf := &tls.Config{RootCAs: roots, ServerName: domain}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		web := &http.Client{Transport: &http.Transport{TLSClientConfig: conf, DisableKeepAlives: true, TLSHandshakeTimeout: patience,
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, at.String())
			}}}
		resp, err := web.Get(s.url + "/")
		for err != nil && ctx.Err() == nil { // a handshake has 5 s, and on a busy machine the certificate takes longer
			resp, err = web.Get(s.url + "/")
		}
		require.NoError(t, err)
		page, err := io.ReadAll(resp.Body)
		require.NoError(t, errors.Join(err, resp.Body.Close()))
		require.Contains(t, string(page), `\"WebTransport\":\"`+s.url+path)

		socket, _, err := websocket.Dial(ctx, s.url+path, &websocket.DialOptions{HTTPClient: web})
		require.NoError(t, err)
		require.NoError(t, socket.CloseNow())
		wt := &webtransport.Transport{TLSClientConfig: conf, QUICConfig: &quic.Config{EnableDatagrams: true, EnableStreamResetPartialDelivery: true},
			DialAddr: func(ctx context.Context, _ string, tc *tls.Config, qc *quic.Config) (*quic.Conn, error) {
				return quic.DialAddrEarly(ctx, at.String(), tc, qc)
			}}
		_, session, err := wt.Dial(ctx, s.url+path, nil)
		require.NoError(t, err)
		require.NoError(t, errors.Join(session.CloseWithError(0, ""), wt.Close()))

		_, err = tls.Dial("tcp", at.String(), &tls.Config{RootCAs: roots, ServerName: "other.example.com"})
		require.Error(t, err)
		require.NoError(t, s.close())
	}
}

// authority is an ACME service, whose challenges go to a port of this machine, whatever the name.
func authority(t *testing.T, port int) (directory string, roots *x509.CertPool) {
	t.Setenv("PEBBLE_VA_NOSLEEP", "1")
	names, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	answer := &dns.Server{Listener: names, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg)
		m.SetReply(r)
		if q := r.Question[0]; q.Qtype == dns.TypeA {
			m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1}, A: net.IPv4(127, 0, 0, 1)}}
		}
		_ = w.WriteMsg(m) // who asked is gone
	})}
	go func() { _ = answer.ActivateAndServe() }() // ends with the test
	t.Cleanup(func() { require.NoError(t, answer.Shutdown()) })
	quiet := log.New(io.Discard, "", 0)
	store := db.NewMemoryStore()
	issuer := ca.New(quiet, store, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {}})
	validator := va.New(quiet, 0, port, false, names.Addr().String(), store)
	front := wfe.New(quiet, store, validator, issuer, nil, false, false, 1, 1)
	service := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if order, ok := strings.CutPrefix(r.URL.Path, "/finalize-order/"); ok { // Let's Encrypt says where the order is, as autocert wants it to
			w.Header().Set("Location", "https://"+r.Host+"/my-order/"+order)
		}
		front.Handler().ServeHTTP(w, r)
	}))
	was := http.DefaultClient
	http.DefaultClient = service.Client() // trusts it; autocert has no other one
	t.Cleanup(func() {
		http.DefaultClient = was
		service.Close()
	})
	roots = x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(issuer.GetRootCert(0).PEM()))
	return service.URL + wfe.DirectoryPath, roots
}
