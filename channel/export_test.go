package channel

// QueueLen is the entries of the queues, stale ones included.
func QueueLen(t *Table) int {
	return t.first.len() + t.due.len() + t.refused.len() + t.fresh.len()
}
