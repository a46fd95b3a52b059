package bench

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/bunchnet/bunchnet/"

// floors is who stands on whom: a package may import those of lower floors only, but for the same-floor
// imports named in siblings. What isn't listed is on the top floor.
var floors = map[string]int{
	"bunch/bitio": 0, "history/seqnum": 0, "history/replay": 0, "netconn/nettrace": 0, "netconn/netsim": 0, "netconn/udp": 0, "netconn/internal/addrgroup": 0, "netconn/internal/ratelimit": 1, "netconn/internal/readwait": -1, "netconn/internal/mailbox": 1, "netconn/internal/origins": 0, "netconn/internal/redirects": 0, "netconn/internal/refusals": 0, "netconn/internal/sealing": 0, "netconn/internal/setting": -1, "netconn/internal/slots": 0,
	"history": 1, "history/ring": 1, "bunch/quantize": 1, "netconn/handler": 1, "netconn/handler/coding": 1, "netconn/congestion": 1,
	"bunch": 2, "packetnotify": 2, "packetnotify/ackbits": 2, "netconn/handshake": 2, "netconn/netcode": 2, "netconn/salted": 2, "actorrep/netguid": 0, "actorrep/internal/wire": 1, "actorrep/internal/recording": 0, "actorrep/internal/bridge": 4,
	"channel": 3, "channel/control": 4, "channel/message": 4, "channel/lockstep": 4, "channel/lockstep/internal/wire": 0, "channel/lockstep/internal/clock": 0, "channel/lockstep/link": 3, "channel/lockstep/rollback": 5,
	"actorrep/layout": 3, "actorrep/fastarray": 4, "actorrep/hostile": 4, "actorrep/prediction": 3, "actorrep/rewind": 3, "actorrep/interpolation": 3, "actorrep/netclock": 2,
	"netconn": 5, "actorrep": 5,
	"netconn/driver": 6, "netconn/udp/proxy": 6, "netconn/udp/udptest": 1, "netconn/internal/drivertest": top, "netconn/internal/linklocal": 0, "netconn/netcode/tokenserver": 6, "actorrep/graph": 6, "actorrep/predict": 6, "actorrep/interp": 6, "actorrep/travel": 6, "actorrep/schema": 6, "actorrep/replay": 6, "actorrep/budgettest": 6, "actorrep/internal/numbers": 0, "actorrep/cmd/bunchnet-schema": top, "actorrep/gen": top, "actorrep/gen/internal/hot": top, "actorrep/internal/rig": top, "netconn/driver/stream": top, "netconn/driver/session": top, "netconn/web": top, "netconn/web/webtest": top, "netconn/ice": top, "netconn/ice/rendezvous": top, "actorrep/migrate": top, "actorrep/spectate": top, "netconn/driver/capture": top, "netconn/inspect": top, "netconn/nettrace/dissector": 0, "netconn/nettrace/dissector/gen": top,
	"netconn/kv": 0, "netconn/kv/kvsim": top,
}

// sockets is the packages that may use the net package, clocks and goroutines.
var sockets = map[string]bool{"actorrep/cmd/bunchnet-schema": true, "actorrep/gen": true, "netconn/udp": true, "netconn/udp/proxy": true, "netconn/udp/udptest": true, "netconn/internal/drivertest": true, "netconn/internal/linklocal": true, "netconn/driver": true, "netconn/inspect": true, "actorrep/flight": true, "netconn/driver/stream": true, "netconn/driver/capture": true, "netconn/nettrace/dissector/gen": true, "netconn/netcode/tokenserver": true, "netconn/internal/ratelimit": true, "netconn/internal/readwait": true, "netconn/internal/redirects": true, "netconn/internal/mailbox": true, "netconn/web": true, "netconn/web/webtest": true, "netconn/fleet/natskv": true, "netconn/fleet/natskv/embed": true, "netconn/fleet/placing": true, "netconn/fleet/process": true, "netconn/fleet/agones": true, "netconn/ice": true, "netconn/ice/rendezvous": true}

const top = 7

func floor(pkg string) int {
	if f, ok := floors[pkg]; ok {
		return f
	}
	return top
}

