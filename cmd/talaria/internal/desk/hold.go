package desk

// Hold says something to the person and gives them time: until release is
// called, the operation that runs need not show a sign of life. ok is false if
// there is no person, or no operation that they wait for.
func (d *Desk) Hold(text string) (release func(), ok bool) {
	d.mu.Lock()
	bar, wait := d.bar, d.wait
	d.mu.Unlock()
	if bar == nil || !d.Attended() {
		return nil, false
	}
	wait.pause()
	d.Notice("%s", text)
	return wait.resume, true
}

// Attended tells whether there is a person to turn to.
func (d *Desk) Attended() bool { return d.opts.Console.Interactive() }
