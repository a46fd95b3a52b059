//go:build !linux

package main

// kernelWays is Linux's.
var kernelWays []rawWay
