package bench

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPromises checks that what netconn/PROMISES.md says checks a promise is there: tests, fuzz targets and commands.
func TestPromises(t *testing.T) {
	page, err := os.ReadFile("../netconn/PROMISES.md")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		tests.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`\b(Test|Fuzz)[A-Z]\w+`).FindAllString(string(page), -1)
	if len(names) < 50 {
		t.Fatalf("only %d tests are named", len(names))
	}
	for _, name := range names {
		if !strings.Contains(tests.String(), "func "+name+"(") {
			t.Errorf("PROMISES.md names %s, which isn't there", name)
		}
	}
	for _, m := range regexp.MustCompile(`go run \./([a-z/]+)`).FindAllStringSubmatch(string(page), -1) {
		if _, err := os.Stat(filepath.Join("..", m[1], "main.go")); err != nil {
			t.Errorf("PROMISES.md names a command: %v", err)
		}
	}
}
