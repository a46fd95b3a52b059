// Package cputime measures what a piece of work costs on a machine that has other things to do.
package cputime
