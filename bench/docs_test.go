package bench

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// page is a Markdown file, and its lines by what they are.
type page struct {
	path   string // from the root
	text   []line // outside of blocks
	blocks []block
}

type line struct {
	n    int
	text string
}

// block is a fenced or indented one. info is what stands behind the fence: "go FILE" for a quote of Go code.
type block struct {
	n      int
	info   string
	indent string // of a fence
	lines  []string
}

// pages is every Markdown file of the module.
func pages(t *testing.T) (all []*page) {
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			if err == nil {
				err = fs.SkipDir
			}
			return err
		}
		if strings.HasSuffix(path, ".md") {
			b, err := os.ReadFile(path)
			rel, _ := filepath.Rel("..", path)
			all = append(all, parsePage(filepath.ToSlash(rel), string(b)))
			return err
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, len(all), 10)
	return all
}

func parsePage(path, text string) *page {
	p := &page{path: path}
	fenced, blank := false, true
	for i, s := range strings.Split(text, "\n") {
		info, fence := strings.CutPrefix(strings.TrimSpace(s), "```") // also in a list
		indented := strings.HasPrefix(s, "    ") && (blank || len(p.blocks) > 0 && p.blocks[len(p.blocks)-1].info == "indented")
		switch {
		case fence && !fenced:
			p.blocks = append(p.blocks, block{n: i + 1, info: strings.TrimSpace(info), indent: s[:strings.Index(s, "`")]})
			fenced = true
		case fence:
			fenced = false
		case fenced:
			last := &p.blocks[len(p.blocks)-1]
			last.lines = append(last.lines, strings.TrimPrefix(s, last.indent))
		case indented && blank:
			p.blocks = append(p.blocks, block{n: i + 1, info: "indented", lines: []string{strings.TrimSpace(s)}})
		case indented:
			last := &p.blocks[len(p.blocks)-1]
			last.lines = append(last.lines, strings.TrimSpace(s))
		default:
			p.text = append(p.text, line{i + 1, s})
		}
		blank = strings.TrimSpace(s) == ""
	}
	return p
}

var (
	headings = regexp.MustCompile(`^(#+) (.*)`)
	links    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	code     = regexp.MustCompile("`([^`]+)`")
	unlinked = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchor is what a heading is linked by.
func anchor(heading string) string {
	return strings.ReplaceAll(unlinked.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

// TestDocsLinks follows every link to a file, and to a heading of it. Links to other sites are only parsed.
func TestDocsLinks(t *testing.T) {
	all := pages(t)
	anchors := map[string]map[string]bool{}
	for _, p := range all {
		anchors[p.path] = map[string]bool{}
		for _, l := range p.text {
			if m := headings.FindStringSubmatch(l.text); m != nil {
				anchors[p.path][anchor(m[2])] = true
			}
		}
	}
	n := 0
	for _, p := range all {
		for _, l := range p.text {
			for _, m := range links.FindAllStringSubmatch(code.ReplaceAllString(l.text, ""), -1) {
				n++
				u, err := url.Parse(m[1])
				if err != nil || u.Scheme != "" {
					require.True(t, err == nil && u.Host != "", "%s:%d: %s is no address", p.path, l.n, m[1])
					continue
				}
				file := p.path
				if u.Path != "" {
					file = filepath.ToSlash(filepath.Join(filepath.Dir(p.path), u.Path))
				}
				if _, err := os.Stat(filepath.Join("..", file)); err != nil {
					t.Errorf("%s:%d links to %s, which isn't there", p.path, l.n, m[1])
				} else if u.Fragment != "" && !anchors[file][u.Fragment] {
					t.Errorf("%s:%d links to %s: no such heading", p.path, l.n, m[1])
				}
			}
		}
	}
	require.Greater(t, n, 50)
}

// TestDocsPictures: each picture that a page shows is made by .ci/screenshots, or is a curve of bench/compare.
func TestDocsPictures(t *testing.T) {
	script, err := os.ReadFile("../.ci/screenshots")
	require.NoError(t, err)
	plots, err := os.ReadFile("compare/csv.go")
	require.NoError(t, err)
	shown, n := regexp.MustCompile(`!\[[^\]]*\]\(([^)]+)\)`), 0
	for _, p := range pages(t) {
		for _, l := range p.text {
			for _, m := range shown.FindAllStringSubmatch(l.text, -1) {
				n++
				file := path.Join(path.Dir(p.path), m[1])
				made := regexp.MustCompile(`[ /=]` + regexp.QuoteMeta(file) + `\b`).Match(script)
				curve := strings.TrimSuffix(strings.TrimPrefix(file, "bench/"), ".png")
				if !made && !bytes.Contains(plots, []byte(`{"`+curve+`", "`)) {
					t.Errorf("%s:%d: no script makes %s", p.path, l.n, file)
				}
			}
		}
	}
	require.Greater(t, n, 5)
}

// TestDocsModules: each nested module has a page with a command, and is in the list of packages, unless only this module's own work needs it.
func TestDocsModules(t *testing.T) {
	list, err := os.ReadFile("../examples/guide/PACKAGES.md")
	require.NoError(t, err)
	n := 0
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		dir, _ := filepath.Rel("..", filepath.Dir(path))
		if dir = filepath.ToSlash(dir); err != nil || d.Name() != "go.mod" || dir == "." {
			return err
		}
		n++
		page, err := os.ReadFile(filepath.Join("..", dir, "README.md"))
		if err != nil || !strings.Contains(string(page), "cd "+dir+" && go ") && !strings.Contains(string(page), "cd "+dir+"\n") {
			t.Errorf("%s needs a README.md with a command: cd %s && go test ./...", dir, dir)
		}
		own := regexp.MustCompile(`^(bench|examples)/|/browser$|/conformance$`).MatchString(dir)
		if !own && !strings.Contains(string(list), "`"+dir+"`") {
			t.Errorf("examples/guide/PACKAGES.md lacks %s", dir)
		}
		return nil
	}))
	require.Greater(t, n, 10)
}

