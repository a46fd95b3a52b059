//go:build js

package main

import (
	"fmt"
	"math"
	"strconv"
	"syscall/js"
	"time"

	"github.com/bunchnet/bunchnet/examples/tanks/game"
)

const (
	fieldSize   = 640 // pixels each way
	scale       = fieldSize / game.Size
	chartWidth  = graphSamples
	chartHeight = 48
	chartTime   = 100 * time.Millisecond
	eventLines  = 4
)

// page is what the browser shows and what the player does there.
type page struct {
	field, charts, board, events, way js.Value
	frames                            chan struct{} // the browser wants to draw
	keys                              map[string]bool
	lines                             []string
	drawn                             int
	next                              time.Time // when charts are drawn again
}

// on has the browser call f.
func on(target js.Value, event string, f func(e js.Value)) {
	target.Call("addEventListener", event, js.FuncOf(func(_ js.Value, args []js.Value) any {
		f(args[0])
		return nil
	}))
}

func openPage(p *player) page {
	doc, window := js.Global().Get("document"), js.Global()
	get := func(id string) js.Value { return doc.Call("getElementById", id) }
	context := func(id string) js.Value { return get(id).Call("getContext", "2d") }
	pg := page{field: context("field"), charts: context("charts"), board: get("board"), events: get("events"), way: get("way"), frames: make(chan struct{}, 1), keys: map[string]bool{}}
	typing := func(e js.Value) bool { return e.Get("target").Get("tagName").String() == "INPUT" }
	on(window, "keydown", func(e js.Value) {
		if !typing(e) {
			pg.keys[e.Get("code").String()] = true
			e.Call("preventDefault")
		}
	})
	on(window, "keyup", func(e js.Value) { delete(pg.keys, e.Get("code").String()) })
	on(window, "blur", func(js.Value) { clear(pg.keys) })
	on(get("join"), "submit", func(e js.Value) {
		e.Call("preventDefault")
		p.cfg.Name = get("name").Get("value").String()
		get("join").Get("style").Set("display", "none")
	})
	if p.cfg.Name != "" {
		get("join").Get("style").Set("display", "none")
	}
	on(get("chat"), "submit", func(e js.Value) {
		e.Call("preventDefault")
		p.say(get("line").Get("value").String())
		get("line").Set("value", "")
		get("line").Call("blur")
	})
	lag, loss := get("lag"), get("loss")
	label := func() {
		get("impaired").Set("textContent", fmt.Sprintf("%d ms each way, %.0f %% lost", p.cfg.Lag.Milliseconds(), p.cfg.Loss))
	}
	lag.Set("value", p.cfg.Lag.Milliseconds())
	loss.Set("value", p.cfg.Loss)
	label()
	for _, slider := range []js.Value{lag, loss} {
		on(slider, "input", func(js.Value) {
			p.cfg.Lag = time.Duration(number(lag)) * time.Millisecond
			p.cfg.Loss = number(loss)
			label()
			p.impair()
		})
	}
	window.Set("view", js.FuncOf(func(js.Value, []js.Value) any { return p.view() }))
	window.Set("still", js.FuncOf(func(js.Value, []js.Value) any { p.stop(); return nil }))
	var frame js.Func
	frame = js.FuncOf(func(js.Value, []js.Value) any {
		select {
		case pg.frames <- struct{}{}:
		default:
		}
		window.Call("requestAnimationFrame", frame)
		return nil
	})
	window.Call("requestAnimationFrame", frame)
	if p.err != nil {
		pg.event(p.err.Error())
	}
	get("loading").Get("style").Set("display", "none")
	return pg
}

// number is a slider's.
func number(slider js.Value) float64 {
	f, _ := strconv.ParseFloat(slider.Get("value").String(), 64) // the browser sees to it
	return f
}

// input is the keys that are held.
func (pg *page) input(*game.Client) (in game.Input) {
	held := func(codes ...string) int8 {
		for _, c := range codes {
			if pg.keys[c] {
				return 1
			}
		}
		return 0
	}
	in.Drive = held("KeyW", "ArrowUp") - held("KeyS", "ArrowDown")
	in.Turn = held("KeyD", "ArrowRight") - held("KeyA", "ArrowLeft")
	in.Fire = held("Space") == 1
	return in
}

