// Package wasm measures Go in WebAssembly, which makes an object with a finalizer for each
// JavaScript object or string that it receives. It is built with GOOS=js and GOARCH=wasm, and
// run.js runs it in Node.js.
package wasm
