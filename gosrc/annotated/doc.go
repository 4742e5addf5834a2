// Package annotated measures what cgo's annotations `noescape` and `nocallback` save and cost. Go
// 1.24 is the first release that has them.
package annotated