// event shows a line of what happened.
func (pg *page) event(line string) {
	pg.lines = append(pg.lines, line)
	pg.lines = pg.lines[max(0, len(pg.lines)-eventLines):]
	text := ""
	for _, l := range pg.lines {
		text += l + "\n"
	}
	pg.events.Set("textContent", text)
}

var (
	colors = map[game.Kind]string{game.Own: "#7fd65a", game.Other: "#5ab0e6", game.Enemy: "#e65a4c", game.Box: "#b0854a", game.Shot: "#fff0a0"}
	sizes  = map[game.Kind]float64{game.Own: 7, game.Other: 7, game.Enemy: 4.5, game.Box: 4, game.Shot: 2}
)

// draw shows the field as the client has it, the charts, and the score board.
func (p *player) draw() {
	p.page.drawn++
	ctx := p.page.field
	ctx.Set("fillStyle", "#262b22")
	ctx.Call("fillRect", 0, 0, fieldSize, fieldSize)
	if p.client == nil {
		return
	}
	if at, ok := p.client.Own(); ok { // as far as it sees
		ctx.Set("fillStyle", "#3a4233")
		disc(ctx, at.Times(scale), game.Sight*scale)
	}
	ctx.Set("font", "12px sans-serif")
	ctx.Set("textAlign", "center")
	for t := range p.client.Scene {
		at := t.Pos.Times(scale)
		ctx.Set("fillStyle", colors[t.Kind])
		if t.Kind == game.Box {
			ctx.Call("fillRect", at.X-sizes[t.Kind], at.Y-sizes[t.Kind], 2*sizes[t.Kind], 2*sizes[t.Kind])
			continue
		}
		disc(ctx, at, sizes[t.Kind])
		if t.Kind <= game.Other {
			sin, cos := math.Sincos(t.Heading * math.Pi / 180)
			ctx.Set("strokeStyle", colors[t.Kind])
			ctx.Set("lineWidth", 4)
			ctx.Call("beginPath")
			ctx.Call("moveTo", at.X, at.Y)
			ctx.Call("lineTo", at.X+16*cos, at.Y+16*sin)
			ctx.Call("stroke")
			ctx.Call("fillText", t.Name, at.X, at.Y-14)
		}
	}
	if now := time.Now(); !now.Before(p.page.next) {
		p.page.next = now.Add(chartTime)
		p.drawCharts()
	}
}

func disc(ctx js.Value, at game.Vec, radius float64) {
	ctx.Call("beginPath")
	ctx.Call("arc", at.X, at.Y, radius, 0, 2*math.Pi)
	ctx.Call("fill")
}

// drawCharts shows the network's last eight seconds and the score board.
func (p *player) drawCharts() {
	ctx, last := p.page.charts, p.graph.last()
	ctx.Set("fillStyle", "#181a28")
	ctx.Call("fillRect", 0, 0, fieldSize, chartHeight+24)
	ctx.Set("font", "11px sans-serif")
	for i, chart := range []struct {
		title, color string
		full         float64
		of           func(s sample) float64
	}{
		{fmt.Sprintf("RTT %.0f of 400 ms", last.rtt), "#dcbe3c", 400, func(s sample) float64 { return s.rtt }},
		{fmt.Sprintf("loss %.0f of 50 %%", 100*last.loss), "#e63c3c", 0.5, func(s sample) float64 { return s.loss }},
		{fmt.Sprintf("corrections %d; 4 high", p.graph.corrections), "#ff7814", 4, func(s sample) float64 { return s.corrections }},
		{fmt.Sprintf("%.1f of 20 kB/s", last.rate/1000), "#5a8ce6", 20e3, func(s sample) float64 { return s.rate }},
	} {
		left := i * chartWidth
		ctx.Set("fillStyle", "#c0c4d0")
		ctx.Call("fillText", chart.title, left+4, 14)
		ctx.Set("fillStyle", chart.color)
		for x, s := range p.graph.all {
			if h := math.Round(chartHeight * min(1, chart.of(s)/chart.full)); h > 0 {
				ctx.Call("fillRect", left+x, 24+chartHeight-h, 1, h)
			}
		}
	}
	board, ammo := p.client.Board()
	text := fmt.Sprintf("%d shells", ammo)
	for _, row := range board {
		text += fmt.Sprintf("\n%s %d", row.Name, row.Score)
	}
	p.page.board.Set("textContent", text)
	p.page.way.Set("textContent", p.way())
}
