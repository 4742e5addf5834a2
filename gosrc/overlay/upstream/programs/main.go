//go:build go1.22

// Programs runs one program that has few specials or none: measure.py compares its CPU time
// on runtimes. It prints the memory of the runtime's spans at the end, in bytes.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"strings"
)

var programs = map[string]func() error{
	"json": marshal, "http": serve, "trees": trees, "text": search, "gzip": compress,
}

func main() {
	run, ok := programs[os.Args[len(os.Args)-1]]
	if !ok {
		fmt.Fprintln(os.Stderr, "programs: name one of json, http, trees, text, gzip")
		os.Exit(2)
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "programs:", err)
		os.Exit(1)
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	fmt.Println(stats.MSpanInuse, stats.HeapInuse)
}

// A record is one of a list of the size of an answer of a web service.
type record struct {
	ID     int
	Name   string
	Tags   []string
	Scores map[string]float64
	Next   *record
}

func marshal() error {
	var records []record
	for i := range 200 {
		records = append(records, record{
			ID: i, Name: fmt.Sprint("record ", i), Tags: strings.Fields("a few short tags"),
			Scores: map[string]float64{"first": float64(i) / 3, "second": float64(i) / 7}, Next: &record{ID: -i},
		})
	}
	for range 400 {
		text, err := json.Marshal(records)
		if err != nil {
			return err
		}
		var back []record
		if err := json.Unmarshal(text, &back); err != nil {
			return err
		}
	}
	return nil
}

func serve() error {
	page := strings.Repeat("a line of a page\n", 200)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.URL.Path, page)
	}))
	defer server.Close()
	for i := range 8000 {
		answer, err := server.Client().Get(fmt.Sprint(server.URL, "/", i))
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

type tree struct{ left, right *tree }

func grown(depth int) *tree {
	if depth == 0 {
		return &tree{}
	}
	return &tree{grown(depth - 1), grown(depth - 1)}
}

// trees allocates small objects with pointers, and keeps a part of them.
func trees() error {
	kept := grown(18)
	for range 160 {
		grown(15)
	}
	runtime.KeepAlive(kept)
	return nil
}

func text() []byte {
	var text bytes.Buffer
	for i := range 20000 {
		fmt.Fprintf(&text, "%d user%d@example%d.org GET /page/%d?id=%d 200\n", i, i%97, i%13, i%31, i*i)
	}
	return text.Bytes()
}

func search() error {
	wanted, seen := regexp.MustCompile(`(\w+)@example(\d+)\.org GET /(\w+)/`), map[string]int{}
	for range 6 {
		for _, found := range wanted.FindAllSubmatch(text(), -1) {
			seen[string(found[1])+" "+string(found[2])]++
		}
	}
	if len(seen) != 97*13 {
		return fmt.Errorf("found %d users", len(seen))
	}
	return nil
}

func compress() error {
	var packed bytes.Buffer
	for range 36 {
		packed.Reset()
		to := gzip.NewWriter(&packed)
		if _, err := to.Write(text()); err != nil {
			return err
		}
		if err := to.Close(); err != nil {
			return err
		}
	}
	return nil
}
