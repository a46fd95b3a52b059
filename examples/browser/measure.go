package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
)

// measure says what the client weighs, and what a tick costs with 200 actors in view.
func measure(ctx context.Context, out io.Writer) error {
	c, err := build(ctx)
	if err != nil {
		return err
	}
	s, err := listen(options{http: "127.0.0.1:0", web: "127.0.0.1:0", udp: "127.0.0.1:0"}, c)
	if err != nil {
		return err
	}
	defer s.close()
	fmt.Fprintf(out, "the client: %.2f MB, %.2f MB with gzip -9\n", float64(len(c.wasm))/1e6, float64(len(c.zipped))/1e6)
	tab, stop, err := chromium(ctx)
	if err != nil {
		return err
	}
	defer stop()
	tab, done := context.WithTimeout(tab, patience)
	defer done()
	var report string
	if err := chromedp.Run(tab, chromedp.Navigate(s.url+"/?measure"), chromedp.Poll("globalThis.measured", &report, chromedp.WithPollingTimeout(patience), chromedp.WithPollingInterval(time.Second))); err != nil {
		return err
	}
	if strings.HasPrefix(report, "FAIL") {
		return fmt.Errorf("in the page: %s", report)
	}
	var p50, p99 float64
	if _, err := fmt.Sscan(report, &p50, &p99); err != nil {
		return err
	}
	fmt.Fprintf(out, "a tick with 200 moving actors in view, in Chromium: p50 %.1f ms, p99 %.1f ms\n", p50, p99)
	return nil
}