// goFiles calls f with every file of the module's own packages, tests and examples left out.
func goFiles(t *testing.T, f func(pkg, path string, file *ast.File, fset *token.FileSet)) {
	fset := token.NewFileSet()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel("..", path)
		rel = filepath.ToSlash(rel)
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && rel != "." || rel == "examples" || rel == "bench" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		f(filepath.ToSlash(filepath.Dir(rel)), rel, file, fset)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTopLevel: the module's folders are those that were agreed.
func TestTopLevel(t *testing.T) {
	all, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	agreed := []string{"actorrep", "bench", "bunch", "channel", "examples", "history", "netconn", "packetnotify"}
	for _, e := range all {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !slices.Contains(agreed, e.Name()) {
			t.Errorf("%s isn't one of the folders %v", e.Name(), agreed)
		}
	}
}

// TestFloors checks who imports whom: the order of the floors, and that below the driver
// there is no socket, clock, lock, goroutine or shared randomness.
func TestFloors(t *testing.T) {
	n := 0
	goFiles(t, func(pkg, path string, file *ast.File, fset *token.FileSet) {
		n++
		names := map[string]string{} // local name of an import: its path
		for _, imp := range file.Imports {
			target, _ := strconv.Unquote(imp.Path.Value)
			names[filepath.Base(target)] = target
			if ours, ok := strings.CutPrefix(target, module); ok && floor(ours) >= floor(pkg) && floor(pkg) < top {
				t.Errorf("%s imports %s: floor %d may import lower floors only, not %d", path, ours, floor(pkg), floor(ours))
			}
			for _, heavy := range []string{module + "netconn/web", module + "netconn/ice", "github.com/quic-go/", "github.com/coder/", "github.com/pion/"} {
				if !strings.HasPrefix(pkg, "netconn/web") && !strings.HasPrefix(pkg, "netconn/ice") && strings.HasPrefix(target, heavy) {
					t.Errorf("%s imports %s: what browsers and players behind routers need are modules of their own", path, target)
				}
			}
			if strings.HasPrefix(target, module+"netconn/fleet") && pkg != "netconn/fleet" && !strings.HasPrefix(pkg, "netconn/fleet/") || strings.HasPrefix(target, "github.com/nats-io/") && !strings.HasPrefix(pkg, "netconn/fleet/natskv") {
				t.Errorf("%s imports %s: a fleet, and NATS below it, is a module of its own", path, target)
			}
			if sockets[pkg] {
				continue
			}
			switch target {
			case "net", "net/http", "os", "sync", "sync/atomic", "math/rand":
				t.Errorf("%s imports %s: sockets, files, locks and shared randomness belong to the driver", path, target)
			}
		}
		if sockets[pkg] {
			return
		}
		ast.Inspect(file, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.GoStmt:
				t.Errorf("%v: a goroutine below the driver", fset.Position(node.Pos()))
			case *ast.SelectorExpr:
				x, ok := node.X.(*ast.Ident)
				if ok && names[x.Name] == "time" && (node.Sel.Name == "Now" || node.Sel.Name == "Since" || node.Sel.Name == "Sleep" || node.Sel.Name == "After") {
					t.Errorf("%v: time.%s below the driver; take now as an argument", fset.Position(node.Pos()), node.Sel.Name)
				}
			}
			return true
		})
	})
	if n < 50 {
		t.Fatalf("only %d files were looked at", n)
	}
}

// TestDocumented checks that every exported declaration says what it is.
func TestDocumented(t *testing.T) {
	goFiles(t, func(_, path string, file *ast.File, fset *token.FileSet) {
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) && !isHandlerMethod(d.Name.Name) {
					t.Errorf("%v: %s has no comment", fset.Position(d.Pos()), d.Name.Name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if ts, ok := s.(*ast.TypeSpec); ok && ts.Name.IsExported() && d.Doc == nil && ts.Doc == nil {
						t.Errorf("%v: %s has no comment", fset.Position(ts.Pos()), ts.Name.Name)
					}
				}
			}
		}
	})
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if index, ok := t.(*ast.IndexExpr); ok {
		t = index.X
	}
	id, ok := t.(*ast.Ident)
	return ok && id.IsExported()
}

// isHandlerMethod names methods that only satisfy an interface which says what they are.
func isHandlerMethod(name string) bool { return name == "String" || name == "Error" }