// find is where piece stands in lines, from a line on; -1 for nowhere.
func find(lines, piece []string, from int) int {
	for i := from; i+len(piece) <= len(lines); i++ {
		if slices.Equal(lines[i:i+len(piece)], piece) {
			return i
		}
	}
	return -1
}

// missing is the first piece of a quote that isn't in the file's lines where it should be, or "". Lines "..." in a quote
// stand for others.
func missing(file, quoted []string) string {
	from := 0
	for _, piece := range strings.Split(strings.Join(quoted, "\n"), "\n...\n") {
		p := strings.Split(piece, "\n")
		at := find(file, p, from)
		if at < 0 {
			return piece
		}
		from = at + len(p)
	}
	return ""
}

func trimmed(lines []string) (out []string) {
	for _, s := range lines {
		out = append(out, strings.TrimSpace(s))
	}
	return out
}

// TestDocsQuotes: Go code in a page is a quote of a file that is built or tested, named behind the fence. The guide quotes each of its steps.
func TestDocsQuotes(t *testing.T) {
	quoted := map[string]int{}
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			file, isGo := strings.CutPrefix(b.info, "go")
			if !isGo {
				continue
			}
			file = strings.TrimSpace(file)
			require.True(t, strings.HasSuffix(file, ".go"), "%s:%d: a block of Go code names its file: ```go 1-echo/main.go", p.path, b.n)
			source, err := os.ReadFile(filepath.Join("..", filepath.Dir(p.path), file))
			require.NoError(t, err, "%s:%d", p.path, b.n)
			quoted[filepath.ToSlash(filepath.Join(filepath.Dir(p.path), filepath.Dir(file)))]++
			require.Empty(t, missing(trimmed(strings.Split(string(source), "\n")), trimmed(b.lines)), "%s:%d: not in %s", p.path, b.n, file)
		}
	}
	steps, err := filepath.Glob("../examples/guide/[0-9]-*")
	require.NoError(t, err)
	require.Len(t, steps, 7)
	for _, dir := range steps {
		require.NotZero(t, quoted[filepath.ToSlash(dir)[3:]], "the guide quotes nothing of %s", dir)
	}
}

// TestDocsMissing is a test of the comparison itself.
func TestDocsMissing(t *testing.T) {
	file := []string{"a", "b", "c", "d"}
	require.Empty(t, missing(file, []string{"b", "c"}))
	require.Empty(t, missing(file, []string{"a", "...", "c", "d"}))
	require.Equal(t, "c\nb", missing(file, []string{"c", "b"}))
	require.Equal(t, "a", missing(file, []string{"c", "...", "a"}))
}

// command is one that a page or a program's comment tells to run.
type command struct {
	where string
	dir   string // from the root: where it is run
	text  string
}

