//go:build !unix

package main

import "time"

func cpuTime() time.Duration { return 0 }
func residentBytes() int     { return 0 }
func moreFiles()             {}
