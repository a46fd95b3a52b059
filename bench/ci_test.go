package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLogOfCI: what .ci/testlog.go prints has all that a failing test said, also of one that never came to an end; and what was skipped
// is in a file, and what passed in another.
func TestLogOfCI(t *testing.T) {
	dir := t.TempDir()
	skips, passed := filepath.Join(dir, "skips"), filepath.Join(dir, "passed")
	cmd := exec.Command("go", "run", filepath.Join("..", ".ci", "testlog.go"), "-skips", skips, "-passed", passed)
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
	list, err = os.ReadFile(passed)
	require.NoError(t, err)
	require.Equal(t, "p TestFine\n", string(list))
}

// TestSkipsOfCI: what one step of .ci/run left out and another ran is no skip.
func TestSkipsOfCI(t *testing.T) {
	if _, err := exec.LookPath("awk"); err != nil {
		t.Skip("no awk here: apt-get install mawk")
	}
	dir := t.TempDir()
	passed, skips := filepath.Join(dir, "passed"), filepath.Join(dir, "skips")
	require.NoError(t, os.WriteFile(passed, []byte("p TestBuilds\np TestParts/a:b\n"), 0o600))
	require.NoError(t, os.WriteFile(skips, []byte("short tests on 386: p TestBuilds: builds a program\n"+
		"short tests on 386: q TestBuilds: builds a program\n"+
		"short tests on 386: p TestParts/a:b: for machines: of 64 bits\n"+
		"programs that tests need: apt-get install chromium\n"), 0o600))
	out, err := exec.Command("awk", "-f", filepath.Join("..", ".ci", "skips.awk"), passed, skips).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "  short tests on 386: q TestBuilds: builds a program\n  programs that tests need: apt-get install chromium\n", string(out))
	require.NoError(t, os.WriteFile(passed, nil, 0o600))
	out, err = exec.Command("awk", "-f", filepath.Join("..", ".ci", "skips.awk"), passed, skips).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, 4, strings.Count(string(out), "\n"), "nothing passed:\n%s", out)
}

// TestFuzzOfOneFile: .ci/fuzz finds the targets of a folder that has a single test file, and says when there are none.
func TestFuzzOfOneFile(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash here: apt-get install bash")
	}
	bin := t.TempDir()
	fake := "#!/bin/bash\nwhile [ $# != 0 ]; do [ \"$1\" != -o ] || { printf '#!/bin/sh\\necho execs: 7' >\"$2\"; chmod +x \"$2\"; }; shift; done\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "go"), []byte(fake), 0o700))
	fuzz := func(only string) (string, error) {
		cmd := exec.Command("bash", filepath.Join("..", ".ci", "fuzz"), "1s", only)
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := fuzz("channel/message/protomsg/")
	require.NoError(t, err, out)
	require.Regexp(t, `(?m)^channel/message/protomsg +Fuzz\w+ +execs: 7$`, out)
	out, err = fuzz("examples/tanks")
	require.Error(t, err)
	require.Contains(t, out, "no fuzz target")
}

// TestKilledCI: a run of .ci/run that is ended from outside says that it failed.
func TestKilledCI(t *testing.T) {
	for _, name := range []string{"bash", "setsid"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("no " + name + " here: apt-get install bash util-linux")
		}
	}
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\nkill -TERM 0\n"), 0o700)) // the first program that it runs kills all of the group
	cmd := exec.Command("setsid", "-w", "bash", filepath.Join("..", ".ci", "run"))
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "%s", out)
	require.Equal(t, 143, exit.ExitCode(), "%s", out)
	require.Contains(t, string(out), "FAIL")
	require.NotContains(t, string(out), "all passed")
}

// TestKilledSteady: nothing of .ci/steady goes on when it is killed, so that no busy loop takes a core for ever.
func TestKilledSteady(t *testing.T) {
	for _, name := range []string{"bash", "setsid"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("no " + name + " here: apt-get install bash util-linux")
		}
	}
	bin := t.TempDir()
	runs := filepath.Join(bin, "runs")
	require.NoError(t, os.WriteFile(filepath.Join(bin, "go"), []byte("#!/bin/sh\nprintf '#!/bin/sh\\ntouch "+runs+"\\n' >$3\nchmod +x $3\n"), 0o700)) // go build -o FILE
	cmd := exec.Command("setsid", "bash", filepath.Join("..", ".ci", "steady"), "-b", "-n", "1", "1-echo")
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "TMPDIR="+bin)
	require.NoError(t, cmd.Start())
	waits := func(why string, done func() bool) {
		for begin := time.Now(); !done(); time.Sleep(5 * time.Millisecond) {
			if time.Since(begin) > time.Minute {
				_ = exec.Command("bash", "-c", "kill -9 -- -"+strconv.Itoa(cmd.Process.Pid)).Run()
				require.Fail(t, why)
			}
		}
	}
	waits("the program never ran", func() bool { _, err := os.Stat(runs); return err == nil })
	_ = cmd.Process.Kill() // it may have ended
	_ = cmd.Wait()
	group := "kill -0 -- -" + strconv.Itoa(cmd.Process.Pid)
	waits("a busy loop goes on", func() bool { return exec.Command("bash", "-c", group).Run() != nil })
}
