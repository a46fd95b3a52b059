package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLogOfCI: what .ci/testlog.go prints has all that a failing test said, also of one that never came to an end; and what was skipped
// is in the file.
func TestLogOfCI(t *testing.T) {
	skips := filepath.Join(t.TempDir(), "skips")
	cmd := exec.Command("go", "run", filepath.Join("..", ".ci", "testlog.go"), "-skips", skips)
	cmd.Stdin = strings.NewReader(`
{"Action":"run","Package":"p","Test":"TestFine"}
{"Action":"output","Package":"p","Test":"TestFine","Output":"what went well\n"}
{"Action":"pass","Package":"p","Test":"TestFine"}
{"Action":"output","Package":"p","Test":"TestSkipped","Output":"    x_test.go:7: no foo; apt-get install foo\n"}
{"Action":"skip","Package":"p","Test":"TestSkipped"}
{"Action":"output","Package":"p","Test":"TestHangs","Output":"panic: test timed out\n"}
{"Action":"output","Package":"p","Output":"FAIL p\n"}
{"Action":"fail","Package":"p","Elapsed":5}
{"Action":"output","Package":"pp","Test":"TestWrong","Output":"what went wrong\n"}
{"Action":"fail","Package":"pp","Test":"TestWrong"}
{"Action":"fail","Package":"pp","Elapsed":1}
`)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, want := range []string{"panic: test timed out\n", "fail p 5.0 s\n", "what went wrong\n", "fail pp 1.0 s\n"} {
		require.Equal(t, 1, strings.Count(string(out), want), "%q in\n%s", want, out)
	}
	require.NotContains(t, string(out), "what went well")
	list, err := os.ReadFile(skips)
	require.NoError(t, err)
	require.Equal(t, "p TestSkipped: no foo; apt-get install foo\n", string(list))
}
