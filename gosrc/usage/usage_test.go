package usage

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

func TestUsageCountsCPUAndMemory(t *testing.T) {
	before := Read()
	for start := time.Now(); Read().CPU == before.CPU; {
		if time.Since(start) > time.Minute {
			t.Fatal("no CPU time was counted in a minute of spinning")
		}
	}
	if rss := PeakRSS(); rss < 1<<20 || rss > 1<<40 {
		t.Errorf("the peak resident set size is %d bytes: is the unit wrong?", rss)
	}
}

// TestPeakRSSIsTheProgramsOwn starts this binary from a large parent process and tests that
// the child does not report its parent's peak.
func TestPeakRSSIsTheProgramsOwn(t *testing.T) {
	if os.Getenv("GCCOST_PRINT_RSS") != "" {
		fmt.Printf("peak=%d\n", PeakRSS())
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has /proc/self/status; getrusage may return the parent's peak")
	}
	const large = 300 << 20
	block := make([]byte, large)
	for i := 0; i < large; i += 4096 {
		block[i] = 1
	}
	child := exec.Command(os.Args[0], "-test.run=^TestPeakRSSIsTheProgramsOwn$", "-test.v")
	child.Env = append(os.Environ(), "GCCOST_PRINT_RSS=1")
	out, err := child.Output()
	runtime.KeepAlive(block)
	if err != nil {
		t.Fatal(err)
	}
	var peak int64
	if _, err := fmt.Sscanf(string(out[bytes.Index(out, []byte("peak=")):]), "peak=%d", &peak); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if peak >= large/2 || PeakRSS() < large {
		t.Errorf("the child reports a peak of %d bytes, its parent %d", peak, PeakRSS())
	}
}
