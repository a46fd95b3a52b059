package analysis

import (
	"fmt"
	"go/ast"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// How sure a message is.
const (
	sureError = "error"
	warning   = "warning"
	advice    = "advice"
)

const ignoreDirective = "//bunchvet:ignore "

// report says that something is wrong with what lies at a range, unless a comment there asks for silence.
func report(pass *analysis.Pass, at analysis.Range, sure string, fixes []analysis.SuggestedFix, format string, args ...any) {
	if ignored(pass, at) {
		return
	}
	pass.Report(analysis.Diagnostic{Pos: at.Pos(), End: at.End(), Category: sure, SuggestedFixes: fixes,
		Message: sure + ": " + fmt.Sprintf(format, args...)})
}

// ignored reports whether the line of at, or the one before it, has a comment that names the analyser.
func ignored(pass *analysis.Pass, at analysis.Range) bool {
	line := pass.Fset.Position(at.Pos()).Line
	for _, f := range pass.Files {
		if at.Pos() < f.FileStart || f.FileEnd < at.Pos() {
			continue
		}
		for _, group := range f.Comments {
			for _, c := range group.List {
				if l := pass.Fset.Position(c.Pos()).Line; (l == line || l == line-1 && ownLine(pass, f, c)) && silences(c.Text, pass.Analyzer.Name) {
					return true
				}
			}
		}
	}
	return false
}

// silences reports whether a comment names an analyser, and gives a reason.
func silences(text, name string) bool {
	rest, ok := strings.CutPrefix(text, ignoreDirective)
	if !ok {
		return false
	}
	words := strings.Fields(rest)
	return len(words) > 1 && words[0] == name
}

// ownLine reports whether nothing but a comment is on its line: else it speaks of that line alone.
func ownLine(pass *analysis.Pass, f *ast.File, c *ast.Comment) bool {
	file := pass.Fset.File(f.FileStart)
	content, err := pass.ReadFile(file.Name())
	if err != nil {
		return false
	}
	start, end := file.Offset(file.LineStart(file.Line(c.Pos()))), file.Offset(c.Pos())
	return end <= len(content) && strings.TrimSpace(string(content[start:end])) == ""
}

// edit is a fix of one replacement.
func edit(message string, edits ...analysis.TextEdit) []analysis.SuggestedFix {
	return []analysis.SuggestedFix{{Message: message, TextEdits: edits}}
}
