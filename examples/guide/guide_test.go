// Package guide tests that the guide says what its programs do: every quoted piece of code stands in the folder it is
// said to be from.
package guide

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// quote is a fenced block of the guide: the file named behind "go", and its lines without their indentation.
type quote struct {
	file  string
	lines []string
}

func quotes(t *testing.T, path string) (all []quote) {
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	var q *quote
	for _, line := range strings.Split(string(b), "\n") {
		file, opens := strings.CutPrefix(line, "```go")
		switch {
		case q == nil && opens:
			require.NotEmpty(t, strings.TrimSpace(file), "%s: a block of Go code needs its file: ```go 1-echo/main.go", path)
			q = &quote{file: strings.TrimSpace(file)}
		case q != nil && line == "```":
			all, q = append(all, *q), nil
		case q != nil:
			q.lines = append(q.lines, strings.TrimSpace(line))
		}
	}
	require.Nil(t, q, "%s ends within a block", path)
	return all
}

// find is where piece stands in lines, from a line on; -1 for nowhere.
func find(lines, piece []string, from int) int {
	for i := from; i+len(piece) <= len(lines); i++ {
		same := true
		for j := range piece {
			same = same && lines[i+j] == piece[j]
		}
		if same {
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

func trimmed(t *testing.T, path string) []string {
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := strings.Split(string(b), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}

func TestQuotes(t *testing.T) {
	steps, err := filepath.Glob("[0-9]-*")
	require.NoError(t, err)
	require.Len(t, steps, 6)
	quoted := map[string]int{}
	for _, q := range quotes(t, "README.md") {
		quoted[filepath.Dir(q.file)]++
		require.Empty(t, missing(trimmed(t, q.file), q.lines), "not in %s", q.file)
	}
	for _, dir := range steps {
		require.NotZero(t, quoted[dir], "the guide quotes nothing of %s", dir)
	}
}

// TestLengths keeps the steps short enough to be read.
func TestLengths(t *testing.T) {
	mains, err := filepath.Glob("[0-9]-*/main.go")
	require.NoError(t, err)
	for _, path := range mains {
		n := len(trimmed(t, path))
		require.True(t, n >= 60 && n <= 165, "%s has %d lines", path, n)
	}
}

// TestMissing is a test of the comparison itself.
func TestMissing(t *testing.T) {
	file := []string{"a", "b", "c", "d"}
	require.Empty(t, missing(file, []string{"b", "c"}))
	require.Empty(t, missing(file, []string{"a", "...", "c", "d"}))
	require.Equal(t, "c\nb", missing(file, []string{"c", "b"}))
	require.Equal(t, "a", missing(file, []string{"c", "...", "a"}))
}

// TestLinks follows the links of the guide's pages.
func TestLinks(t *testing.T) {
	for _, page := range []string{"README.md", "COMING-FROM.md"} {
		b, err := os.ReadFile(page)
		require.NoError(t, err)
		links := regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(string(b), -1)
		require.NotEmpty(t, links, page)
		for _, l := range links {
			_, err := os.Stat(filepath.FromSlash(l[1]))
			require.NoError(t, err, "%s links to %s", page, l[1])
		}
	}
}
