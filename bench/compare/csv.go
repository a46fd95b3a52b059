package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// results is all that was measured.
type results struct {
	latency    []latencyPoint
	throughput []throughputPoint
	many       []manyPoint

	replication *replication
}

// writable makes dir, and says at once why its files could not be written after the hour that measuring takes.
func writable(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".compare-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// write writes the tables of a workload that was measured into dir, for bench/plot.
func (r *results) write(dir, workload string) error {
	for _, t := range []struct {
		workload, name, head string
		rows                 func() [][]string
	}{
		{"w1", "w1", "rate,peer,loss,p99_ms", r.latencyRows},
		{"w1", "frontier", "network,peer,wire_bytes,p99_ms", r.frontierRows},
		{"w2", "w2", "panel,peer,value", r.throughputRows},
		{"w3", "w3", "panel,peer,value", r.manyRows},
		{"r1", "r1", "grows,changes,x,median_ms", r.growthRows},
	} {
		if t.workload != workload {
			continue
		}
		rows := t.rows()
		if len(rows) == 0 {
			continue
		}
		if err := writeTable(filepath.Join(dir, t.name+".csv"), append([][]string{strings.Split(t.head, ",")}, rows...)); err != nil {
			return err
		}
	}
	return nil
}

func writeTable(path string, rows [][]string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := csv.NewWriter(f).WriteAll(rows); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// latencyRows are p99 over the loss, without jitter and bursts.
func (r *results) latencyRows() (rows [][]string) {
	for i := range r.latency {
		p := &r.latency[i]
		if p.Err == nil && !p.Burst && !p.Together && !p.Batch && p.Jitter == 0 && p.Got > 0 {
			rows = append(rows, []string{strconv.Itoa(p.Rate), p.Peer, decimal(p.Loss), decimal(p.P99.Seconds() * 1000)})
		}
	}
	return rows
}

// frontierRows are p99 over the bytes that it costs, of the peers that lost nothing.
func (r *results) frontierRows() (rows [][]string) {
	for i := range r.latency {
		p := &r.latency[i]
		if p.Err == nil && p.Got == p.Sent && (p.Loss > 0 || p.Burst) && p.Jitter == 0 {
			rows = append(rows, []string{strings.TrimPrefix(p.title(), "W1: "), p.name(), decimal(p.WireBytes), decimal(p.P99.Seconds() * 1000)})
		}
	}
	return rows
}

// throughputRows are CPU seconds for a million messages.
func (r *results) throughputRows() (rows [][]string) {
	for i := range r.throughput {
		if p := &r.throughput[i]; p.Err == nil {
			rows = append(rows, []string{fmt.Sprintf("CPU s per million of %d B", p.Size), p.Peer, decimal(p.cpuMillion())})
		}
	}
	return rows
}

// manyRows are the server's CPU.
func (r *results) manyRows() (rows [][]string) {
	for i := range r.many {
		if p := &r.many[i]; p.Err == nil {
			rows = append(rows, []string{fmt.Sprintf("server's share of a core, %d clients, %%", p.Clients), p.Peer, decimal(100 * p.share(p.CPU))})
		}
	}
	return rows
}

// growthRows are a tick's time over what grows.
func (r *results) growthRows() (rows [][]string) {
	if r.replication == nil {
		return nil
	}
	for _, s := range r.replication.Sweeps {
		for i := range s.Points {
			if p := &s.Points[i]; p.P50 > 0 {
				rows = append(rows, []string{s.Of, s.changing(), strconv.Itoa(p.X), decimal(p.P50.Seconds() * 1000)})
			}
		}
	}
	return rows
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
