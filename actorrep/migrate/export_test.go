package migrate

// HostSays is what a host's plan and new tokens do that come now.
func HostSays(f *Follower, standing bool) {
	f.cur.plan.standing = standing
	for id := range f.cur.used {
		f.cur.used[id] = 0
	}
}
