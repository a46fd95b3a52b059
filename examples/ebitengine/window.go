package main

import (
	"time"

	"github.com/hajimehoshi/ebiten/v2"
	"github.com/hajimehoshi/ebiten/v2/inpututil"

	"github.com/bunchnet/bunchnet/examples/ebitengine/arena"
)

// window is Ebitengine's view of the client: Update is called sixty times a second, Draw for each frame of the screen.
type window struct {
	client *arena.Client
	frame  time.Duration // one drawn frame's at least
	length time.Duration
	start  time.Time
	drawn  time.Time
}

// Update is the client's frame.
func (w *window) Update() error {
	now := time.Now()
	if w.start.IsZero() {
		w.start = now
	}
	if inpututil.IsKeyJustPressed(ebiten.KeyEscape) || w.length > 0 && now.Sub(w.start) > w.length {
		return ebiten.Termination
	}
	if err := w.impair(); err != nil {
		return err
	}
	return w.client.Frame(now, input())
}

// input is the keys held now.
func input() (in arena.Input) {
	if ebiten.IsKeyPressed(ebiten.KeyArrowLeft) {
		in.Turn--
	}
	if ebiten.IsKeyPressed(ebiten.KeyArrowRight) {
		in.Turn++
	}
	in.Thrust = ebiten.IsKeyPressed(ebiten.KeyArrowUp)
	in.Fire = ebiten.IsKeyPressed(ebiten.KeySpace)
	return in
}

const (
	lagStep  = 20 * time.Millisecond
	lossStep = 5.0
)

// impair is the keys that make the network worse and better.
func (w *window) impair() error {
	lag, loss := w.client.Lag, w.client.Loss
	switch {
	case inpututil.IsKeyJustPressed(ebiten.KeyBracketLeft):
		lag -= lagStep
	case inpututil.IsKeyJustPressed(ebiten.KeyBracketRight):
		lag += lagStep
	case inpututil.IsKeyJustPressed(ebiten.KeyMinus):
		loss -= lossStep
	case inpututil.IsKeyJustPressed(ebiten.KeyEqual):
		loss += lossStep
	case inpututil.IsKeyJustPressed(ebiten.KeyDigit0):
		lag, loss = 0, 0
	}
	if lag == w.client.Lag && loss == w.client.Loss {
		return nil
	}
	return w.client.Impair(lag, loss)
}

// Layout is the screen's size; Ebitengine scales it to the window.
func (w *window) Layout(int, int) (int, int) { return arena.ScreenWidth, arena.ScreenHeight }

// Draw draws, and waits where the screen doesn't, so that frames nobody sees aren't drawn.
func (w *window) Draw(screen *ebiten.Image) {
	if wait := w.frame - time.Since(w.drawn); wait > 0 {
		time.Sleep(wait)
	}
	w.drawn = time.Now()
	drawField(screen, w.client)
	drawGraph(screen, w.client)
}
