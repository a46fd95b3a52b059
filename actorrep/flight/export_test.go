package flight

// Bound sets smaller bounds.
func (f *Film) Bound(values, entries int) { f.values, f.entries = values, entries }

// SavedFor has the film be one that was saved for a connection.
func (f *Film) SavedFor(conn uint32) { f.cause = &cause{conn: conn} }

// Waits is how many reasons are known to hold.
func (r *Recorder) Waits() int { return r.waits.all }

// Forget ends the recording and gives up its memory.
func (r *Recorder) Forget() {
	_ = r.Close()
	*r = Recorder{ended: true}
}
