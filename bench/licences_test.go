package bench

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	required = regexp.MustCompile(`(?m)^\s*(?:require )?([\w.~-]+\.[a-z]+/\S+) (v\S+)(?: // indirect)?\s*$`)
	rowOf    = regexp.MustCompile(`(?m)^\| (\S+\.\S+/\S+) \| ([^|]+) \|$`)
)

// sayings is what the text of a licence says, by the licence's name. The first that is found counts.
var sayings = []struct{ says, name string }{
	{"the following two licenses: * The FreeType License", "FTL"}, {"Creative Commons Attribution 4.0", "CC-BY-4.0"}, {"SIL OPEN FONT LICENSE", "OFL-1.1"}, {"Mozilla Public License", "MPL-2.0"},
	{"GNU GENERAL PUBLIC LICENSE", "GPL"}, {"GNU LESSER GENERAL", "LGPL"}, {"Apache License", "Apache-2.0"}, {"Permission is hereby granted, free of charge", "MIT"},
	{"Permission to use, copy, modify, and", "ISC"}, {"Neither the name", "BSD-3-Clause"}, {"may be used to endorse", "BSD-3-Clause"},
	{"Redistribution and use in source", "BSD-2-Clause"},
}

func licence(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	for _, s := range sayings {
		if strings.Contains(text, s.says) {
			return s.name
		}
	}
	return "unknown"
}

// TestLicences compares LICENCES.md with what the go.mod files require, and with the texts of the licences in the module cache.
func TestLicences(t *testing.T) {
	page, err := os.ReadFile("LICENCES.md")
	require.NoError(t, err)
	rows, users, version := map[string]string{}, map[string][]string{}, map[string]string{}
	for _, m := range rowOf.FindAllStringSubmatch(string(page), -1) {
		rows[m[1]] = m[2]
	}
	require.Greater(t, len(rows), 40)
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "go.mod" {
			return err
		}
		b, err := os.ReadFile(path)
		dir, _ := filepath.Rel("..", filepath.Dir(path))
		for _, m := range required.FindAllStringSubmatch(string(b), -1) {
			if !strings.HasPrefix(m[1], strings.TrimSuffix(module, "/")) {
				users[m[1]] = append(users[m[1]], dir)
				version[m[1]] = m[2]
			}
		}
		return err
	}))
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	require.NoError(t, err)
	read := 0
	for mod, dirs := range users {
		said, ok := rows[mod]
		if !ok {
			t.Errorf("LICENCES.md lacks %s, required by %s", mod, strings.Join(dirs, ", "))
			continue
		}
		escaped := regexp.MustCompile(`[A-Z]`).ReplaceAllStringFunc(mod, func(s string) string { return "!" + strings.ToLower(s) })
		texts, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(cache)), filepath.FromSlash(escaped)+"@"+version[mod], "LICENSE*"))
		var kinds []string
		for _, path := range texts {
			if b, err := os.ReadFile(path); err == nil {
				kinds = append(kinds, licence(string(b)))
			}
		}
		if kinds = slices.DeleteFunc(kinds, func(k string) bool { return strings.Contains(said, k) || k == "unknown" && len(kinds) > 1 }); len(kinds) > 0 {
			t.Errorf("LICENCES.md says that %s is under %s; its text is of %v", mod, said, kinds)
		}
		if len(texts) > 0 {
			read++
		}
	}
	for mod := range rows {
		if users[mod] == nil {
			t.Errorf("LICENCES.md has %s, which nothing requires", mod)
		}
	}
	require.Positive(t, read, "no licence was found in the module cache")
	t.Logf("read the licences of %d of %d modules", read, len(users))
}
