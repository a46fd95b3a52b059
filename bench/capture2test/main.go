// Capture2test makes a Go test of a captured run (package netconn/driver/capture): it copies the file into the testdata of the
// game's package, and writes a test beside it that replays it. The file may be a film (package actorrep/flight) that has the capture within it.
//
//	go run ./bench/capture2test -dir ./mygame -boot bootServer crash.capture
//	go test ./mygame -run TestCaptureCrash
//
// In a module that requires this one, run it as github.com/bunchnet/bunchnet/bench/capture2test. -dir is the folder of the game's package,
// default the current one. -boot is the package's capture.Boot, default boot: a function, or an expression such as bootClient("10.0.0.1:7777").
// -name is the name of the test, default the file's.
//
// The test fails as long as a Tick or a Call of the run returns an error, also one after which the run went on; as long as the run ends in a crash;
// and when it goes another way than it went when it was recorded.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/format"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"unicode"

	"github.com/bunchnet/bunchnet/netconn/driver/capture"
)

var errUsage = errors.New("give one file: capture2test [-dir DIR] [-boot FUNC] [-name NAME] FILE")

func main() {
	dir := flag.String("dir", ".", "folder of the game's package")
	boot := flag.String("boot", "boot", "the package's capture.Boot: a function, or an expression like bootClient(\"10.0.0.1:7777\")")
	name := flag.String("name", "", "name of the test; default the file's")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, errUsage)
		os.Exit(2)
	}
	path, summary, err := write(flag.Arg(0), *dir, *boot, *name)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%s: %s\n", path, summary)
}

// test is what the template is filled with.
type test struct {
	Package, Name, File, Boot, Summary string
	declared                           map[string]bool // at the package's top level, where an import must not have the same name
	inBoot                             map[string]bool // identifiers of Boot, which no local name may hide
}

// Import is an import, under the name that Use returns.
func (t test) Import(path string) string {
	base := path[strings.LastIndexByte(path, '/')+1:]
	if name := t.Use(base); name != base {
		return fmt.Sprintf("%s %q", name, path)
	}
	return fmt.Sprintf("%q", path)
}

// Use is the name of an imported package.
func (t test) Use(name string) string { return free(name, t.declared) }

// Local is the name of a local variable.
func (t test) Local(name string) string { return free(name, t.inBoot) }

// free returns a name that isn't taken: the given one, or the given one and a number.
func free(name string, taken map[string]bool) string {
	found := name
	for n := 2; taken[found]; n++ {
		found = fmt.Sprint(name, n)
	}
	return found
}

var source = template.Must(template.New("test").Parse(`package {{.Package}}

import (
	{{.Import "os"}}
	{{.Import "testing"}}

	{{.Import "github.com/bunchnet/bunchnet/netconn/driver/capture"}}
)
{{$t := .Local "t"}}{{$file := .Local "file"}}{{$result := .Local "result"}}{{$err := .Local "err"}}
// TestCapture{{.Name}} replays a captured run: {{.Summary}}.
func TestCapture{{.Name}}({{$t}} *{{.Use "testing"}}.T) {
	{{$file}}, {{$err}} := {{.Use "os"}}.Open({{printf "%q" .File}})
	if {{$err}} != nil {
		{{$t}}.Fatal({{$err}})
	}
	defer {{$file}}.Close()
	{{$result}}, {{$err}} := {{.Use "capture"}}.Replay({{$file}}, {{.Boot}})
	if {{$err}} != nil {
		{{$t}}.Fatal({{$err}})
	}
	if {{$result}}.Err != nil {
		{{$t}}.Fatalf("the last error of %d ticks and %d calls: %v", {{$result}}.Ticks, {{$result}}.Calls, {{$result}}.Err)
	}
}
`))

