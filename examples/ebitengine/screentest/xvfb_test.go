package screentest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/examples/ebitengine/arena"
)

// screen is a virtual one of the window's size.
type screen struct {
	t       *testing.T
	display string
	file    string // what is on it, kept up to date by Xvfb
}

// newScreen starts Xvfb on a free display.
func newScreen(t *testing.T) *screen {
	path, err := exec.LookPath("Xvfb")
	if err != nil {
		t.Skip("no Xvfb here: apt-get install xvfb libgl1 libgl1-mesa-dri")
	}
	dir := t.TempDir()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	size := fmt.Sprintf("%dx%dx24", arena.ScreenWidth, arena.ScreenHeight)
	cmd := exec.Command(path, "-displayfd", "3", "-screen", "0", size, "-nolisten", "tcp", "-fbdir", dir)
	cmd.ExtraFiles = []*os.File{w}
	start(t, cmd)
	require.NoError(t, w.Close())
	require.NoError(t, r.SetReadDeadline(time.Now().Add(time.Minute)))
	number := make([]byte, 16)
	n, err := r.Read(number) // it says which display once it is ready
	require.NoError(t, err, "Xvfb didn't start")
	return &screen{t: t, display: ":" + strings.TrimSpace(string(number[:n])), file: filepath.Join(dir, "Xvfb_screen0")}
}

// start runs a program until the test is over.
func start(t *testing.T, cmd *exec.Cmd) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", cmd.Path, out.String())
		}
	})
}

// look is what is on the screen now: the window dump that Xvfb keeps.
func (s *screen) look() *image.RGBA {
	b, err := os.ReadFile(s.file)
	require.NoError(s.t, err)
	require.Greater(s.t, len(b), 100)
	word := func(i int) int { return int(binary.BigEndian.Uint32(b[4*i:])) }
	width, height, stride, at := word(4), word(5), word(12), word(0)+12*word(19)
	require.Equal(s.t, []int{7, 32, 0}, []int{word(1), word(11), word(7)}, "version, bits a pixel, byte order")
	require.Len(s.t, b, at+stride*height)
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			p := b[at+y*stride+4*x:]
			img.SetRGBA(x, y, color.RGBA{p[2], p[1], p[0], 255})
		}
	}
	return img
}

// keep saves a screenshot with the test's artifacts.
func (s *screen) keep(img image.Image, name string) {
	f, err := os.Create(filepath.Join(s.t.ArtifactDir(), name+".png"))
	require.NoError(s.t, err)
	require.NoError(s.t, png.Encode(f, img))
	require.NoError(s.t, f.Close())
}

// xdotool presses keys and moves the mouse.
func (s *screen) xdotool(args ...string) {
	cmd := exec.Command("xdotool", args...)
	cmd.Env = append(os.Environ(), "DISPLAY="+s.display)
	out, err := cmd.CombinedOutput()
	require.NoError(s.t, err, "xdotool %v: %s", args, out)
}

// buildWindow builds the game, or skips the test where its libraries' headers aren't.
func buildWindow(t *testing.T) string {
	cgo, err := exec.Command("go", "env", "CGO_ENABLED").Output()
	require.NoError(t, err)
	if strings.TrimSpace(string(cgo)) != "1" {
		t.Skip("no cgo here, which the window needs on Linux: apt-get install gcc libc6-dev")
	}
	path := filepath.Join(t.TempDir(), "window")
	out, err := exec.Command("go", "build", "-o", path, "..").CombinedOutput()
	if err != nil && (bytes.Contains(out, []byte("X11/")) || bytes.Contains(out, []byte("cannot find -lX"))) {
		t.Skipf("no headers of X11 here: apt-get install libx11-dev libxrandr-dev libxcursor-dev libxinerama-dev libxi-dev libxxf86vm-dev\n%s", out)
	}
	require.NoError(t, err, string(out))
	return path
}

// columns is how many columns of pixels below the field have a color.
func columns(img *image.RGBA, c color.RGBA) (n int) {
	for x := range img.Bounds().Dx() {
		for y := int(arena.Height); y < img.Bounds().Dy(); y++ {
			if img.RGBAAt(x, y) == c {
				n++
				break
			}
		}
	}
	return n
}

// blob is the pixels of one color.
type blob struct {
	n    int
	x, y float64 // their middle
}

// blobs finds the ships' colors in the field.
func blobs(img *image.RGBA) [arena.MaxShips]blob {
	index := map[color.RGBA]int{}
	for i, c := range arena.Colors {
		index[c] = i
	}
	var found [arena.MaxShips]blob
	for y := range int(arena.Height) {
		for x := range int(arena.Width) {
			if i, ok := index[img.RGBAAt(x, y)]; ok {
				found[i].n++
				found[i].x += float64(x) + 0.5
				found[i].y += float64(y) + 0.5
			}
		}
	}
	for i := range found {
		if n := float64(found[i].n); n > 0 {
			found[i].x, found[i].y = found[i].x/n, found[i].y/n
		}
	}
	return found
}
