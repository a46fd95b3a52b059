package analysis

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
)

// TestExamples runs each analyser over the good and bad examples in its folder of testdata.
func TestExamples(t *testing.T) {
	for _, a := range All() {
		t.Run(a.Name, func(t *testing.T) {
			analysistest.Run(t, analysistest.TestData(), a, a.Name)
		})
	}
}

func TestFixes(t *testing.T) {
	for _, a := range []*analysis.Analyzer{BadTag, CopyVar} {
		t.Run(a.Name, func(t *testing.T) {
			analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), a, a.Name)
		})
	}
}

func TestFacts(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), procedures, "rpcs")
}

func TestIgnoreNeedsNameAndReason(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), RawFloat, "ignored")
}

// TestSilentAboutOthers runs everything over the stub of actorrep itself, which may copy what it likes.
func TestSilentAboutOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("reads many packages; the long run has it")
	}
	for _, a := range All() {
		for _, r := range analysistest.Run(t, analysistest.TestData(), a, "github.com/bunchnet/bunchnet/actorrep", "github.com/bunchnet/bunchnet/netconn/driver") {
			require.Empty(t, r.Diagnostics)
		}
	}
}

func TestDocumented(t *testing.T) {
	require.NoError(t, analysis.Validate(All()))
	for _, a := range All() {
		title, rest, ok := strings.Cut(a.Doc, "\n\n")
		require.True(t, ok && !strings.Contains(title, "\n"), "%s: the doc is a title and what to do", a.Name)
		require.Contains(t, rest, "Instead ", a.Name)
	}
}
