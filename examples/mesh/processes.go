package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// A process is this program again, with a role. What it is told comes by its standard input, a line of JSON each; what it tells goes by its standard output. It ends when its input does, so that nothing is
// left over when the first process dies.

// roleEnv is the environment variable that names the role.
const roleEnv = "MESH_ROLE"

type process struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	done chan struct{} // closed when it has ended

	mu   sync.Mutex
	said []byte // the end of its standard error
}

// startProcess starts a process. heard is called with each line that it tells, in a goroutine.
func startProcess(name, role string, config any, heard func(line []byte)) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{name: name, cmd: exec.Command(self), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), roleEnv+"="+role)
	p.cmd.SysProcAttr = apart()
	p.cmd.Stderr = p
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.done)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 4<<20)
		for lines.Scan() {
			heard(lines.Bytes())
		}
		_, _ = io.Copy(io.Discard, out) // after a line that is too long
		_ = p.cmd.Wait()                // how it ended is in ProcessState
	}()
	return p, p.tell(config)
}

// Write keeps the end of what the process says on its standard error.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = append(p.said, b...)
	p.said = p.said[max(0, len(p.said)-4096):]
	return len(b), nil
}

// tell sends a process a line.
func (p *process) tell(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = p.in.Write(append(b, '\n'))
	return err
}

// kill ends it at once, as kill -9.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.done
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// why says how it ended.
func (p *process) why() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("%s has ended: %v %s", p.name, p.cmd.ProcessState, p.said)
}

// orders is what a process is told: its configuration first.
func orders[T any](config any) (<-chan T, error) {
	in := json.NewDecoder(os.Stdin)
	if err := in.Decode(config); err != nil {
		return nil, err
	}
	c := make(chan T, 64)
	go func() {
		defer close(c)
		for {
			var v T
			if in.Decode(&v) != nil {
				return
			}
			c <- v
		}
	}()
	return c, nil
}

// told writes lines to the first process.
type told struct {
	out *json.Encoder
}

var errParent = errors.New("the first process is gone")

func (t told) say(v any) error {
	if t.out.Encode(v) != nil {
		return errParent
	}
	return nil
}

// patience is how long the program waits for what must happen before it gives up. Nothing is measured by it.
const patience = 2 * time.Minute