// write makes the test, and returns its path and what it replays.
func write(file, dir, boot, name string) (path, summary string, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", "", err
	}
	if data, err = ofFilm(data); err != nil {
		return "", "", fmt.Errorf("%s: %w", file, err)
	}
	s, err := capture.Summarize(bytes.NewReader(data))
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", file, err)
	}
	pkg, err := packageName(dir)
	if err != nil {
		return "", "", err
	}
	if name == "" {
		name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	}
	id := identifier(name)
	if id == "" {
		return "", "", fmt.Errorf("%q has neither letters nor digits; name the test with -name", name)
	}
	expr, err := parser.ParseExpr(boot)
	if err != nil {
		return "", "", fmt.Errorf("-boot %q isn't an expression: %w", boot, err)
	}
	base := strings.ToLower(id) + "_capture_test.go" // with the id last, "windows" would be built on Windows only
	kept := strings.ToLower(id) + "_run.capture"     // alone, "con" and others would be a device of Windows, which no module may have
	t := test{Package: pkg, Name: id, File: "testdata/" + kept, Boot: boot, Summary: describe(s), inBoot: identifiers(expr)}
	if t.declared, err = declared(dir, pkg, base); err != nil {
		return "", "", err
	}
	if t.declared["TestCapture"+id] {
		return "", "", fmt.Errorf("package %s has a TestCapture%s; name the test with -name", pkg, id)
	}
	path = filepath.Join(dir, base)
	if old, err := os.ReadFile(path); err == nil && !bytes.Contains(old, []byte("\n// TestCapture"+id+" replays a captured run:")) {
		return "", "", fmt.Errorf("%s is there, and was made by hand or from another name; name the test with -name", path)
	}
	var b bytes.Buffer
	if err := source.Execute(&b, t); err != nil {
		return "", "", err
	}
	code, err := format.Source(b.Bytes())
	if err != nil {
		return "", "", err
	}
	if err := os.MkdirAll(filepath.Join(dir, "testdata"), 0o755); err != nil {
		return "", "", err
	}
	kept = filepath.Join(dir, "testdata", kept)
	if old, err := os.ReadFile(kept); err == nil && !bytes.Equal(old, data) {
		return "", "", fmt.Errorf("%s is another run; remove it, or name the test with -name", kept)
	}
	heldCapture, err := prepare(kept, data, 0o600) // it holds secrets
	if err != nil {
		return "", "", err
	}
	defer os.Remove(heldCapture)
	heldTest, err := prepare(path, code, 0o644)
	if err != nil {
		return "", "", err
	}
	defer os.Remove(heldTest)
	if err := os.Rename(heldCapture, kept); err != nil {
		return "", "", err
	}
	if err := os.Rename(heldTest, path); err != nil {
		return "", "", err
	}
	found, err := build.Default.MatchFile(dir, base)
	if err == nil && !found {
		err = fmt.Errorf("go test leaves %s out; name the test with -name", path)
	}
	return path, t.Summary, err
}

// prepare writes data to a temporary file beside path, and returns its name: renamed to path it is there whole. When the disk is full nothing is left.
func prepare(path string, data []byte, mode os.FileMode) (string, error) {
	file, err := os.CreateTemp(filepath.Dir(path), ".capture2test-*") // go test ignores the name
	if err != nil {
		return "", err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Chmod(mode), file.Sync(), file.Close()); err != nil {
		return "", errors.Join(fmt.Errorf("%s isn't made: %w", path, err), os.Remove(file.Name()))
	}
	return file.Name(), nil
}

var (
	errNoCapture = errors.New("the film has no capture within it; set flight.Config.Save.Capture to the file that package capture writes")
	errCutFilm   = errors.New("the film is cut off, before the end of its capture if it has one")
	errDamaged   = errors.New("the film's capture is damaged")
)

// ofFilm is the capture that a film has, or the data if it isn't a film.
func ofFilm(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte("<!doctype html>")) {
		return data, nil
	}
	_, rest, found := bytes.Cut(data, []byte(`class="capture">`))
	text, _, ended := bytes.Cut(rest, []byte("<"))
	if !found || !ended {
		if !bytes.HasSuffix(bytes.TrimSpace(data), []byte("</html>")) {
			return nil, errCutFilm
		}
		return nil, errNoCapture
	}
	zip, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(text)))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	const most = 64 << 20 // that flight puts into one
	data, err = io.ReadAll(io.LimitReader(zip, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	case len(data) > most:
		return nil, errors.New("its capture is larger than 64 MiB")
	}
	return data, nil
}

func describe(s capture.Summary) string {
	text := fmt.Sprintf("%d ticks in %v, %d calls, %d datagrams", s.Ticks, s.Took.Round(1e6), s.Calls, s.Datagrams)
	if !s.Complete {
		text += ", cut off"
	}
	if s.Err != "" {
		text += fmt.Sprintf(", an error: %.200q", s.Err)
	}
	return text
}

// packageName is that of the Go files in a folder that are built here.
func packageName(dir string) (string, error) {
	p, err := build.ImportDir(dir, 0)
	if err != nil {
		return "", fmt.Errorf("name the game's package with -dir: %w", err)
	}
	return p.Name, nil
}

// declared is what a package declares at its top level, for whatever system, but for one of its files.
func declared(dir, pkg, but string) (map[string]bool, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, file := range files {
		if filepath.Ext(file.Name()) != ".go" || file.Name() == but {
			continue
		}
		f, _ := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, file.Name()), nil, parser.SkipObjectResolution) // the compiler tells mistakes better
		if f == nil || f.Name == nil || f.Name.Name != pkg {
			continue
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					names[d.Name.Name] = true
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						names[s.Name.Name] = true
					case *ast.ValueSpec:
						for _, n := range s.Names {
							names[n.Name] = true
						}
					}
				}
			}
		}
	}
	return names, nil
}

// identifiers are those of an expression.
func identifiers(expr ast.Expr) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(expr, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			names[id.Name] = true
		}
		return true
	})
	return names
}

// identifier is a name as part of a Go identifier.
func identifier(name string) string {
	var b strings.Builder
	up := true
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			up = true
			continue
		case up:
			r = unicode.ToUpper(r)
		}
		up = false
		b.WriteRune(r)
	}
	return b.String()
}
