// Package yields counts what WebAssembly's one thread frees in a loop that does not yield, and
// after which calls the rest is freed. It is run by Node.js.
package yields
