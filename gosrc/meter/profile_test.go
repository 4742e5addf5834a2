package meter

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestProfileRate tests that a profile written by package testing has our rate.
func TestProfileRate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cpu.pb.gz")
	own := exec.Command(os.Args[0], "-test.run=^$", "-test.cpuprofile="+path)
	if out, err := own.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	profile, err := io.ReadAll(unzipped)
	if err != nil {
		t.Fatal(err)
	}
	// Field 12 of a profile, a varint, is the period in ns.
	period := binary.AppendUvarint([]byte{12 << 3}, 1_000_000_000/profileRate)
	if !bytes.Contains(profile, period) {
		t.Fatalf("the profile has no period of %d ns: %x", 1_000_000_000/profileRate, profile)
	}
}