// begins reports whether code is a command.
func begins(s string) bool {
	word, _, more := strings.Cut(s, " ")
	switch strings.TrimLeft(word, "(") {
	case "go":
		verb, _, _ := strings.Cut(s[strings.Index(s, " ")+1:], " ")
		return more && slices.Contains([]string{"run", "test", "build", "install", "get", "vet", "doc", "generate", "tool", "mod"}, verb)
	case "cd":
		return more
	}
	return strings.HasPrefix(s, ".ci/")
}

// moduleOf is the folder of the module that a file is in: its commands are run there.
func moduleOf(path string) string {
	for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join("..", dir, "go.mod")); err == nil {
			return dir
		}
	}
	return ""
}

// commands is all of them: of the pages' blocks, of code in their text, and of the first comments of programs.
func commands(t *testing.T) (all []command) {
	add := func(where, dir, text string) {
		if text, _, _ = strings.Cut(text, " #"); !strings.Contains(text, "   ") {
			all = append(all, command{where, dir, strings.TrimSpace(text)})
		} else {
			before, _, _ := strings.Cut(text, "   ")
			all = append(all, command{where, dir, strings.TrimSpace(before)})
		}
	}
	for _, p := range pages(t) {
		home := moduleOf(p.path)
		for _, b := range p.blocks {
			dir := home
			for i, s := range b.lines {
				if strings.HasPrefix(s, "cd ") && !strings.Contains(s, "&&") { // for the lines below it
					dir = strings.TrimSpace(strings.TrimPrefix(s, "cd "))
				} else if begins(s) {
					add(fmt.Sprintf("%s:%d", p.path, b.n+1+i), dir, s)
				}
			}
		}
		for _, l := range p.text {
			for _, m := range code.FindAllStringSubmatch(l.text, -1) {
				if begins(m[1]) {
					add(fmt.Sprintf("%s:%d", p.path, l.n), home, m[1])
				}
			}
		}
	}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.Contains(filepath.ToSlash(path), "/testdata/") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil || file.Doc == nil || file.Name.Name != "main" {
			return err
		}
		rel, _ := filepath.Rel("..", path)
		for _, s := range strings.Split(file.Doc.Text(), "\n") {
			if s, indented := strings.CutPrefix(s, "\t"); indented && begins(s) {
				add(filepath.ToSlash(rel), moduleOf(rel), s)
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, len(all), 100)
	return all
}

// notRun is programs that pages name and .ci/programs doesn't run, and why.
var notRun = map[string]string{
	"examples/badnetwork":              "a proxy, which ends when it is interrupted; its package netconn/udp/proxy is tested",
	"examples/unrealecho":              "one end of two; its echo_test.go runs both",
	"examples/netcodeecho":             "one end of two; its echo_test.go runs both",
	"examples/ebitengine":              "opens a window; its screentest runs it on a screen of its own",
	"examples/browser":                 "needs a browser; its main_test.go runs -check where there is a Chromium",
	"examples/lobby/nat":               "needs root and network namespaces; its main_test.go runs it where they are allowed",
	"bench/compare":                    "half an hour; its tests run a short form",
	"bench/plot":                       "draws figures of bench/compare",
	"bench/web":                        "needs a browser; its main_test.go runs it where there is a Chromium",
	"bench/web/pause":                  "5 minutes, and needs root and network namespaces",
	"bench/capture2test":               "needs a capture; its tests make one",
	"bench/mutants":                    "hours; bench/swarm/mutate is tested",
	"actorrep/gen":                     "go generate runs it; its tests compare the result",
	"actorrep/cmd/bunchnet-schema":     "needs two builds of a game; its tests make them",
	"bench/swarm/mutate":               "an hour and a half",
	"netconn/nettrace/dissector/gen":   "go generate runs it; a test compares the result",
	"netconn/nettrace/pcapng/cmd/pcap": "needs a capture; its tests make one",
}

// TestDocsCommands checks every command of a page and of a program's first comment: its folder, program and packages exist, its flags do and take such
// values, its -run names tests. .ci/programs runs each program that has a verdict; notRun has the others with their reason.
func TestDocsCommands(t *testing.T) {
	programs, err := os.ReadFile("../.ci/programs")
	require.NoError(t, err)
	ran := map[string]bool{}
	for _, s := range strings.Split(string(programs), "\n") {
		if f := strings.Fields(s); len(f) > 2 && f[0] != "#" {
			ran[filepath.ToSlash(filepath.Join(f[1], f[2]))] = true
			if err := checkCommand(f[1], append([]string{"go", "run"}, f[2:]...), nil); err != nil {
				t.Errorf(".ci/programs: %s: %v", s, err)
			}
		}
	}
	for _, c := range commands(t) {
		err := checkLine(c.dir, c.text, ran)
		if err != nil && c.dir != "" && checkLine("", c.text, ran) == nil {
			err = nil // in the root
		}
		if err != nil {
			t.Errorf("%s: %s: %v", c.where, c.text, err)
		}
	}
}

// checkLine checks commands with && between them.
func checkLine(dir, line string, ran map[string]bool) error {
	for text := range strings.SplitSeq(strings.Trim(line, "()"), "&&") {
		words := strings.Fields(text)
		for len(words) > 0 && regexp.MustCompile(`^[A-Z_0-9]+=`).MatchString(words[0]) {
			words = words[1:] // the environment
		}
		if len(words) == 2 && words[0] == "cd" {
			dir = filepath.Join(dir, words[1])
			if _, err := os.Stat(filepath.Join("..", dir)); err != nil {
				return err
			}
			continue
		}
		if err := checkCommand(dir, words, ran); err != nil {
			return err
		}
	}
	return nil
}

// checkCommand checks one that is run in a folder. Programs must be among those that are run, unless ran is nil.
func checkCommand(dir string, words []string, ran map[string]bool) error {
	if len(words) == 0 {
		return nil
	}
	if strings.HasPrefix(words[0], ".ci/") {
		_, err := os.Stat(filepath.Join("..", words[0]))
		return err
	}
	if end := slices.IndexFunc(words, func(w string) bool { return w == "|" || strings.HasPrefix(w, ">") || strings.HasPrefix(w, "2>") }); end >= 0 {
		words = words[:end]
	}
	if words[0] != "go" || len(words) < 2 {
		return nil
	}
	switch words[1] {
	case "run":
		rest := words[2:]
		for len(rest) > 0 && strings.HasPrefix(rest[0], "-") { // of go run itself
			if rest[0] == "-tags" || rest[0] == "-C" {
				rest = rest[1:]
			}
			rest = rest[1:]
		}
		if len(rest) == 0 {
			return fmt.Errorf("runs nothing")
		}
		if strings.HasSuffix(rest[0], ".go") {
			_, err := os.Stat(filepath.Join("..", dir, rest[0]))
			return err
		}
		if strings.Contains(rest[0], "NAME") || strings.Contains(rest[0], "...") {
			return nil // any of a kind
		}
		if strings.Contains(rest[0], "@") {
			return nil // another module's
		}
		pkg, outside := strings.CutPrefix(rest[0], module)
		if !outside {
			pkg = filepath.ToSlash(filepath.Join(dir, rest[0]))
		}
		flags, main, err := flagsOf(pkg)
		if err != nil {
			return err
		}
		if !main {
			return fmt.Errorf("%s is no program", pkg)
		}
		if ran != nil && !ran[pkg] && notRun[pkg] == "" {
			return fmt.Errorf("%s is neither in .ci/programs nor among those with a reason", pkg)
		}
		return checkFlags(flags, rest[1:])
	case "test":
		return checkTest(dir, words[2:])
	case "build", "install", "vet", "doc", "generate":
		for _, w := range words[2:] {
			if path, ok := strings.CutPrefix(w, "./"); ok && w != "./..." {
				if _, err := os.Stat(filepath.Join("..", dir, strings.TrimSuffix(path, "/..."))); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// flagsOf is the flags that a package's files define, with their kind, and whether it is a program.
func flagsOf(pkg string) (flags map[string]string, main bool, err error) {
	files, err := filepath.Glob(filepath.Join("..", pkg, "*.go"))
	if err != nil || len(files) == 0 {
		return nil, false, fmt.Errorf("no package %s", pkg)
	}
	flags = map[string]string{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return nil, false, err
		}
		main = main || file.Name.Name == "main"
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			kind := strings.TrimSuffix(sel.Sel.Name, "Var")
			if !slices.Contains([]string{"Bool", "Int", "Int64", "Uint", "Uint64", "Float64", "Duration", "String", "Func", "BoolFunc", "Text", ""}, kind) {
				return true
			}
			for _, arg := range call.Args[:min(2, len(call.Args))] {
				if lit, ok := arg.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					name, _ := strconv.Unquote(lit.Value)
					flags[name] = kind
					break
				}
			}
			return true
		})
	}
	return flags, main, nil
}

// TestDocsArguments: a program says so of what isn't a flag: behind a word without its dash all flags are ignored, and by a program without flags all of them.
func TestDocsArguments(t *testing.T) {
	programs := 0
	for _, dir := range []string{"bench", "examples"} {
		require.NoError(t, filepath.WalkDir(filepath.Join("..", dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			if d.Name() == "testdata" {
				return fs.SkipDir
			}
			files, _ := filepath.Glob(filepath.Join(path, "*.go")) // the pattern is fine
			var all []byte
			for _, f := range files {
				b, err := os.ReadFile(f)
				require.NoError(t, err)
				if !strings.HasSuffix(f, "_test.go") && !bytes.HasPrefix(b, []byte("//go:build js")) {
					all = append(all, b...)
				}
			}
			if bytes.Contains(all, []byte("\npackage main\n")) {
				programs++
				require.Regexp(t, `\b(flag|f)\.NArg\(|len\(os\.Args\) > 1`, string(all), path)
			}
			return nil
		}))
	}
	require.Greater(t, programs, 45)
}

// checkFlags checks that flags exist and take their values.
func checkFlags(flags map[string]string, args []string) error {
	for i := 0; i < len(args) && strings.HasPrefix(args[i], "-"); i++ {
		name, value, given := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		kind, ok := flags[name]
		if !ok {
			return fmt.Errorf("there is no flag -%s", name)
		}
		if kind == "Bool" || kind == "BoolFunc" {
			continue
		}
		if !given {
			if i++; i == len(args) {
				return fmt.Errorf("-%s needs a value", name)
			}
			value = args[i]
		}
		var err error
		switch kind {
		case "Int", "Int64":
			_, err = strconv.ParseInt(value, 0, 64)
		case "Uint", "Uint64":
			_, err = strconv.ParseUint(value, 0, 64)
		case "Float64":
			_, err = strconv.ParseFloat(value, 64)
		case "Duration":
			_, err = time.ParseDuration(value)
		}
		if err != nil && !regexp.MustCompile(`^[A-Z]+$|^\$`).MatchString(value) { // N, FILE or $(...) stand for one
			return fmt.Errorf("-%s: %w", name, err)
		}
	}
	return nil
}

// tested is what the tests of a folder are called, and the flags that they define, with their kinds.
type tested struct {
	names []string
	flags map[string]string
}

// readTests remembers testsOf: many commands are about the same folders.
var readTests = map[string]*tested{}

var (
	testFuncs = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz|Example)\w*)\(`)
	testFlags = regexp.MustCompile(`flag\.(\w+)\("([^"]+)"`)
)

