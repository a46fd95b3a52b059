package inspect_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/inspect"
)

// A page on a running server, and its figures from another goroutine.
func Example() {
	srv, err := driver.Listen("127.0.0.1:0", driver.Config{Link: driver.PlainSalted{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/net/", inspect.New(srv, inspect.Config{Title: "arena"}))
	source := inspect.NewSource(srv)

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx, nil) }()

	s, err := source.Snapshot(ctx)
	fmt.Println(s.Server, len(s.Conns), err)
	web := httptest.NewServer(mux) // at an address of the loopback; in production http.ListenAndServe("127.0.0.1:8080", mux)
	defer web.Close()
	page, err := http.Get(web.URL + "/net/json")
	if err != nil {
		fmt.Println(err)
		return
	}
	page.Body.Close()
	fmt.Println(page.StatusCode)
	cancel()
	fmt.Println(<-done)
	// Output:
	// true 0 <nil>
	// 200
	// <nil>
}
