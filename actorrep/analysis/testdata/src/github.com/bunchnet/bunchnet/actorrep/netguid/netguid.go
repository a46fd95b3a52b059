// Package netguid is what the analysers know of the real one.
package netguid

type GUID uint32
