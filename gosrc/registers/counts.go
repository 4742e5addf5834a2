package registers

// registrations returns how many finalizers, cleanups and weak pointers were registered so far, and
// whether the runtime counts them. ./counting replaces this file by one that does.
func registrations() ([3]int64, bool) { return [3]int64{}, false }
