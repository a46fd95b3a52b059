package actorrep

import "unsafe"

// SetFrame puts a server's World close to where its frames wrap, or past many Steps in which nothing was to be done.
func (w *World) SetFrame(frame uint32) { w.frame = frame }

// SpendIDs makes as if all ids had been given.
func (w *World) SpendIDs() {
	*(*uint32)(unsafe.Pointer(&w.ids)) = 1<<31 - 1
}

// SeedsOf is for the tests of outside.
func SeedsOf(n uint64) uint64 { return seedsOf(n) }

// Referring is how many mirrors a client keeps because they have references with notifies.
func Referring(w *World) int { return len(w.client.referring) }

// CompareOnCoresFrom sets how many views are told on several cores.
func (w *World) CompareOnCoresFrom(views int) { w.compares.from = views }
