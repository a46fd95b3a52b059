package prom

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"
)

// database is a Prometheus that scrapes an address four times a second.
type database struct {
	t   *testing.T
	url string
	out bytes.Buffer // what it said
}

func newDatabase(t *testing.T, scrapes string) *database {
	bin, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("no Prometheus here: apt-get install prometheus")
	}
	dir := t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs: [{job_name: game, static_configs: [{targets: ['%s']}]}]\n", scrapes)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.yml"), []byte(config), 0o644))
	l, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free
	require.NoError(t, err)
	require.NoError(t, l.Close())
	d := &database{t: t, url: "http://" + l.Addr().String()}
	cmd := exec.Command(bin, "--config.file", filepath.Join(dir, "config.yml"), "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", l.Addr().String())
	cmd.Stdout, cmd.Stderr = &d.out, &d.out
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(d.out.String())
		}
	})
	return d
}

// ask has the database answer a question of its API.
func (d *database) ask(path string, values url.Values, answer any) error {
	resp, err := http.Get(d.url + path + "?" + values.Encode())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, b)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(b, answer)
}

// query is the number that an expression gives now; an error says that it gives none.
func (d *database) query(expr string) (string, error) {
	var answer struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := d.ask("/api/v1/query", url.Values{"query": {expr}}, &answer); err != nil {
		return "", err
	}
	if len(answer.Data.Result) != 1 {
		return "", fmt.Errorf("%d results", len(answer.Data.Result))
	}
	text, _ := answer.Data.Result[0].Value[1].(string)
	if _, err := strconv.ParseFloat(text, 64); err != nil || text == "NaN" {
		return "", fmt.Errorf("the result is %q", text)
	}
	return text, nil
}

// TestDashboardShowsData has a Prometheus scrape a server with a player, and run the query of every panel, with the variables as
// Grafana fills them in: each gives a number.
func TestDashboardShowsData(t *testing.T) {
	reg := prometheus.NewRegistry()
	require.NoError(t, reg.Register(New(running(t), nil)))
	metrics := httptest.NewServer(promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	t.Cleanup(metrics.Close)
	d := newDatabase(t, strings.TrimPrefix(metrics.URL, "http://"))
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(Dashboard, &board))
	fill := strings.NewReplacer("$instance", ".*", "$__rate_interval", "1m") // two scrapes are enough, and a slow machine may miss some
	until := func(what string, check func() error) {
		var err error
		for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			if err = check(); err == nil {
				return
			}
		}
		require.NoError(t, err, what)
	}
	asked := 0
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			until(p.Title+": "+target.Expr, func() error {
				_, err := d.query(fill.Replace(target.Expr))
				return err
			})
			asked++
		}
	}
	require.Greater(t, asked, 30)
	until("the variable instance has values", func() error {
		var answer struct{ Data []string }
		err := d.ask("/api/v1/label/instance/values", url.Values{"match[]": {"bunchnet_up"}}, &answer)
		if err == nil && len(answer.Data) != 1 {
			err = fmt.Errorf("%v", answer.Data)
		}
		return err
	})
	until("one connection", func() error {
		n, err := d.query("sum(bunchnet_connections)")
		if err == nil && n != "1" {
			err = fmt.Errorf("%s", n)
		}
		return err
	})
}
