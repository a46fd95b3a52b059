package main

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAttacks checks that each attack says what it is about, and has a name of its own.
func TestAttacks(t *testing.T) {
	names := map[string]bool{}
	for _, a := range attacks {
		require.Contains(t, areas, a.area, a.name)
		require.NotEmpty(t, a.name)
		require.NotEmpty(t, a.promise, a.name)
		require.NotEmpty(t, a.bound.unit, a.name)
		require.NotNil(t, a.run, a.name)
		require.False(t, names[a.area+"/"+a.name], "two attacks are called %q", a.name)
		names[a.area+"/"+a.name] = true
	}
}

// TestVerdicts checks that what doesn't keep to its bound, what breaks and what panics is a failure.
func TestVerdicts(t *testing.T) {
	value := func(v float64) func(*env) figure { return func(*env) figure { return figure{value: v} } }
	list := []attack{
		{name: "below", bound: atMost(2, "x"), run: value(1)},
		{name: "at", bound: atMost(2, "x"), run: value(2), alone: true},
		{name: "at least", bound: atLeast(2, "x"), run: value(3)},
		{name: "none", bound: none("lost"), run: value(0)},
		{name: "no number", bound: atMost(2, "x"), run: value(math.NaN())},
		{name: "above", bound: atMost(2, "x"), run: value(2.1)},
		{name: "too few", bound: atLeast(2, "x"), run: value(1.9), alone: true},
		{name: "broken", bound: none("lost"), run: func(*env) figure { return broken("no link") }},
		{name: "panics", bound: none("lost"), run: func(*env) figure { panic("boom") }},
		{name: "known", bound: none("lost"), known: "not yet", run: value(1)},
		{name: "known but held", bound: none("lost"), known: "not yet", run: value(0)},
	}
	failed, known := runAll(list, options{verbose: true})
	require.Equal(t, 5, failed)
	require.Equal(t, 1, known)
}

// TestChoose checks that areas and names choose attacks, and that a misspelt one is an error.
func TestChoose(t *testing.T) {
	all, err := choose("", "")
	require.NoError(t, err)
	require.Len(t, all, len(attacks))
	core, err := choose("core", "")
	require.NoError(t, err)
	require.False(t, slices.ContainsFunc(core, func(a attack) bool { return a.area != "core" }))
	_, err = choose("cores", "")
	require.Error(t, err)
	_, err = choose("core", "no such attack")
	require.Error(t, err)
}

// TestSeeds checks that an attack's randomness is its own: the same with the same seed, whatever else runs.
func TestSeeds(t *testing.T) {
	draw := func(seed uint64, name string) (v uint64) {
		a := attack{area: "core", name: name, bound: none("x"), run: func(e *env) figure { v = e.rng.Uint64(); return figure{} }}
		runOne(&a, options{seed: seed})
		return v
	}
	require.Equal(t, draw(1, "a"), draw(1, "a"))
	require.NotEqual(t, draw(1, "a"), draw(2, "a"))
	require.NotEqual(t, draw(1, "a"), draw(1, "b"))
}
