// Runs a Go program. gccost puts this file after the release's wasm_exec.js and the program
// itself, in base64.
const go = new Go();
go.argv = ["wasm.test", ...process.argv.slice(2)];
go.env = {TMPDIR: require("os").tmpdir(), ...process.env};
go.exit = process.exit;
// Without this, Node.js would exit with 0 where all goroutines wait forever.
process.on("exit", (code) => { if (code === 0 && !go.exited) process.exitCode = 1; });
WebAssembly.instantiate(Buffer.from(program, "base64"), go.importObject)
	.then((made) => go.run(made.instance))
	.catch((error) => { console.error(error); process.exit(1); });