// testsOf is the tests in a folder, or in all folders below it.
func testsOf(root string, every bool) (*tested, error) {
	key := fmt.Sprint(root, every)
	if all := readTests[key]; all != nil {
		return all, nil
	}
	all := &tested{flags: map[string]string{}}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (!every || strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		b, err := os.ReadFile(path)
		for _, m := range testFuncs.FindAllSubmatch(b, -1) {
			all.names = append(all.names, string(m[1]))
		}
		for _, m := range testFlags.FindAllSubmatch(b, -1) {
			all.flags[string(m[2])] = string(m[1])
		}
		return err
	})
	readTests[key] = all
	return all, err
}

// checkTest checks the packages and the patterns of go test.
func checkTest(dir string, args []string) error {
	var patterns []string
	var folders []string
	own := map[string]string{} // flags of the tests' own, and their values
	for i := 0; i < len(args); i++ {
		a := strings.Trim(args[i], "'\"")
		name, value, given := strings.Cut(a, "=")
		switch {
		case !strings.HasPrefix(a, "-"):
			folders = append(folders, a)
		case name == "-run" || name == "-bench" || name == "-fuzz" || name == "-skip":
			if !given {
				if i++; i == len(args) {
					return fmt.Errorf("%s needs a value", name)
				}
				value = strings.Trim(args[i], "'\"")
			}
			if value != "xxx" && value != "^$" && value != "NONE" { // none, on purpose
				patterns = append(patterns, value)
			}
		case slices.Contains([]string{"-count", "-tags", "-timeout", "-benchtime", "-cpu", "-gcflags", "-fuzztime", "-outputdir", "-cpuprofile"}, name):
			if !given {
				i++
			}
		case slices.Contains([]string{"-v", "-short", "-race", "-benchmem", "-json", "-artifacts"}, name):
		default:
			name = strings.TrimLeft(name, "-")
			if !given && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") && !strings.HasPrefix(args[i+1], ".") {
				i++
				value = args[i]
			}
			own[name] = value
		}
	}
	if len(folders) == 0 {
		folders = []string{"."}
	}
	var names []string
	flags := map[string]string{}
	for _, f := range folders {
		if strings.HasPrefix(f, "./mygame") {
			return nil // the reader's
		}
		root, every := strings.CutSuffix(f, "...")
		all, err := testsOf(filepath.Join("..", dir, root), every)
		if err != nil {
			return err
		}
		names = append(names, all.names...)
		maps.Copy(flags, all.flags)
	}
	for _, p := range patterns {
		first, _, _ := strings.Cut(p, "/")
		re, err := regexp.Compile(first)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(names, re.MatchString) {
			return fmt.Errorf("%s names no test", p)
		}
	}
	for f, value := range own {
		if err := checkFlags(flags, []string{"-" + f + "=" + value}); err != nil {
			return err
		}
	}
	return nil
}

