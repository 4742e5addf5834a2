// Package edges has tests of sentences of the pages on what Go's runtime does at the edge of what is
// allowed or usual; no study measures it.
package edges
