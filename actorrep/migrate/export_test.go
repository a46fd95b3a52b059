package migrate

// HostSays is what a host's plan and new tokens do that come now.
func HostSays(f *Follower, standing bool) {
	f.cur.plan.standing = standing
	for id := range f.cur.used {
		f.cur.used[id] = 0
	}
}

// Candidates are those of the present plan, and the epoch of that.
func (f *Follower) Candidates() (epoch uint32, ids []uint64) {
	if f.cur != nil {
		for _, c := range f.cur.plan.candidates {
			ids = append(ids, c.id)
		}
		epoch = f.cur.plan.epoch
	}
	return epoch, ids
}