var (
	figure = regexp.MustCompile(`\d ?(ns|µs|us|ms|s|%|kB/s|MB/s|KB|kB|MB|MiB|Mbit/s|B)\b`)
	source = regexp.MustCompile("`[^`]*(go (run|test) |\\.ci/)[^`]*`|\\b(Test|Benchmark)[A-Z]\\w+|(?m)^ *\\(?(cd .*&& )?go (run|test) ")
)

// notMeasured is pages, or sections of pages, whose figures nobody measured, and what they are.
var notMeasured = map[string]string{
	"CHANGELOG.md":                                                 "what was, when it was changed",
	"netconn/MUTANTS.md":                                           "code",
	"bench/compare/README.md#Peers":                                "buffers and windows that the peers are given",
	"examples/guide/TRAVEL.md#When something fails":                "flags",
	"examples/guide/README.md#2. Messages: types instead of bytes": "delays that the step's program has by itself",
	"netconn/PROMISES.md#What differs from the articles":           "the protocols' own",
	"netconn/WIRE.md#Limits, and what meets bytes that break them": "limits of the wire",
}

// TestDocsFigures: where a page has figures, it names what prints them: in the same section, in the one that it is a part of, or, for all of the page, at its
// beginning ("All figures are of ...").
func TestDocsFigures(t *testing.T) {
	n, used := 0, map[string]bool{}
	for _, p := range pages(t) {
		if notMeasured[p.path] != "" {
			used[p.path] = true
			continue
		}
		var whole, above string // the page's beginning, if it is about all figures; the section of level 2 over the present one
		var name, body string
		end := func(level int) {
			n++
			switch {
			case level < 2 && strings.Contains(body, "All figures"):
				whole = body
			case level == 2:
				above = body
			}
			if level == 0 || !figure.MatchString(body) || source.MatchString(body) || source.MatchString(above) || source.MatchString(whole) {
				return
			}
			if key := p.path + "#" + name; notMeasured[key] != "" {
				used[key] = true
				return
			}
			t.Errorf("%s: %q has figures and doesn't name the command that prints them", p.path, name)
		}
		b, err := os.ReadFile(filepath.Join("..", p.path))
		require.NoError(t, err)
		level, fenced := 0, false
		for s := range strings.SplitSeq(string(b), "\n") {
			fenced = fenced != strings.HasPrefix(strings.TrimSpace(s), "```")
			if m := headings.FindStringSubmatch(s); m != nil && !fenced {
				end(level)
				level, name, body = len(m[1]), m[2], ""
				continue
			}
			body += s + "\n"
		}
		end(level)
	}
	require.Greater(t, n, 120)
	for key := range notMeasured {
		if !used[key] {
			t.Errorf("%s isn't there, has no figures, or names what prints them", key)
		}
	}
}

// TestDocsCompared: each claim in the comparison with others has its source, or a command that shows it.
func TestDocsCompared(t *testing.T) {
	b, err := os.ReadFile("../examples/guide/COMPARED.md")
	require.NoError(t, err)
	rows, head := 0, true
	for s := range strings.SplitSeq(string(b), "\n") {
		if !strings.HasPrefix(s, "| ") || strings.HasPrefix(s, "|-") {
			head = true
			continue
		}
		if head {
			head = false
			continue
		}
		if rows++; !regexp.MustCompile(`\]\(https://\S+\) \|$|\| ` + "`(go|cd) .*` \\|$").MatchString(s) {
			t.Errorf("COMPARED.md claims without a source or a command: %s", s)
		}
	}
	require.Greater(t, rows, 15)
}
