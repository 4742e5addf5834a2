//go:build race

package guardian

// raceEnabled leaves out misuse that the race detector reports, and tests that count
// guardians: under the race detector, sync.Pool randomly drops a quarter of its items.
const raceEnabled = true
